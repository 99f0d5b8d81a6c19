//! Repositories in a worktree with content that a merge does not include: untracked and ignored ones, also in
//! submodules, and submodules with commits or stashes.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::git::Git;
use crate::failure::Failure;
use crate::process_env::ProcessEnv;

/// Names in a listing of untracked or ignored files.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct GitFileListing<'a> {
    /// Directories of repositories, each with a slash at its end.
    pub(super) repositories: Vec<String>,
    /// Files outside of these repositories.
    pub(super) files: Vec<&'a [u8]>,
}

/// Git directory of a submodule.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SubmoduleDirectory {
    /// Name of the submodule, which usually is its path.
    name: String,
    directory: PathBuf,
}

/// Commit that a tree records for a submodule.
#[derive(Debug, PartialEq, Eq)]
struct Gitlink<'a> {
    path: &'a [u8],
    commit: String,
}

impl<'a> GitFileListing<'a> {
    /// Reads the output of `git ls-files --others -z` in `root`. Git lists a repository with a working tree as a directory, and
    /// the files of a bare repository one by one.
    pub(super) fn read(output: &'a [u8], root: &Path, process_env: &ProcessEnv) -> Self {
        let names: Vec<&'a [u8]> = names(output).collect();
        let is_bare = |directory: &&[u8]| {
            let directory = root.join(OsStr::from_bytes(directory));
            is_git_directory(&directory, process_env)
        };
        let heads = names.iter().filter_map(|name| name.strip_suffix(b"/HEAD"));
        let bare: BTreeSet<&[u8]> = heads.filter(is_bare).collect();
        let is_in_bare = |name: &[u8]| {
            let slashes = name.iter().enumerate().filter(|(_, byte)| **byte == b'/');
            slashes.filter_map(|(at, _)| name.get(..at)).any(|above| bare.contains(above))
        };
        let outside = names.into_iter().filter(|name| !is_in_bare(name));
        let (directories, files): (Vec<&[u8]>, Vec<&[u8]>) = outside.partition(|name| name.ends_with(b"/"));
        let mut repositories: Vec<String> = directories.into_iter().map(lossy).collect();
        let outermost = bare.iter().filter(|name| !is_in_bare(name));
        repositories.extend(outermost.map(|name| format!("{}/", lossy(name))));
        Self { repositories, files }
    }
}

/// Returns the names in output of git that ends each with a zero byte.
fn names(output: &[u8]) -> impl Iterator<Item = &[u8]> {
    output.split(|byte| *byte == 0).filter(|name| !name.is_empty())
}

