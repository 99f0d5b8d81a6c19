//! Flags that were typed, and those that a session remembers.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;

use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory as _};
use pintle_host::{FIELDS, FieldRetention, ValueKind};

use crate::arguments::Arguments;
use crate::sessions::RememberedFlags;

/// Path of the working directory, which the store has as well.
const DIRECTORY: &str = "environment.dir";

/// Flag of a run.
struct RunFlag {
    /// Id of the argument.
    id: String,
    /// Name without dashes.
    name: String,
    takes_value: bool,
}

/// All flags of a run, which other commands with a session have as well.
static FLAGS: LazyLock<Vec<RunFlag>> = LazyLock::new(|| {
    let command = Arguments::command();
    let run = command.find_subcommand("run").into_iter();
    let flags = run.flat_map(|run| run.get_arguments()).filter_map(|argument| {
        let name = argument.get_long()?.to_owned();
        let takes_value = argument.get_action().takes_values();
        Some(RunFlag { id: argument.get_id().to_string(), name, takes_value })
    });
    flags.collect()
});

/// Returns the flags on the command line.
fn on_command_line(matches: &ArgMatches) -> impl Iterator<Item = &'static RunFlag> {
    FLAGS.iter().filter(|flag| matches.value_source(&flag.id) == Some(ValueSource::CommandLine))
}

/// Returns the names of the flags on the command line of a subcommand.
pub(super) fn typed_flags(matches: &ArgMatches) -> BTreeSet<String> {
    // A group has the name of its type.
    let ids = matches.ids().map(clap::Id::as_str).filter(|id| !id.starts_with(char::is_uppercase));
    let typed = ids.filter(|id| matches.value_source(id) == Some(ValueSource::CommandLine));
    typed.map(|id| id.replace('_', "-")).collect()
}

/// Returns the flags on the command line that a session remembers: they select environment, model and tools.
pub(super) fn remember(matches: &ArgMatches) -> RememberedFlags {
    let given = on_command_line(matches).filter_map(|flag| {
        let row = FIELDS.iter().find(|row| row.flags.contains(&flag.name.as_str()))?;
        let is_remembered = row.retention == FieldRetention::Always || row.path == DIRECTORY;
        is_remembered.then_some((flag, row))
    });
    let given = given.map(|(flag, row)| {
        let values = matches.get_raw(&flag.id).filter(|_| flag.takes_value).into_iter().flatten();
        let is_file = matches!(row.kind, ValueKind::Path | ValueKind::Profile) && row.path != DIRECTORY;
        let value = |value: &std::ffi::OsStr| {
            // A relative path means another file in another directory.
            let path = is_file.then(|| std::path::absolute(Path::new(value)).ok()).flatten();
            path.map_or_else(|| value.to_string_lossy().into_owned(), |path| path.display().to_string())
        };
        (flag.name.clone(), values.map(value).collect())
    });
    given.collect()
}
