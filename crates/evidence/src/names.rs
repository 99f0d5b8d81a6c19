//! Names of files and commands in messages.

/// Number of names in a message. Further names are only counted.
pub const MAX_NAMES: usize = 5;

/// Returns the first names, and the number of the other names.
#[must_use]
pub fn list_names(names: &[String]) -> String {
    let first = names.iter().take(MAX_NAMES).map(|name| format!("`{}`", escape_name(name)));
    let mut text = first.collect::<Vec<_>>().join(", ");
    if names.len() > MAX_NAMES {
        text.push_str(&format!(" and {} more", names.len() - MAX_NAMES));
    }
    text
}

/// Returns a name or a command as one line that fits between backticks.
#[must_use]
pub fn escape_name(text: &str) -> String {
    let shown = |character: char| match character {
        '`' => '\'',
        _ if character.is_control() => ' ',
        _ => character,
    };
    text.chars().map(shown).collect()
}

/// Returns the largest index up to `most` at which a character starts.
#[must_use]
pub fn floor_char_boundary(text: &str, most: usize) -> usize {
    (0..=most.min(text.len())).rev().find(|index| text.is_char_boundary(*index)).unwrap_or(0)
}
