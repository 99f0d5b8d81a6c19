//! Flags that a session remembers, as words of a command line.

use crate::command_line;
use crate::sessions::Flags;

/// Returns the flags that a session remembers and that are not in `given`, as words of a command line.
pub(crate) fn remembered_words(flags: &Flags, given: &Flags) -> Vec<String> {
    let forgotten = command_line::replaced(given.keys().map(String::as_str));
    let mut words = Vec::new();
    for (name, values) in flags.iter().filter(|(name, _)| !forgotten.contains(name.as_str())) {
        if values.is_empty() {
            words.push(format!("--{name}"));
        }
        words.extend(values.iter().map(|value| format!("--{name}={value}")));
    }
    words
}
