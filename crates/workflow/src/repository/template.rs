//! Working trees that share blocks with a template, on file systems with such copies.

use std::path::Path;

use pintle_env::{ExecRequest, ExecutionEnvironment, ExecutionEnvironmentExt as _, shell_word};

use super::{REMOVAL, RepositoryError, remove_directory};
use crate::git::RepositoryGit;

/// Creates the template of a task, with the files of a commit, if the file system below `directory` can share blocks. A
/// template costs as much as a working tree, so there is none elsewhere.
pub(super) async fn create(
    machine: &dyn ExecutionEnvironment,
    git: &RepositoryGit,
    (directory, template): (&Path, &Path),
    commit: &str,
) -> Result<(), RepositoryError> {
    remove_directory(machine, template).await?;
    let probe = directory.join("HEAD");
    let copied = directory.join("shared-blocks");
    let line = format!("cp --reflink=always -- {} {}", word(&probe), word(&copied));
    let probed = machine.exec_command(ExecRequest::new(line).with_timeout(REMOVAL)).await?;
    // A failed attempt leaves an empty file.
    remove_directory(machine, &copied).await?;
    if !probed.success() {
        return Ok(());
    }
    machine.create_directory(template).await?;
    let scratch = tempfile::tempdir_in(directory)?;
    let git = git.clone().with_work_tree(template).with_index(&scratch.path().join("index"));
    git.run(&check_out(commit)).await?;
    Ok(())
}

/// Checks a commit out in the empty working tree `root`, without a branch: the files that the template has as copies
/// that share its blocks, and all others from the objects. `git` is the repository at `root`.
pub(super) async fn fill(
    machine: &dyn ExecutionEnvironment,
    git: &RepositoryGit,
    (template, root): (&Path, &Path),
    (base, commit): (&str, &str),
) -> Result<(), RepositoryError> {
    let head = ["update-ref", "--no-deref", "HEAD", commit];
    if !machine.file_exists(template).await? {
        git.run_all(&[&head, &check_out(commit)], None).await?;
        return Ok(());
    }
    // Modes are kept, and time stamps are new.
    let line = format!("cp -RP --reflink=always -- {}/. {}", word(template), word(root));
    let copied = machine.exec_command(ExecRequest::new(line).with_timeout(REMOVAL)).await?;
    if !copied.success() {
        let message = copied.stderr.head_text_lossy(200).unwrap_or_default();
        let root = root.display();
        return Err(RepositoryError::Unfit(format!("cannot copy the files to {root}: {}", message.trim())));
    }
    let refresh = ["update-index", "-q", "--refresh"];
    git.run_all(&[&head, &["read-tree", base], &refresh, &check_out(commit)], None).await?;
    Ok(())
}

/// Returns the arguments of git that write the index of a commit, and its files that the index does not have.
fn check_out(commit: &str) -> [&str; 4] {
    ["read-tree", "--reset", "-u", commit]
}

fn word(path: &Path) -> String {
    shell_word(&path.display().to_string())
}
