//! Paths in calls and results.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use pintle_env::{DirEntry, EnvError, ExecutionEnvironment, glob_base};

use crate::error::{ToolError, ToolErrorKind};
use crate::similarity::most_similar;

/// Maximum number of suffixes of a path that are searched for.
const MAX_SUFFIXES: usize = 8;

/// Returns a path for the model, relative to the working directory if it is inside.
pub(crate) fn display_path(env: &dyn ExecutionEnvironment, path: &Path) -> String {
    match path.strip_prefix(env.working_directory()) {
        Ok(inside) if inside.as_os_str().is_empty() => ".".to_owned(),
        Ok(inside) => inside.display().to_string(),
        Err(_outside) => path.display().to_string(),
    }
}

/// Returns the directory in which a search for `pattern` below `path` starts: the part before the first wildcard. A
/// pattern with `..` after a wildcard may lead anywhere, so its search starts at the root.
pub(crate) fn search_base(path: Option<&str>, pattern: &str) -> PathBuf {
    let base = glob_base(pattern);
    let mut rest = Path::new(pattern.get(base.len()..).unwrap_or_default()).components();
    // Braces may contain paths.
    if rest.any(|part| part == Component::ParentDir) || pattern.contains('{') && pattern.contains("..") {
        return PathBuf::from("/");
    }
    // Joined to a directory, a tilde would be an entry of that name.
    if Path::new(base).starts_with("~") {
        return PathBuf::from(base);
    }
    Path::new(path.unwrap_or(".")).join(base)
}

/// Converts an error of reading a file. If the file is missing, similar ones are suggested.
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

/// Returns a question with files that a missing path may mean. Errors of the search are ignored.
pub(crate) async fn suggestion(env: &dyn ExecutionEnvironment, path: &Path) -> Option<String> {
    let path = env.resolve(path);
    let mut similar = similar_siblings(env, &path).await;
    if similar.is_empty() {
        similar.extend(suffix_in_working_directory(env, &path).await);
    }
    (!similar.is_empty()).then(|| format!("Did you mean {}?", similar.join(" or ")))
}

/// Returns the entries of the same directory with similar names, the best first.
async fn similar_siblings(env: &dyn ExecutionEnvironment, path: &Path) -> Vec<String> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Vec::new() };
    let Ok(entries) = env.list(parent).await else { return Vec::new() };
    let names = entries.iter().map(|entry| entry.name.to_string_lossy());
    let similar = most_similar(&name.to_string_lossy(), names);
    similar.iter().map(|name| display_path(env, &parent.join(name.as_ref()))).collect()
}

/// Returns the file below the working directory that a suffix of `path` names, ignoring case. A model may have invented
/// the first part of the path, or copied it from another directory.
async fn suffix_in_working_directory(env: &dyn ExecutionEnvironment, path: &Path) -> Option<String> {
    let inside = path.strip_prefix(env.working_directory()).unwrap_or(path);
    let names: Vec<&OsStr> = inside.iter().filter(|name| *name != "/").collect();
    let suffixes = (0..names.len()).map(|start| names.get(start..).unwrap_or_default());
    for names in suffixes.take(MAX_SUFFIXES) {
        if let Some(found) = find_ignoring_case(env, names).await {
            return Some(display_path(env, &found));
        }
    }
    None
}

/// Returns the file with this path below the working directory, ignoring case.
async fn find_ignoring_case(env: &dyn ExecutionEnvironment, names: &[&OsStr]) -> Option<PathBuf> {
    let mut path = env.working_directory().to_owned();
    for name in names {
        let wanted = name.to_string_lossy().to_lowercase();
        let entries = env.list(&path).await.ok()?;
        let is_wanted = |entry: &&DirEntry| entry.name.to_string_lossy().to_lowercase() == wanted;
        let exact = entries.iter().find(|entry| entry.name == **name);
        path.push(&exact.or_else(|| entries.iter().find(is_wanted))?.name);
    }
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_starts_before_the_first_wildcard() {
        let cases = [
            (None, "**/*.rs", "."),
            (None, "src/**/*.rs", "./src"),
            (Some("crates"), "~/a/*", "~/a"),
            (Some("~/crates"), "a/*", "~/crates/a"),
            (Some("crates"), "a/*/b", "crates/a"),
            (Some("crates"), "a/b", "crates/a/b"),
            (None, "/etc/*.conf", "/etc"),
            (None, "../*/x", "./.."),
            (None, "*/../../etc/passwd", "/"),
            (None, "{src,../x}/*", "/"),
            (None, "src/{a,b}", "./src"),
            (None, r"k\eys/*", "."),
            (None, r"a/b\/c/*", "./a"),
            (Some("crates"), r"\.\./*", "crates"),
        ];
        for (path, pattern, expected) in cases {
            assert_eq!(search_base(path, pattern), Path::new(expected), "{pattern}");
        }
    }
}
