//! Flags that were typed, and those that a session remembers.

use std::collections::BTreeSet;
use std::path::Path;

use clap::ArgMatches;
use clap::parser::ValueSource;
use pintle_host::sessions::RememberedFlags;
use pintle_host::{FIELDS, FieldRetention, ValueKind};

/// Path of the working directory, which the store has as well.
const DIRECTORY: &str = "environment.dir";

/// Returns the names of the flags on the command line of a subcommand.
pub(super) fn typed_flags(matches: &ArgMatches) -> BTreeSet<String> {
    // A group has the name of its type.
    let ids = matches.ids().map(clap::Id::as_str).filter(|id| !id.starts_with(char::is_uppercase));
    let typed = ids.filter(|id| matches.value_source(id) == Some(ValueSource::CommandLine));
    typed.map(|id| id.replace('_', "-")).collect()
}

/// Returns the flags on the command line that a session remembers: they select environment, model and tools. `command` is
/// the subcommand that matched.
pub(super) fn remember(command: &clap::Command, matches: &ArgMatches) -> RememberedFlags {
    let given = command.get_arguments().filter_map(|argument| {
        let name = argument.get_long()?;
        let row = FIELDS.iter().find(|row| row.flags.contains(&name))?;
        let is_typed = matches.value_source(argument.get_id().as_str()) == Some(ValueSource::CommandLine);
        let is_remembered = row.retention == FieldRetention::Always || row.path == DIRECTORY;
        (is_typed && is_remembered).then_some((argument, name, row))
    });
    let given = given.map(|(argument, name, row)| {
        let takes_value = argument.get_action().takes_values();
        let values = matches.get_raw(argument.get_id().as_str()).filter(|_| takes_value);
        let is_file = matches!(row.kind, ValueKind::Path | ValueKind::Profile) && row.path != DIRECTORY;
        let value = |value: &std::ffi::OsStr| {
            // A relative path means another file in another directory.
            let path = is_file.then(|| std::path::absolute(Path::new(value)).ok()).flatten();
            path.map_or_else(|| value.to_string_lossy().into_owned(), |path| path.display().to_string())
        };
        (name.to_owned(), values.into_iter().flatten().map(value).collect())
    });
    given.collect()
}