pub(super) fn lossy(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

/// Returns whether a directory with a `HEAD` is a git directory.
fn is_git_directory(directory: &Path, process_env: &ProcessEnv) -> bool {
    ["objects", "refs"].iter().all(|name| process_env.is_directory(&directory.join(name)))
}

/// Returns the submodules of the worktree at `root` with commits or stashes that are in none of their remotes. The git
/// directories of these submodules belong to the worktree and are removed with it, also after the submodule was removed.
///
/// A commit that a tree records for a submodule at `base` is in the repository of another working tree. A commit that only a
/// reflog has is not searched for, as in the worktree itself.
pub(super) async fn submodules_with_work(
    root: &Path,
    base: &str,
    process_env: &ProcessEnv,
) -> Result<Vec<String>, Failure> {
    let git = Git::new(root, process_env)?;
    let own = PathBuf::from(git.run(&["rev-parse", "--absolute-git-dir"]).await?);
    let tree = git.bytes(&list_tree(base)).await?;
    let gitlinks = gitlinks(&tree);
    let recorded: Vec<String> = gitlinks.iter().map(|link| link.commit.clone()).collect();
    let mut modules = find_submodules(&own.join("modules"), process_env);
    // A submodule that was cloned in place has its git directory in the worktree.
    let in_place = gitlinks.iter().map(|link| SubmoduleDirectory {
        name: lossy(link.path),
        directory: root.join(OsStr::from_bytes(link.path)).join(".git"),
    });
    modules.extend(in_place.filter(|module| is_git_directory(&module.directory, process_env)));
    let mut pending: Vec<(SubmoduleDirectory, Vec<String>)> =
        modules.into_iter().map(|module| (module, recorded.clone())).collect();
    let mut found = Vec::new();
    while let Some((module, recorded)) = pending.pop() {
        let git = Git::with_git_directory(&module.directory, process_env)?;
        if has_work(&git, &recorded).await? {
            found.push(find_submodule_path(&module, &git, root, process_env).await?);
        }
        pending.extend(nested(&module, &git, &recorded, process_env).await?);
    }
    found.sort();
    Ok(found)
}

/// Returns the ignored repositories in the checked out submodules of the worktree at `root` and in those below them, each with
/// a slash at its end. `tree` is the tree of the worktree's files. The status of a submodule does not contain them.
///
/// # Errors
///
/// A failure with git's own message.
pub(super) async fn ignored_in_submodules(
    root: &Path,
    tree: &str,
    process_env: &ProcessEnv,
) -> Result<Vec<String>, Failure> {
    let entries = Git::new(root, process_env)?.bytes(&list_tree(tree)).await?;
    let mut pending: Vec<PathBuf> = submodule_paths(&entries).map(PathBuf::from).collect();
    // A submodule may be replaced by a link to a directory above it.
    let mut visited = BTreeSet::from([process_env.real_path(root)]);
    let mut found = Vec::new();
    while let Some(path) = pending.pop() {
        let submodule = root.join(&path);
        // In a directory without a repository, git uses the one above it.
        let has_repository = process_env.paths_in(&submodule).iter().any(|path| path.ends_with(".git"));
        if !has_repository || !visited.insert(process_env.real_path(&submodule)) {
            continue;
        }
        let git = Git::new(&submodule, process_env)?;
        let listing = git.bytes(&LIST_IGNORED).await?;
        let ignored = GitFileListing::read(&listing, &submodule, process_env).repositories;
        found.extend(ignored.iter().map(|name| format!("{}/{name}", path.display())));
        let entries = git.bytes(&["ls-files", "-z", "--stage"]).await?;
        pending.extend(submodule_paths(&entries).map(|below| path.join(below)));
    }
    found.sort();
    Ok(found)
}

/// Returns whether a submodule has commits or stashes that neither its remotes nor the recorded commits have.
async fn has_work(git: &Git, recorded: &[String]) -> Result<bool, Failure> {
    let recorded = recorded.iter().map(String::as_str);
    let elsewhere: Vec<&str> = ["--not", "--remotes"].into_iter().chain(recorded).collect();
    let references = ["rev-list", "--ignore-missing", "--max-count=1", "--exclude=refs/tags/*", "--all"];
    if !git.run(&[&references[..], &elsewhere[..]].concat()).await?.is_empty() {
        return Ok(true);
    }
    // A tag of the remote may name a commit that is in no branch. A commit that was created here was also checked out
    // here.
    let tags = ["rev-list", "--ignore-missing", "--tags"];
    let tagged = git.run(&[&tags[..], &elsewhere[..]].concat()).await?;
    if tagged.is_empty() {
        return Ok(false);
    }
    let log = git.attempt(&["rev-list", "--ignore-missing", "--walk-reflogs", "HEAD"]).await?;
    let log = log.unwrap_or_default();
    let checked_out: BTreeSet<&str> = log.lines().collect();
    Ok(tagged.lines().any(|commit| checked_out.contains(commit)))
}

/// Returns the submodules of a submodule, with the commits that are recorded for them.
async fn nested(
    module: &SubmoduleDirectory,
    git: &Git,
    recorded: &[String],
    process_env: &ProcessEnv,
) -> Result<Vec<(SubmoduleDirectory, Vec<String>)>, Failure> {
    let modules = find_submodules(&module.directory.join("modules"), process_env);
    if modules.is_empty() {
        return Ok(Vec::new());
    }
    let mut below = Vec::new();
    for commit in recorded {
        // The other commits belong to other submodules.
        if git.attempt(&["cat-file", "-e", commit]).await?.is_ok() {
            let tree = git.bytes(&list_tree(commit)).await?;
            below.extend(gitlinks(&tree).into_iter().map(|link| link.commit));
        }
    }
    let named = modules.into_iter().map(|inner| {
        let name = format!("{}/{}", module.name, inner.name);
        (SubmoduleDirectory { name, ..inner }, below.clone())
    });
    Ok(named.collect())
}

/// Returns the path of a submodule in the worktree, or its name if git no longer knows the path.
async fn find_submodule_path(
    module: &SubmoduleDirectory,
    git: &Git,
    root: &Path,
    process_env: &ProcessEnv,
) -> Result<String, Failure> {
    let Ok(tree) = git.attempt(&["config", "--get", "core.worktree"]).await? else {
        return Ok(module.name.clone());
    };
    let path = process_env.real_path(&process_env.real_path(&module.directory).join(tree));
    let below = path.strip_prefix(process_env.real_path(root)).ok().map(Path::to_string_lossy);
    Ok(below
        .filter(|below| !below.is_empty())
        .map_or_else(|| module.name.clone(), |below| below.into_owned()))
}

/// Returns the git directories of submodules below a directory `modules`, without nested submodules.
fn find_submodules(modules: &Path, process_env: &ProcessEnv) -> Vec<SubmoduleDirectory> {
    let mut found = Vec::new();
    let mut pending = vec![modules.to_path_buf()];
    while let Some(directory) = pending.pop() {
        for path in process_env.directories_in(&directory) {
            if is_git_directory(&path, process_env) {
                let name = path.strip_prefix(modules).unwrap_or(&path).to_string_lossy().into_owned();
                found.push(SubmoduleDirectory { name, directory: path });
            } else {
                pending.push(path);
            }
        }
    }
    found
}

/// Arguments of git that list the ignored files of a working tree, for [`GitFileListing::read`].
pub(super) const LIST_IGNORED: [&str; 5] = ["ls-files", "-z", "--others", "--ignored", "--exclude-standard"];

fn list_tree(tree: &str) -> [&str; 5] {
    ["ls-tree", "-r", "-z", "--full-tree", tree]
}

/// Returns the paths of submodules in the output of [`list_tree`] or `git ls-files -z --stage`.
fn submodule_paths(output: &[u8]) -> impl Iterator<Item = &OsStr> {
    names(output).filter_map(|entry| {
        let tab = entry.iter().position(|byte| *byte == b'\t')?;
        let (fields, path) = entry.split_at(tab);
        fields.starts_with(b"160000 ").then(|| OsStr::from_bytes(path.strip_prefix(b"\t").unwrap_or(path)))
    })
}

/// Returns the commits of submodules in the output of [`list_tree`].
fn gitlinks(output: &[u8]) -> Vec<Gitlink<'_>> {
    let found = names(output).filter_map(|entry| {
        let mut fields = entry.splitn(2, |byte| *byte == b'\t');
        let commit = fields.next()?.strip_prefix(b"160000 commit ")?;
        Some(Gitlink { path: fields.next()?, commit: lossy(commit) })
    });
    found.collect()
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the tests create the directories that are found")]
mod tests {
    use super::*;

    #[test]
    fn bare_repositories_are_found_among_files() {
        let root = tempfile::tempdir().unwrap();
        // The first two are repositories, one in the other. The third lacks `refs`.
        for directory in [
            "a/x.git/objects",
            "a/x.git/refs",
            "a/x.git/modules/y/objects",
            "a/x.git/modules/y/refs",
            "z/objects",
        ] {
            std::fs::create_dir_all(root.path().join(directory)).unwrap();
        }
        let process_env = ProcessEnv::from_variables([]);
        let output =
            b"HEAD\0a/HEAD\0a/x.git/HEAD\0a/x.git/config\0a/x.git/modules/y/HEAD\0a/x.gitignore\0nested/\0z/HEAD\0";
        let listing = GitFileListing::read(output, root.path(), &process_env);
        assert_eq!(listing.repositories, ["nested/", "a/x.git/"]);
        let files: Vec<String> = listing.files.into_iter().map(lossy).collect();
        assert_eq!(files, ["HEAD", "a/HEAD", "a/x.gitignore", "z/HEAD"]);
        assert_eq!(
            GitFileListing::read(b"", root.path(), &process_env),
            GitFileListing { repositories: vec![], files: vec![] }
        );
    }

    #[test]
    fn gitlinks_are_found_by_their_mode() {
        let output =
            b"100644 blob aa\t160000 commit bb\x00160000 commit cc\tvendor/a\tb\x00040000 tree dd\tx\0";
        let expected = Gitlink { path: b"vendor/a\tb", commit: "cc".to_owned() };
        assert_eq!(gitlinks(output), [expected]);
        let staged = b"100644 aa 0\ta\x00160000 bb 0\tvendor/a\tb\0";
        for output in [&output[..], staged] {
            let paths: Vec<&OsStr> = submodule_paths(output).collect();
            assert_eq!(paths, ["vendor/a\tb"]);
        }
    }

    #[test]
    fn modules_have_the_names_of_their_submodules() {
        let root = tempfile::tempdir().unwrap();
        for module in ["lib", "vendor/sub", "vendor/sub/modules/inner"] {
            for part in ["objects", "refs"] {
                std::fs::create_dir_all(root.path().join(module).join(part)).unwrap();
            }
        }
        // A loop of links is not followed.
        std::os::unix::fs::symlink(root.path(), root.path().join("vendor/loop")).unwrap();
        let process_env = ProcessEnv::from_variables([]);
        let names = |modules: &Path| {
            let mut names: Vec<String> =
                find_submodules(modules, &process_env).into_iter().map(|module| module.name).collect();
            names.sort();
            names
        };
        assert_eq!(names(root.path()), ["lib", "vendor/sub"]);
        assert_eq!(names(&root.path().join("vendor/sub/modules")), ["inner"]);
        assert!(names(&root.path().join("missing")).is_empty());
    }
}
