//! Parameters under the names that other agents have for them.

use serde_json::{Map, Value};

/// Names that mean the same to a model. One name may stand in several rows.
const SAME: [&[&str]; 11] = [
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

/// The most unknown names of one object that are looked at: each is compared with every parameter, and whoever sends
/// more is told, not mended.
const MOST: usize = 32;

/// Which names of an object stand for which parameters that it lacks. A name that could mean several, and names
/// that could mean the same one, are left out.
pub(super) fn renamed(
    object: &Map<String, Value>,
    properties: &Map<String, Value>,
    own: &[(String, String)],
    only: Option<&str>,
) -> Vec<(String, String)> {
    let unknown = || object.keys().filter(|name| !properties.contains_key(*name));
    if unknown().nth(MOST).is_some() {
        return Vec::new();
    }
    let lacking: Vec<&str> = properties
        .keys()
        .map(String::as_str)
        .filter(|name| !object.contains_key(*name) && only.is_none_or(|only| only == *name))
        .collect();
    let found: Vec<(&String, &str)> =
        unknown().filter_map(|name| Some((name, meant(name, &lacking, own)?))).collect();
    let is_wanted_once = |to: &str| found.iter().filter(|(_, other)| *other == to).count() == 1;
    let sure = found.iter().filter(|(_, to)| is_wanted_once(to));
    sure.map(|(from, to)| ((*from).clone(), (*to).to_owned())).collect()
}

/// The one parameter that is meant by a name.
fn meant<'a>(name: &str, lacking: &[&'a str], own: &[(String, String)]) -> Option<&'a str> {
    // No name is that long; who sends one sends many, perhaps.
    const LONGEST: usize = 64;
    if name.len() > LONGEST {
        return None;
    }
    let plain = plain(name);
    let is_own = |parameter: &str| own.iter().any(|(alias, meant)| alias == name && meant == parameter);
    let is_spelling = |parameter: &str| plain.len() > 1 && self::plain(parameter) == plain;
    let is_same = |parameter: &str| {
        let parameter = self::plain(parameter);
        SAME.iter().any(|row| {
            let has = |wanted: &str| row.iter().any(|known| self::plain(known) == wanted);
            has(&plain) && has(&parameter)
        })
    };
    one(lacking, is_own).or_else(|| one(lacking, is_spelling)).or_else(|| one(lacking, is_same))
}

/// The only one that fits.
fn one<'a>(names: &[&'a str], fits: impl Fn(&str) -> bool) -> Option<&'a str> {
    let mut fitting = names.iter().filter(|name| fits(name));
    let first = fitting.next()?;
    fitting.next().is_none().then_some(*first)
}

/// A name without what spellings differ in: `filePath`, `file-path` and `file_path` are one.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()).collect()
}
