//! Names of parameters in other agents.

use serde_json::{Map, Value};

/// Groups of synonyms. One name may be in several groups.
const SYNONYMS: [&[&str]; 11] = [
    &["file_path", "path", "file", "filename", "absolute_path", "target_file"],
    &["dir_path", "path", "directory", "dir", "folder"],
    &["paths", "files", "file_paths"],
    &["command", "cmd", "script", "shell_command"],
    &["pattern", "query", "regex"],
    &["old_string", "old_str", "old_text", "search"],
    &["new_string", "new_str", "new_text", "replacement", "replace"],
    &["content", "contents", "text", "file_text", "file_content"],
    &["patch", "input", "diff"],
    &["glob_filter", "glob", "include"],
    &["url", "uri", "link"],
];

/// Maximum number of unknown names in one object, since each is compared with every parameter. A call with more is
/// refused.
const MAX_UNKNOWN: usize = 32;

/// Returns the names in an object that mean a missing parameter, each with that parameter. A name that could mean
/// several parameters is left out, and so are names that could mean the same one.
pub(super) fn renamed(
    object: &Map<String, Value>,
    properties: &Map<String, Value>,
    own: &[(String, String)],
    only: Option<&str>,
) -> Vec<(String, String)> {
    let unknown = || object.keys().filter(|name| !properties.contains_key(*name));
    if unknown().nth(MAX_UNKNOWN).is_some() {
        return Vec::new();
    }
    let missing: Vec<&str> = properties
        .keys()
        .map(String::as_str)
        .filter(|name| !object.contains_key(*name) && only.is_none_or(|only| only == *name))
        .collect();
    let found: Vec<(&String, &str)> =
        unknown().filter_map(|name| Some((name, meant(name, &missing, own)?))).collect();
    let is_unique = |to: &str| found.iter().filter(|(_, other)| *other == to).count() == 1;
    let sure = found.iter().filter(|(_, to)| is_unique(to));
    sure.map(|(from, to)| ((*from).clone(), (*to).to_owned())).collect()
}

/// Returns the only parameter that a name can mean.
fn meant<'a>(name: &str, missing: &[&'a str], own: &[(String, String)]) -> Option<&'a str> {
    // Bounds the cost of comparing many long names.
    const MAX_NAME: usize = 64;
    if name.len() > MAX_NAME {
        return None;
    }
    let normalized = normalized(name);
    let is_own = |parameter: &str| own.iter().any(|(alias, meant)| alias == name && meant == parameter);
    let is_spelling = |parameter: &str| normalized.len() > 1 && self::normalized(parameter) == normalized;
    let is_synonym = |parameter: &str| {
        let parameter = self::normalized(parameter);
        SYNONYMS.iter().any(|group| {
            let has = |wanted: &str| group.iter().any(|known| self::normalized(known) == wanted);
            has(&normalized) && has(&parameter)
        })
    };
    only(missing, is_own).or_else(|| only(missing, is_spelling)).or_else(|| only(missing, is_synonym))
}

/// Returns the only name that fits.
fn only<'a>(names: &[&'a str], fits: impl Fn(&str) -> bool) -> Option<&'a str> {
    let mut fitting = names.iter().filter(|name| fits(name));
    let first = fitting.next()?;
    fitting.next().is_none().then_some(*first)
}

/// Returns a name without case and punctuation: `filePath`, `file-path` and `file_path` are equal.
fn normalized(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()).collect()
}
