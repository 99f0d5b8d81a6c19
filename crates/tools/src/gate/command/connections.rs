//! Commands whose texts no other command of the line can run.

use std::collections::{HashMap, HashSet};

use super::programs;
use super::scanner::{Connections, ScannedLine};

/// Returns for each command of a line whether its arguments and its input are texts that no command of the line runs.
/// The program reads them as texts, and so do the programs that its output reaches by a pipe, a substitution or a file.
pub(super) fn text_commands(line: &ScannedLine) -> Vec<bool> {
    let commands = &line.commands;
    let has_texts: Vec<bool> =
        commands.iter().map(|command| command.readings().all(programs::has_text_arguments)).collect();
    let may_rebind = commands
        .iter()
        .zip(&has_texts)
        .any(|(command, has_texts)| !has_texts && command.readings().any(programs::may_rebind));
    if may_rebind || !line.has_known_connections {
        return vec![false; commands.len()];
    }
    // A program may run a file that another command writes.
    let runs_no_file = commands.iter().all(|command| command.readings().all(programs::runs_no_file));
    // Whether all commands of a pipeline from the current one on read texts.
    let mut pipelines: HashMap<usize, bool> = HashMap::new();
    let mut text_commands: HashSet<usize> = HashSet::new();
    let mut found = Vec::with_capacity(commands.len());
    // Later commands of a pipeline, and commands with substitutions, are after the commands whose output reaches them.
    for (command, has_texts) in commands.iter().zip(&has_texts).rev() {
        let Connections { id, pipeline, captured_by, writes_file } = command.connections;
        let reads_texts = pipelines.entry(pipeline).or_insert(true);
        *reads_texts &= *has_texts && (!writes_file || runs_no_file);
        let is_text = *reads_texts && captured_by.is_none_or(|outer| text_commands.contains(&outer));
        if is_text {
            text_commands.insert(id);
        }
        found.push(is_text);
    }
    found.reverse();
    found
}
