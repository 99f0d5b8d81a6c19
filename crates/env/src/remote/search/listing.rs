//! Listing of a remote tree, filtered by the ignore rules.

use std::{
    collections::{BTreeMap, HashMap},
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{
    file::FileKind,
    remote::files::RemoteEntry,
    search::{
        SearchScope,
        ignore_rules::{
            EXCLUDE_FILE, GITIGNORE_FILE, IGNORE_FILE, IgnoreFiles, IgnoreRules, REPOSITORY,
            governing_directories,
        },
    },
};

/// Contents of ignore files; `None` for files that do not exist.
pub(in crate::remote) type Rules = BTreeMap<PathBuf, Option<Vec<u8>>>;

/// The tree below a directory.
#[derive(Debug, Default)]
pub(in crate::remote) struct Listing {
    root: PathBuf,
    /// Entries with full paths, each directory before its entries.
    entries: Vec<RemoteEntry>,
    /// Rules in effect in the parent of the root.
    above: Option<Arc<IgnoreRules>>,
    /// Entries that were removed because they are ignored, without those below them.
    ignored: Vec<RemoteEntry>,
}

impl Listing {
    /// Creates a listing from entries with paths relative to `root`.
    pub(in crate::remote) fn new(root: &Path, mut entries: Vec<RemoteEntry>) -> Self {
        for entry in &mut entries {
            entry.path = root.join(&entry.path);
        }
        entries.sort_by(|left, right| left.path.cmp(&right.path));
        Self { root: root.to_path_buf(), entries, above: None, ignored: Vec::new() }
    }

    /// Returns the paths to read for the rules above the root.
    pub(in crate::remote) fn above(root: &Path) -> Vec<PathBuf> {
        root.ancestors().flat_map(rule_files_in).collect()
    }

    /// Sets the rules above the root.
    pub(in crate::remote) fn set_above(&mut self, working_directory: &Path, known: &Rules) {
        let is_repository = |directory: &&Path| is_there(known, &directory.join(REPOSITORY));
        let repository = self.root.ancestors().find(is_repository);
        for directory in governing_directories(&self.root, working_directory, repository) {
            if directory != self.root {
                self.above = Some(rules_of(&directory, self.above.as_ref(), known));
            }
        }
    }

    /// Returns the ignore files in the tree.
    pub(in crate::remote) fn rule_files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        for entry in &self.entries {
            let name = entry.path.file_name().unwrap_or_default();
            if name == IGNORE_FILE || name == GITIGNORE_FILE {
                files.push(entry.path.clone());
            } else if name == REPOSITORY {
                files.extend(entry.path.parent().map(|directory| directory.join(EXCLUDE_FILE)));
            }
        }
        files
    }

    /// Returns the ignore files that may be in the tree although they are not listed.
    pub(in crate::remote) fn possible_rule_files(&self) -> Vec<PathBuf> {
        let listed = self.entries.iter().filter(|entry| entry.stat.kind() == FileKind::Directory);
        let directories =
            std::iter::once(self.root.as_path()).chain(listed.map(|entry| entry.path.as_path()));
        directories
            .filter(|directory| directory.file_name().is_none_or(|name| name != REPOSITORY))
            .flat_map(rule_files_in)
            .collect()
    }

    /// Returns the rules in effect in the root.
    pub(in crate::remote) fn root_rules(&self, known: &Rules) -> Arc<IgnoreRules> {
        rules_of(&self.root, self.above.as_ref(), &self.with_repositories(known))
    }

    /// Returns the rules of a search that starts in the root.
    pub(in crate::remote) fn starting_rules(&self, known: &Rules, scope: SearchScope) -> Arc<IgnoreRules> {
        let in_root = self.entries.iter().filter(|entry| entry.path.parent() == Some(self.root.as_path()));
        let named = in_root.map(|entry| (entry.path.clone(), entry.stat.kind() == FileKind::Directory));
        scope.starting_in(self.root_rules(known), named)
    }

    /// Returns the rules with the repositories among the entries.
    fn with_repositories(&self, known: &Rules) -> Rules {
        let mut known = known.clone();
        for entry in
            self.entries.iter().filter(|entry| entry.path.file_name().is_some_and(|name| name == REPOSITORY))
        {
            known.insert(entry.path.clone(), Some(Vec::new()));
        }
        known
    }

    /// Removes the entries that the scope excludes. `own` are the rules in effect in the root.
    pub(in crate::remote) fn apply(&mut self, known: &Rules, own: Arc<IgnoreRules>, scope: SearchScope) {
        let known = self.with_repositories(known);
        let mut rules = HashMap::from([(self.root.clone(), own)]);
        self.entries.retain(|entry| {
            let is_dir = entry.stat.kind() == FileKind::Directory;
            // A directory without rules was excluded itself.
            let Some(of_parent) = entry.path.parent().and_then(|parent| rules.get(parent)) else {
                return false;
            };
            if scope.excludes(Some(&**of_parent), &entry.path, is_dir) {
                if scope.ignores(Some(&**of_parent), &entry.path, is_dir) {
                    self.ignored.push(entry.clone());
                }
                return false;
            }
            if is_dir {
                let own = rules_of(&entry.path, Some(of_parent), &known);
                rules.insert(entry.path.clone(), own);
            }
            true
        });
    }

    /// Returns the entries, each directory before its own.
    pub(in crate::remote) fn into_entries(self) -> Vec<RemoteEntry> {
        self.entries
    }

    /// Returns the entries that were removed because they are ignored, without those below them.
    pub(in crate::remote) fn ignored(&self) -> &[RemoteEntry] {
        &self.ignored
    }

    /// Returns files and links.
    pub(in crate::remote) fn files(&self) -> impl Iterator<Item = &RemoteEntry> {
        self.entries.iter().filter(|entry| entry.stat.is_link() || entry.stat.kind() == FileKind::File)
    }
}

/// Returns the paths that determine the rules of a directory.
fn rule_files_in(directory: &Path) -> Vec<PathBuf> {
    [REPOSITORY, IGNORE_FILE, GITIGNORE_FILE, EXCLUDE_FILE].iter().map(|name| directory.join(name)).collect()
}

fn rules_of(directory: &Path, parent: Option<&Arc<IgnoreRules>>, known: &Rules) -> Arc<IgnoreRules> {
    let content = |name: &str| known.get(&directory.join(name)).cloned().flatten().unwrap_or_default();
    let files = IgnoreFiles {
        ignore: content(IGNORE_FILE),
        gitignore: content(GITIGNORE_FILE),
        exclude: content(EXCLUDE_FILE),
        is_repository: is_there(known, &directory.join(REPOSITORY)),
    };
    IgnoreRules::below(parent, directory, &files)
}

fn is_there(known: &Rules, path: &Path) -> bool {
    known.get(path).is_some_and(Option::is_some)
}
