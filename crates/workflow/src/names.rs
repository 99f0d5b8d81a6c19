//! Names of files and commands in messages.

/// Number of names in a message. Further names are only counted.
pub(crate) const NAMED: usize = 5;

/// Returns the first names, and the number of the other names.
pub(crate) fn named(names: &[String]) -> String {
    let first = names.iter().take(NAMED).map(|name| format!("`{}`", shown(name)));
    let mut text = first.collect::<Vec<_>>().join(", ");
    if names.len() > NAMED {
        text.push_str(&format!(" and {} more", names.len() - NAMED));
    }
    text
}

/// Returns a name or a command as one line that fits between backticks.
pub(crate) fn shown(text: &str) -> String {
    let shown = |character: char| match character {
        '`' => '\'',
        _ if character.is_control() => ' ',
        _ => character,
    };
    text.chars().map(shown).collect()
}
