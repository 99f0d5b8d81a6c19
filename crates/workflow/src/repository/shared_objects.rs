//! Objects of the user's repository, which the repositories of a task read in place instead of copying them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pintle_env::{EnvError, ExecutionEnvironment};

use super::RepositoryError;
use crate::git::RepositoryGit;

/// File of a repository with the object directories of other repositories.
pub(super) const ALTERNATES: &str = "objects/info/alternates";

/// File of a repository with the commits at which its history ends.
const SHALLOW: &str = "shallow";

/// Start of each line of `git count-objects` with the object directory of another repository.
const LISTED: &str = "alternate: ";

/// Lets a new repository of a task read the objects of the user's repository, and of all repositories that the user's
/// repository reads objects of.
pub(super) async fn share(
    machine: &Arc<dyn ExecutionEnvironment>,
    source: &Path,
    git_directory: &Path,
) -> Result<(), RepositoryError> {
    let git = RepositoryGit::for_user(machine, source);
    // In a worktree and in a submodule, they are elsewhere.
    let objects = source.join(git.run(&["rev-parse", "--git-path", "objects"]).await?);
    let counted = git.run(&["count-objects", "-v"]).await?;
    let listed = counted.lines().filter_map(|line| line.strip_prefix(LISTED));
    // Git quotes paths with control characters. It finds these directories through the first one.
    let alternates = listed.filter(|path| !path.starts_with('"')).map(PathBuf::from);
    let lines: String = std::iter::once(objects).chain(alternates).map(|path| format_line(&path)).collect();
    machine.write(&git_directory.join(ALTERNATES), lines.as_bytes()).await?;
    let shallow = source.join(git.run(&["rev-parse", "--git-path", SHALLOW]).await?);
    copy_file(machine.as_ref(), &shallow, &git_directory.join(SHALLOW)).await
}

/// Lets a new clone read the same objects as the repository of the task, without the objects of the task.
pub(super) async fn share_same(
    machine: &dyn ExecutionEnvironment,
    from: &Path,
    git_directory: &Path,
) -> Result<(), RepositoryError> {
    for name in [ALTERNATES, SHALLOW] {
        copy_file(machine, &from.join(name), &git_directory.join(name)).await?;
    }
    Ok(())
}

/// Returns the object directories that the repository of a task reads.
pub(super) async fn directories(
    machine: &dyn ExecutionEnvironment,
    git_directory: &Path,
) -> Result<Vec<PathBuf>, RepositoryError> {
    let lines = match machine.read(&git_directory.join(ALTERNATES), None).await {
        Ok(lines) => lines,
        Err(EnvError::NotFound { .. }) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let lines = String::from_utf8_lossy(&lines);
    Ok(lines.lines().filter(|line| line.starts_with('/')).map(PathBuf::from).collect())
}

/// Copies a file if it exists.
async fn copy_file(
    machine: &dyn ExecutionEnvironment,
    from: &Path,
    to: &Path,
) -> Result<(), RepositoryError> {
    match machine.read(from, None).await {
        Ok(bytes) => machine.write(to, &bytes).await?,
        Err(EnvError::NotFound { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

/// Returns the line for an object directory. Git reads a line that starts with a quotation mark as a quoted path.
fn format_line(path: &Path) -> String {
    let path = path.display().to_string();
    if path.contains('\n') {
        let path = path.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        return format!("\"{path}\"\n");
    }
    format!("{path}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_path_with_a_line_feed_is_quoted() {
        for (path, expected) in [
            ("/a b/.git/objects", "/a b/.git/objects\n"),
            ("/a\"b/objects", "/a\"b/objects\n"),
            ("/a\n\"b\\/objects", "\"/a\\n\\\"b\\\\/objects\"\n"),
        ] {
            assert_eq!(format_line(Path::new(path)), expected);
        }
    }
}
