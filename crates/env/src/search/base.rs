//! The directory in which all matches of a glob are.

/// Characters that are not literal.
pub(super) const SPECIAL: [char; 5] = ['*', '?', '[', '{', '\\'];

/// Returns the part of a glob that all its matches start with: the directories before the first name with a wildcard or
/// an escape, or the whole glob if it has neither.
///
/// A caller that checks a search before it starts must interpret the glob as the search does.
///
/// ```
/// assert_eq!(pintle_env::glob_base("src/**/*.rs"), "src/");
/// assert_eq!(pintle_env::glob_base(r"s\rc/*.rs"), "");
/// assert_eq!(pintle_env::glob_base("src/main.rs"), "src/main.rs");
/// ```
#[must_use]
pub fn glob_base(pattern: &str) -> &str {
    match pattern.find(SPECIAL) {
        Some(_) => split_base(pattern).0,
        None => pattern,
    }
}

/// Splits off the directories before the first name with a wildcard. The last name always remains
/// in the rest.
pub(super) fn split_base(pattern: &str) -> (&str, &str) {
    let literal = pattern.get(..pattern.find(SPECIAL).unwrap_or(pattern.len()));
    let end = literal.and_then(|literal| literal.rfind('/'));
    let end = end.map_or(0, |slash| slash + 1);
    pattern.split_at_checked(end).unwrap_or(("", pattern))
}
