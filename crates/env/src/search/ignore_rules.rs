//! Ignore rules of a search: the rules of ripgrep, bounded by the repository or the working directory.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use ignore::{
    Match,
    gitignore::{Gitignore, GitignoreBuilder},
};

pub(crate) use super::ignore_files::{EXCLUDE_FILE, GITIGNORE_FILE, IGNORE_FILE, REPOSITORY};

/// Contents of the ignore files of one directory.
#[derive(Debug, Default)]
pub(crate) struct IgnoreFiles {
    pub(crate) ignore: Vec<u8>,
    pub(crate) gitignore: Vec<u8>,
    pub(crate) exclude: Vec<u8>,
    pub(crate) is_repository: bool,
}

/// The ignore rules in effect in a directory: its own, then its parents'.
#[derive(Debug)]
pub(crate) struct IgnoreRules {
    parent: Option<Arc<IgnoreRules>>,
    ignore: RuleFile,
    gitignore: RuleFile,
    exclude: RuleFile,
    is_repository: bool,
}

/// An ignore file.
#[derive(Clone, Debug)]
struct RuleFile {
    directory: PathBuf,
    lines: Vec<String>,
    matcher: Gitignore,
}

/// An entry of a directory: its path, and whether it is a directory itself.
pub(crate) type NamedEntry = (PathBuf, bool);

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
            ignore: RuleFile::parse(directory, &files.ignore),
            gitignore: RuleFile::parse(directory, &files.gitignore),
            exclude: RuleFile::parse(directory, &files.exclude),
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
            ignore = ignore.or(level.ignore.matcher.matched(path, is_dir));
            if in_repository {
                gitignore = gitignore.or(level.gitignore.matcher.matched(path, is_dir));
                exclude = exclude.or(level.exclude.matcher.matched(path, is_dir));
            }
            in_repository &= !level.is_repository;
        }
        ignore.or(gitignore).or(exclude).is_ignore()
    }

    /// Returns the rules without those that keep a search from all entries of its starting directory, if all are excluded.
    ///
    /// First those are left out that exclude every entry, such as `*`, else those that exclude a file. A directory with
    /// another rule stays excluded as long as there is something else to search.
    pub(crate) fn without_those_for_all(self: Arc<Self>, entries: &[NamedEntry]) -> Arc<Self> {
        let ignores = |rule: &Gitignore, (path, is_dir): &NamedEntry| rule.matched(path, *is_dir).is_ignore();
        let for_all = |rule: &Gitignore| entries.iter().all(|entry| ignores(rule, entry));
        let for_a_file = |rule: &Gitignore| entries.iter().any(|entry| !entry.1 && ignores(rule, entry));
        let for_any = |rule: &Gitignore| entries.iter().any(|entry| ignores(rule, entry));
        let choices: [&dyn Fn(&Gitignore) -> bool; 3] = [&for_all, &for_a_file, &for_any];
        let mut rules = self;
        while !entries.is_empty() && entries.iter().all(|(path, is_dir)| rules.excludes(path, *is_dir)) {
            let mut remaining = choices.iter().map(|choice| rules.without(*choice));
            let Some(fewer) = remaining.find(|fewer| !Arc::ptr_eq(fewer, &rules)) else { break };
            rules = fewer;
        }
        rules
    }

    /// Returns the rules without those that `is_left_out` chooses; the same value if it chooses none.
    fn without(self: &Arc<Self>, is_left_out: &dyn Fn(&Gitignore) -> bool) -> Arc<Self> {
        let parent = self.parent.as_ref().map(|parent| parent.without(is_left_out));
        let mut parents = parent.iter().zip(&self.parent);
        let has_same_parent = parents.all(|(parent, own)| Arc::ptr_eq(parent, own));
        let files = [&self.ignore, &self.gitignore, &self.exclude];
        let [ignore, gitignore, exclude] = files.map(|file| file.without(is_left_out));
        if has_same_parent && ignore.is_none() && gitignore.is_none() && exclude.is_none() {
            return Arc::clone(self);
        }
        Arc::new(Self {
            parent,
            ignore: ignore.unwrap_or_else(|| self.ignore.clone()),
            gitignore: gitignore.unwrap_or_else(|| self.gitignore.clone()),
            exclude: exclude.unwrap_or_else(|| self.exclude.clone()),
            is_repository: self.is_repository,
        })
    }

    fn levels(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |level| level.parent.as_deref())
    }
}

