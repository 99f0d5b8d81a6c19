//! The index of a repository: languages, manifests, test commands, directories and an outline of symbols. It is a function of
//! a tree, so that it is made once for each tree and handed to each session.

mod outline;
mod render;
mod test_commands;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use self::outline::FileOutline;
use self::test_commands::TestCommand;
use crate::judging::{FileRole, RoleTable};
use crate::source_languages::language_of;

/// Maximum number of indexed files. Further files are counted.
pub(crate) const MAX_FILES: usize = 200_000;

/// Maximum number of files among which manifests, tests and sources are searched, those near the root first.
const MAX_CLASSIFIED: usize = 10_000;

/// Maximum number of manifests, and of files whose symbols are listed.
const MAX_MANIFESTS: usize = 50;
const MAX_OUTLINED: usize = 400;

/// Maximum size of a file that is read, and of all of them.
const MAX_FILE_BYTES: u64 = 256 << 10;
const MAX_TEXT_BYTES: u64 = 4 << 20;

/// Maximum number of listed directories, and their depth.
const MAX_DIRECTORIES: usize = 100;
const DIRECTORY_DEPTH: usize = 2;

/// A file of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeFile {
    /// Path from the root of the repository, with `/`.
    pub path: String,
    /// Size.
    pub bytes: u64,
    /// Id of its content in git.
    pub blob: String,
}

/// The index of a tree. [`render`](Self::render) returns it as text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepositoryIndex {
    sum: FileSum,
    /// Number of files that are not indexed.
    omitted: usize,
    /// Number of files among which manifests, tests and sources were searched.
    classified: usize,
    /// Languages with their files, the largest one first.
    languages: Vec<(String, FileSum)>,
    /// Directories with their files, by path.
    directories: Vec<(String, FileSum)>,
    tests: usize,
    manifests: Vec<String>,
    commands: Vec<TestCommand>,
    outline: Vec<FileOutline>,
    /// Number of sources without an outline.
    without_outline: usize,
}

/// Number and size of files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct FileSum {
    files: usize,
    bytes: u64,
}

impl FileSum {
    fn add(&mut self, bytes: u64) {
        self.files += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// Files of a tree, and the choice of those whose text the index needs.
#[derive(Debug)]
pub struct IndexPlan {
    /// Files near the root first.
    files: Vec<TreeFile>,
    omitted: usize,
    tests: usize,
    manifests: Vec<(TreeFile, FileRole)>,
    sources: Vec<TreeFile>,
    without_outline: usize,
}

impl IndexPlan {
    /// Chooses the files to read. The order of `files` does not matter.
    ///
    /// # Errors
    ///
    /// A pattern of the roles of files that is no glob.
    pub fn new(mut files: Vec<TreeFile>) -> Result<Self, globset::Error> {
        files.sort_by_cached_key(|file| (file.path.matches('/').count(), file.path.clone()));
        let omitted = files.len().saturating_sub(MAX_FILES);
        files.truncate(MAX_FILES);
        let roles = RoleTable::shared()?;
        let (mut tests, mut manifests, mut sources) = (0, Vec::new(), Vec::new());
        for file in files.iter().take(MAX_CLASSIFIED) {
            let role = roles.role(&file.path);
            let is_source = matches!(role, FileRole::Source | FileRole::Uncertain);
            if role.is_test() {
                tests += 1;
            } else if matches!(role, FileRole::Manifest(_)) && manifests.len() < MAX_MANIFESTS {
                manifests.push((file.clone(), role));
            } else if is_source && language_of(&file.path).is_some() {
                sources.push(file.clone());
            }
        }
        let mut left = MAX_TEXT_BYTES;
        let mut fits = |file: &TreeFile| {
            let is_small = file.bytes <= MAX_FILE_BYTES && file.bytes <= left;
            left -= if is_small { file.bytes } else { 0 };
            is_small
        };
        manifests.retain(|(file, _)| fits(file));
        let found = sources.len();
        sources.retain(fits);
        sources.truncate(MAX_OUTLINED);
        let without_outline = found - sources.len();
        Ok(Self { files, omitted, tests, manifests, sources, without_outline })
    }

    /// Returns the files whose text [`build`](Self::build) needs.
    pub fn needed(&self) -> impl Iterator<Item = &TreeFile> {
        self.manifests.iter().map(|(file, _)| file).chain(&self.sources)
    }

    /// Returns the index. `texts` has the needed texts by path; files that are no UTF-8 have none.
    #[must_use]
    pub fn build(self, texts: &BTreeMap<String, String>) -> RepositoryIndex {
        let mut sum = FileSum::default();
        let (mut languages, mut directories) =
            (BTreeMap::<&str, FileSum>::new(), BTreeMap::<&str, FileSum>::new());
        for TreeFile { path, bytes, .. } in &self.files {
            sum.add(*bytes);
            if let Some(language) = language_of(path) {
                languages.entry(language.name).or_default().add(*bytes);
            }
            for (end, _) in path.match_indices('/').take(DIRECTORY_DEPTH) {
                directories.entry(path.get(..end).unwrap_or_default()).or_default().add(*bytes);
            }
        }
        let mut languages = by_size(languages);
        languages.truncate(MAX_DIRECTORIES);
        let mut directories = by_size(directories);
        directories.truncate(MAX_DIRECTORIES);
        directories.sort_by(|(one, _), (other, _)| one.cmp(other));
        let text = |file: &TreeFile| texts.get(&file.path).map(String::as_str);
        let outline = self.sources.iter().filter_map(|file| FileOutline::find(&file.path, text(file)?));
        let outline: Vec<FileOutline> = outline.collect();
        let paths: BTreeSet<&str> =
            self.files.iter().take(MAX_CLASSIFIED).map(|file| file.path.as_str()).collect();
        let manifests: Vec<_> = self
            .manifests
            .iter()
            .map(|(file, role)| (file.path.as_str(), *role, text(file).unwrap_or_default()))
            .collect();
        RepositoryIndex {
            sum,
            omitted: self.omitted,
            classified: self.files.len().min(MAX_CLASSIFIED),
            tests: self.tests,
            commands: test_commands::find(&paths, &manifests),
            manifests: manifests.iter().map(|(path, _, _)| (*path).to_owned()).collect(),
            outline,
            without_outline: self.without_outline,
            languages,
            directories,
        }
    }
}

/// Returns sums with their names, the largest one first.
fn by_size(sums: BTreeMap<&str, FileSum>) -> Vec<(String, FileSum)> {
    let mut sums: Vec<_> = sums.into_iter().map(|(name, sum)| (name.to_owned(), sum)).collect();
    // Names are sorted already, and the sort is stable.
    sums.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.bytes));
    sums
}
