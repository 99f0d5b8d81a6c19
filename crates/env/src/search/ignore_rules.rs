//! Ignore rules of a search: those of ripgrep, bounded by the repository or the working directory.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    sync::Arc,
};

use ignore::{
    Match,
    gitignore::{Gitignore, GitignoreBuilder},
};

/// Name of the directory, or file, that marks its parent as a repository.
pub(crate) const REPOSITORY: &str = ".git";

/// Ignore files of a directory, relative to it.
pub(crate) const IGNORE_FILE: &str = ".ignore";
pub(crate) const GITIGNORE_FILE: &str = ".gitignore";
pub(crate) const EXCLUDE_FILE: &str = ".git/info/exclude";

/// Returns true for the name of a file with ignore rules.
pub(crate) fn is_ignore_file(name: &OsStr) -> bool {
    name == IGNORE_FILE || name == GITIGNORE_FILE
}

/// Contents of the ignore files of one directory.
#[derive(Debug, Default)]
pub(crate) struct IgnoreFiles {
    pub(crate) ignore: Vec<u8>,
    pub(crate) gitignore: Vec<u8>,
    pub(crate) exclude: Vec<u8>,
    pub(crate) is_repository: bool,
}

/// The ignore rules in effect in a directory: its own, then those of its parents.
#[derive(Debug)]
pub(crate) struct IgnoreRules {
    parent: Option<Arc<IgnoreRules>>,
    ignore: Gitignore,
    gitignore: Gitignore,
    exclude: Gitignore,
    is_repository: bool,
}

impl IgnoreRules {
    /// Returns the rules in effect in `directory`, whose parent directory has the rules `parent`.
    pub(crate) fn below(parent: Option<&Arc<Self>>, directory: &Path, files: &IgnoreFiles) -> Arc<Self> {
        let has_files =
            [&files.ignore, &files.gitignore, &files.exclude].iter().any(|content| !content.is_empty());
        if let Some(parent) = parent
            && !has_files
            && !files.is_repository
        {
            return Arc::clone(parent);
        }
        Arc::new(Self {
            parent: parent.cloned(),
            ignore: parse(directory, &files.ignore),
            gitignore: parse(directory, &files.gitignore),
            exclude: parse(directory, &files.exclude),
            is_repository: files.is_repository,
        })
    }

    /// Returns true if an entry of the directory is ignored.
    ///
    /// `.ignore` of any level takes precedence over `.gitignore` of any level, which takes
    /// precedence over the repository's exclude file. Within one kind the nearest level decides.
    /// Git's rules end at the root of the repository.
    pub(crate) fn excludes(&self, path: &Path, is_dir: bool) -> bool {
        if path.file_name().is_some_and(|name| name == REPOSITORY) {
            return true;
        }
        let (mut ignore, mut gitignore, mut exclude) = (Match::None, Match::None, Match::None);
        let mut in_repository = true;
        for level in self.levels() {
            ignore = ignore.or(level.ignore.matched(path, is_dir));
            if in_repository {
                gitignore = gitignore.or(level.gitignore.matched(path, is_dir));
                exclude = exclude.or(level.exclude.matched(path, is_dir));
            }
            in_repository &= !level.is_repository;
        }
        ignore.or(gitignore).or(exclude).is_ignore()
    }

    fn levels(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |level| level.parent.as_deref())
    }
}

/// Returns the directories whose rules apply to a search in `root`, outermost first, `root` last.
///
/// Rules apply from the root of the repository, or without one from the working directory, so that
/// nothing outside the project hides its files.
pub(crate) fn governing_directories(
    root: &Path,
    working_directory: &Path,
    repository: Option<&Path>,
) -> Vec<PathBuf> {
    let top = match repository {
        Some(repository) => repository,
        None if root.starts_with(working_directory) => working_directory,
        None => root,
    };
    let mut directories: Vec<PathBuf> =
        root.ancestors().take_while(|directory| directory.starts_with(top)).map(Path::to_path_buf).collect();
    directories.reverse();
    directories
}

/// Parses an ignore file, skipping invalid lines as git does.
fn parse(directory: &Path, content: &[u8]) -> Gitignore {
    if content.is_empty() {
        return Gitignore::empty();
    }
    let mut builder = GitignoreBuilder::new(directory);
    let content = String::from_utf8_lossy(content);
    for line in content.trim_start_matches('\u{feff}').lines() {
        if let Err(error) = builder.add_line(None, line) {
            tracing::debug!(%error, directory = %directory.display(), "bad ignore rule");
        }
    }
    builder.build().unwrap_or_else(|error| {
        tracing::debug!(%error, directory = %directory.display(), "bad ignore file");
        Gitignore::empty()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(parent: Option<&Arc<IgnoreRules>>, directory: &str, files: &IgnoreFiles) -> Arc<IgnoreRules> {
        IgnoreRules::below(parent, Path::new(directory), files)
    }

    fn gitignore(content: &str) -> IgnoreFiles {
        IgnoreFiles { gitignore: content.into(), ..IgnoreFiles::default() }
    }

    #[test]
    fn the_nearest_level_decides() {
        let outer = rules(None, "/r", &gitignore("*.log\n/build\n"));
        let inner = rules(Some(&outer), "/r/a", &gitignore("!keep.log\n"));
        for (path, is_dir, is_excluded) in [
            ("/r/a/x.log", false, true),
            ("/r/a/keep.log", false, false),
            ("/r/a/build", true, false),
            ("/r/a/.git", true, true),
            ("/r/a/.github", true, false),
        ] {
            assert_eq!(inner.excludes(Path::new(path), is_dir), is_excluded, "{path}");
        }
        assert!(outer.excludes(Path::new("/r/build"), true));
    }

    #[test]
    fn gitignores_end_at_the_repository() {
        let outer = rules(
            None,
            "/r",
            &IgnoreFiles { ignore: "*.a\n".into(), gitignore: "*.b\n".into(), ..IgnoreFiles::default() },
        );
        let files = IgnoreFiles { is_repository: true, exclude: "*.c\n".into(), ..IgnoreFiles::default() };
        let inner = rules(Some(&outer), "/r/nested", &files);
        for (name, is_excluded) in [("x.a", true), ("x.b", false), ("x.c", true)] {
            let path = Path::new("/r/nested").join(name);
            assert_eq!(inner.excludes(&path, false), is_excluded, "{name}");
        }
    }

    #[test]
    fn a_directory_without_rules_shares_those_of_its_parent() {
        let outer = rules(None, "/r", &gitignore("x"));
        let inner = rules(Some(&outer), "/r/a", &IgnoreFiles::default());
        assert!(Arc::ptr_eq(&outer, &inner));
    }

    #[test]
    fn rules_start_at_the_repository_or_the_working_directory() {
        let governing = |root: &str, repository: Option<&str>| {
            governing_directories(Path::new(root), Path::new("/w"), repository.map(Path::new))
        };
        let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        assert_eq!(governing("/w/a", None), paths(&["/w", "/w/a"]));
        assert_eq!(governing("/w/a", Some("/")), paths(&["/", "/w", "/w/a"]));
        assert_eq!(governing("/w/a", Some("/w/a")), paths(&["/w/a"]));
        assert_eq!(governing("/other/a", None), paths(&["/other/a"]));
    }
}