impl RuleFile {
    /// Parses an ignore file, skipping invalid lines as git does.
    fn parse(directory: &Path, content: &[u8]) -> Self {
        let content = String::from_utf8_lossy(content);
        Self::new(directory, content.trim_start_matches('\u{feff}').lines().map(str::to_owned).collect())
    }

    fn new(directory: &Path, lines: Vec<String>) -> Self {
        let matcher = matcher(directory, lines.iter().map(String::as_str));
        Self { directory: directory.to_path_buf(), lines, matcher }
    }

    /// Returns the file without the lines that `is_left_out` chooses; `None` if it chooses none.
    fn without(&self, is_left_out: &dyn Fn(&Gitignore) -> bool) -> Option<Self> {
        let is_kept = |line: &&String| !is_left_out(&matcher(&self.directory, [line.as_str()]));
        let lines: Vec<String> = self.lines.iter().filter(is_kept).cloned().collect();
        (lines.len() < self.lines.len()).then(|| Self::new(&self.directory, lines))
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

/// Returns what matches the lines of an ignore file.
fn matcher<'a>(directory: &Path, lines: impl IntoIterator<Item = &'a str>) -> Gitignore {
    let mut lines = lines.into_iter().peekable();
    if lines.peek().is_none() {
        return Gitignore::empty();
    }
    let mut builder = GitignoreBuilder::new(directory);
    for line in lines {
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
    fn rules_that_exclude_everything_are_left_out() {
        for (outer, own, entries, visited) in [
            // A project in an ignored directory.
            ("*", "", "a.rs src/", "a.rs src/"),
            ("*", "/target", "a.rs src/ target/", "a.rs src/"),
            ("*", "/target", "src/ target/", "src/"),
            ("*\nnode_modules/\n", "", "a.js node_modules/", "a.js"),
            ("node_modules/\n*\n", "", "src/ node_modules/", "src/"),
            ("/p/**", "*.o", "a.c a.o", "a.c"),
            ("/p/*", "!keep", "a keep", "keep"),
            // Each entry has a separate rule.
            ("", "*.log\n*.txt\n", "a.log b.txt", "a.log b.txt"),
            ("", "*.log\ntarget\n", "a.log target/", "a.log"),
            ("", "target\ndist\n", "dist/ target/", "dist/ target/"),
            // Two rules for the same entries.
            ("*", "*\n", "a src/", "a src/"),
            ("*.log", "a.*", "a.log", "a.log"),
            // Something is visited without that.
            ("*.log", "/target", "a.log b.rs target/", "b.rs"),
            ("", "", "a src/", "a src/"),
            ("*", "", "", ""),
        ] {
            let above = rules(None, "/r", &gitignore(outer));
            let start = rules(Some(&above), "/r/p", &gitignore(own));
            let named =
                |name: &str| (Path::new("/r/p").join(name.trim_end_matches('/')), name.ends_with('/'));
            let entries: Vec<NamedEntry> = entries.split_whitespace().map(named).collect();
            let start = start.without_those_for_all(&entries);
            let shown = |(path, is_dir): &NamedEntry| {
                format!("{}{}", path.file_name().unwrap().display(), if *is_dir { "/" } else { "" })
            };
            let found = entries.iter().filter(|(path, is_dir)| !start.excludes(path, *is_dir)).map(shown);
            assert_eq!(found.collect::<Vec<_>>().join(" "), visited, "{outer:?} and {own:?}");
        }
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
