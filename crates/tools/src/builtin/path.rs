//! Paths as a model names and reads them.

use std::path::Path;

use pintle_env::{DirEntry, EnvError, ExecutionEnvironment};

use crate::error::{ToolError, ToolErrorKind};

/// How alike two names must be for one to be suggested for the other: 1 is the same.
const LIKE: f64 = 0.8;

/// The most names that are suggested.
const SUGGESTED: usize = 3;

/// A path for the model to read: relative to the working directory where it is inside.
pub(super) fn shown(env: &dyn ExecutionEnvironment, path: &Path) -> String {
    match path.strip_prefix(env.working_directory()) {
        Ok(inside) if inside.as_os_str().is_empty() => ".".to_owned(),
        Ok(inside) => inside.display().to_string(),
        Err(_outside) => path.display().to_string(),
    }
}

/// The failure to read a file. If the file is missing, it names the files beside it that are called alike.
pub(super) async fn unreadable(env: &dyn ExecutionEnvironment, path: &Path, error: EnvError) -> ToolError {
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
