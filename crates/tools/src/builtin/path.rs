//! Paths as a model names and reads them.

use std::path::{Component, Path, PathBuf};

use pintle_env::{DirEntry, EnvError, ExecutionEnvironment};

use crate::error::{ToolError, ToolErrorKind};

/// How alike two names must be for one to be suggested for the other: 1 is the same.
const LIKE: f64 = 0.8;

/// The most names that are suggested.
const SUGGESTED: usize = 3;

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

/// The failure to read a file. If the file is missing, it names the files beside it that are called alike.
pub(crate) async fn unreadable(env: &dyn ExecutionEnvironment, path: &Path, error: EnvError) -> ToolError {
    if !matches!(error, EnvError::NotFound { .. }) {
        return error.into();
    }
    let near = near_names(env, path).await;
    if near.is_empty() {
        return error.into();
    }
    let message = format!("{error}. Did you mean {}?", near.join(" or "));
    ToolError::new(ToolErrorKind::NotFound, message).with_source(error)
}

/// What stands in the same directory under a name like that of `path`, best first.
async fn near_names(env: &dyn ExecutionEnvironment, path: &Path) -> Vec<String> {
    let path = env.resolve(path);
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Vec::new() };
    // Suggestions are a courtesy: without a listing there are none.
    let Ok(entries) = env.list(parent).await else { return Vec::new() };
    let wanted = name.to_string_lossy().to_lowercase();
    let score =
        |entry: &DirEntry| strsim::jaro_winkler(&wanted, &entry.name.to_string_lossy().to_lowercase());
    let mut scored: Vec<(f64, &DirEntry)> =
        entries.iter().map(|entry| (score(entry), entry)).filter(|(score, _)| *score >= LIKE).collect();
    scored.sort_by(|left, right| right.0.total_cmp(&left.0));
    scored.into_iter().take(SUGGESTED).map(|(_, entry)| shown(env, &parent.join(&entry.name))).collect()
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
