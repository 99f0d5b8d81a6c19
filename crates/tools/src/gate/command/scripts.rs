//! Words of commands that are shell lines themselves.

use super::computed::UNKNOWN;
use super::programs::{self, base_name};
use super::scanner::Content;

/// Programs that take a shell line after `-c`, besides shells.
const SCRIPT_RUNNERS: [&str; 3] = ["su", "runuser", "fish"];

/// Returns the texts of a command that may be lines themselves, each with the meaning of its first words.
pub(super) fn texts(words: &[String]) -> Vec<(String, Content)> {
    let words = programs::with_inputs_marked(words);
    let evaluated = words.iter().position(|word| word == "eval");
    let evaluated =
        evaluated.filter(|at| programs::is_program_position(words.get(..*at).unwrap_or_default()));
    let (words, joined) = words.split_at(evaluated.unwrap_or(words.len()));
    let mut texts = Vec::new();
    if let Some((_eval, joined)) = joined.split_first() {
        texts.push((joined.join(" "), Content::Commands));
    }
    let mut reader = ScriptReader::default();
    texts.extend(words.iter().filter_map(|word| reader.text(word)));
    texts
}

/// The words of a command so far.
#[derive(Debug, Default)]
struct ScriptReader {
    runs_scripts: bool,
    /// Whether the next word that is not an option is a script.
    takes_script: bool,
    is_env: bool,
    /// Whether the next word is a line of `env -S`.
    takes_line: bool,
    is_alias: bool,
}

impl ScriptReader {
    /// Reads a word, and returns the text in it that may be a line.
    fn text(&mut self, word: &str) -> Option<(String, Content)> {
        let script = |text: &str| Some((text.to_owned(), Content::Commands));
        if std::mem::take(&mut self.takes_line) {
            return script(word);
        }
        let cluster = word.strip_prefix('-').filter(|cluster| !cluster.starts_with('-'));
        let joined_after = |option: char| cluster.and_then(|letters| letters.split_once(option));
        let joined = word.strip_prefix("--split-string=").or(joined_after('S').map(|(_, line)| line));
        let line = if word == "--split-string" { Some("") } else { joined };
        if self.is_env
            && let Some(line) = line
        {
            self.takes_line = line.is_empty();
            return script(line).filter(|_| !line.is_empty());
        }
        if self.runs_scripts && word.starts_with(['-', '+']) {
            self.takes_script |= joined_after('c').is_some();
            let line = joined_after('c').map_or(word, |(_, line)| line);
            return script(line).filter(|_| is_special(line));
        }
        if self.takes_script {
            (self.takes_script, self.runs_scripts) = (false, false);
            return script(word);
        }
        if self.is_alias
            && let Some((_, value)) = word.split_once('=')
        {
            // Arguments follow where the alias is used.
            return script(&format!("{value} {UNKNOWN}"));
        }
        let name = base_name(word);
        self.runs_scripts |= programs::is_shell(name) || SCRIPT_RUNNERS.contains(&name);
        self.is_env |= name == "env";
        self.is_alias |= name == "alias";
        is_special(word).then(|| (value(word).to_owned(), Content::Data))
    }
}

/// Returns whether the text has characters with a meaning for a shell.
fn is_special(text: &str) -> bool {
    text.contains(|character: char| character.is_whitespace() || ";|&`$(){}'\"\\".contains(character))
}

/// Returns the value of a setting such as `core.pager=less -R`, and any other text unchanged.
fn value(text: &str) -> &str {
    let is_name = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.+".contains(c));
    match text.split_once('=') {
        Some((name, value)) if is_name(name) => value,
        Some(_) | None => text,
    }
}
