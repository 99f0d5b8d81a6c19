//! Paths as a model names and reads them.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use pintle_env::{DirEntry, EnvError, ExecutionEnvironment};

use crate::error::{ToolError, ToolErrorKind};

/// How alike two names must be for one to be suggested for the other: 1 is the same.
const LIKE: f64 = 0.8;

/// The most names that are suggested.
const SUGGESTED: usize = 3;

/// The most ends of a path that are looked for.
const MAX_ENDS: usize = 8;

/// A path for the model to read: relative to the working directory where it is inside.
pub(crate) fn shown(env: &dyn ExecutionEnvironment, path: &Path) -> String {
    match path.strip_prefix(env.working_directory()) {
        Ok(inside) if inside.as_os_str().is_empty() => ".".to_owned(),
        Ok(inside) => inside.display().to_string(),
        Err(_outside) => path.display().to_string(),
    }
}

/// Where a search for `pattern` below `path` begins: at what stands before the first wildcard. A pattern that climbs
/// up behind a wildcard may lead anywhere, so it begins at the root.
pub(crate) fn search_base(path: Option<&str>, pattern: &str) -> PathBuf {
    let has_wildcard =
        |part: &Component<'_>| part.as_os_str().to_string_lossy().contains(['*', '?', '[', '{']);
    let mut parts = Path::new(pattern).components();
    let fixed: PathBuf = parts.by_ref().take_while(|part| !has_wildcard(part)).collect();
    // A brace may hold whole paths.
    if parts.any(|part| part == Component::ParentDir) || pattern.contains('{') && pattern.contains("..") {
        return PathBuf::from("/");
    }
    Path::new(path.unwrap_or(".")).join(fixed)
}

/// The failure to read a file. If the file is missing, it names those that may be meant.
pub(crate) async fn unreadable(env: &dyn ExecutionEnvironment, path: &Path, error: EnvError) -> ToolError {
    if !matches!(error, EnvError::NotFound { .. }) {
        return error.into();
    }
    match suggestion(env, path).await {
        Some(suggestion) => {
            let message = format!("{error}. {suggestion}");
            ToolError::new(ToolErrorKind::NotFound, message).with_source(error)
        }
        None => error.into(),
    }
}

/// A question that names the files that may be meant by a path where there is none.
///
/// Suggestions are a courtesy: what cannot be looked at is not suggested.
pub(crate) async fn suggestion(env: &dyn ExecutionEnvironment, path: &Path) -> Option<String> {
    let path = env.resolve(path);
    let mut near = near_names(env, &path).await;
    if near.is_empty() {
        near.extend(in_working_directory(env, &path).await);
    }
    (!near.is_empty()).then(|| format!("Did you mean {}?", near.join(" or ")))
}

/// What stands in the same directory under a name like that of `path`, best first.
async fn near_names(env: &dyn ExecutionEnvironment, path: &Path) -> Vec<String> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Vec::new() };
    let Ok(entries) = env.list(parent).await else { return Vec::new() };
    let wanted = name.to_string_lossy().to_lowercase();
    let score =
        |entry: &DirEntry| strsim::jaro_winkler(&wanted, &entry.name.to_string_lossy().to_lowercase());
    let mut scored: Vec<(f64, &DirEntry)> =
        entries.iter().map(|entry| (score(entry), entry)).filter(|(score, _)| *score >= LIKE).collect();
    scored.sort_by(|left, right| right.0.total_cmp(&left.0));
    scored.into_iter().take(SUGGESTED).map(|(_, entry)| shown(env, &parent.join(&entry.name))).collect()
}

/// The file below the working directory to which the end of `path` leads, if upper and lower case do not count: the
/// beginning of a path is what gets lost, and what comes from another place.
async fn in_working_directory(env: &dyn ExecutionEnvironment, path: &Path) -> Option<String> {
    let inside = path.strip_prefix(env.working_directory()).unwrap_or(path);
    let names: Vec<&OsStr> = inside.iter().filter(|name| *name != "/").collect();
    let ends = (0..names.len()).map(|start| names.get(start..).unwrap_or_default());
    for names in ends.take(MAX_ENDS) {
        if let Some(found) = in_any_case(env, names).await {
            return Some(shown(env, &found));
        }
    }
    None
}

/// The file that these names lead to from the working directory, in upper or lower case.
async fn in_any_case(env: &dyn ExecutionEnvironment, names: &[&OsStr]) -> Option<PathBuf> {
    let mut place = env.working_directory().to_owned();
    for name in names {
        let wanted = name.to_string_lossy().to_lowercase();
        let entries = env.list(&place).await.ok()?;
        let is_wanted = |entry: &&DirEntry| entry.name.to_string_lossy().to_lowercase() == wanted;
        let exact = entries.iter().find(|entry| entry.name == **name);
        place.push(&exact.or_else(|| entries.iter().find(is_wanted))?.name);
    }
    Some(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_begins_before_its_first_wildcard() {
        let rows = [
            (None, "**/*.rs", "."),
            (None, "src/**/*.rs", "./src"),
            (Some("crates"), "a/*/b", "crates/a"),
            (Some("crates"), "a/b", "crates/a/b"),
            (None, "/etc/*.conf", "/etc"),
            (None, "../*/x", "./.."),
            (None, "*/../../etc/passwd", "/"),
            (None, "{src,../x}/*", "/"),
            (None, "src/{a,b}", "./src"),
        ];
        for (path, pattern, expected) in rows {
            assert_eq!(search_base(path, pattern), Path::new(expected), "{pattern}");
        }
    }
}
