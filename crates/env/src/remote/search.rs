//! Remote search. The remote `find` lists files and its `rg` or `grep` preselects them; the rules
//! and the search engine of all environments decide locally, so results are the same everywhere.

pub(super) mod listing;
mod literal;

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use self::{
    listing::{Listing, Rules},
    literal::required_literal,
};
use super::{
    Remote,
    files::{RemoteEntry, Stat, bytes_of, parse_entries, unexpected},
    nonce::nonce,
    records::{Piece, RecordMarker, Scanner},
    script::HelperScript,
    transport::Transport,
};
use crate::{
    environment::ExecutionEnvironment,
    error::EnvError,
    file::{FileKind, MAX_READ},
    search::{
        GlobRequest, GrepOutput, GrepRequest, SearchScope, newest_first,
        pattern::GlobPattern,
        query::{FileOutcome, Query},
        results::Results,
    },
};

const TREE: &str = include_str!("scripts/tree.sh");
const CONTENTS: &str = include_str!("scripts/contents.sh");
const TARGETS: &str = include_str!("scripts/targets.sh");
const PREFILTER: &str = include_str!("scripts/prefilter.sh");

/// Maximum number of entries of a searched tree, ignored ones included.
const MAX_TREE: usize = 1_000_000;

/// Maximum size of the paths passed to one script; systems accept at least 128 KiB of arguments per
/// call.
const MAX_ARGUMENTS: usize = 96 << 10;

/// Total size of the files fetched in one batch, unless a single file is larger.
const MAX_BATCH: u64 = 8 << 20;

/// Content of a remote path.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Content {
    File(Vec<u8>),
    Directory,
    Missing,
    Unreadable,
}

/// Result of preselecting candidates remotely.
#[derive(Debug, Default)]
struct Prefilter {
    /// Outcome of candidates that need not be fetched.
    known: BTreeMap<PathBuf, KnownOutcome>,
}

/// Outcome of a file without fetching it.
#[derive(Clone, Copy, Debug)]
enum KnownOutcome {
    NoMatch,
    Binary,
    Unreadable,
}

impl<T: Transport> Remote<T> {
    pub(super) async fn match_names(
        &self,
        request: &GlobRequest,
        root: &Path,
    ) -> Result<Vec<PathBuf>, EnvError> {
        self.stat(root).await?;
        let pattern = GlobPattern::parse(&request.pattern, root, self.home_directory())?;
        let scope = pattern.scope(request.scope);
        let listing = self.listing(&pattern.base, pattern.max_depth, scope).await?;
        let (mut found, mut links) = (Vec::new(), Vec::new());
        for entry in listing.files().filter(|entry| pattern.matches(&entry.path)) {
            if entry.stat.is_link() {
                links.push(entry.path.clone());
            } else {
                found.push((entry.stat.modified, entry.path.clone()));
            }
            pattern.check_count(found.len() + links.len())?;
        }
        for (path, target) in self.targets(links).await? {
            if let Some(stat) = target.filter(|stat| stat.kind() != FileKind::Directory) {
                found.push((stat.modified, path));
            }
        }
        Ok(newest_first(found))
    }

    pub(super) async fn search_files(
        &self,
        request: &GrepRequest,
        root: &Path,
    ) -> Result<GrepOutput, EnvError> {
        let query = Query::compile(request)?;
        let mut results = Results::new(request);
        if self.stat(root).await?.is_file() {
            let bytes = self.read_bytes(root, None).await?;
            results.add(root.to_path_buf(), query.search_bytes(root.to_path_buf(), bytes).await?);
            return Ok(results.finish(0));
        }
        let listing = self.listing(root, None, request.scope).await?;
        let mut candidates: Vec<RemoteEntry> = listing
            .files()
            .filter(|entry| !entry.stat.is_link() && query.admits(root, &entry.path))
            .cloned()
            .collect();
        candidates.sort_by(|left, right| left.path.cmp(&right.path));
        let prefilter = self.prefilter(request, &candidates).await?;
        let mut wanted = Vec::new();
        for candidate in candidates {
            match prefilter.known.get(&candidate.path) {
                None => wanted.push(candidate),
                Some(KnownOutcome::NoMatch) => {}
                Some(KnownOutcome::Binary) => results.add(candidate.path, FileOutcome::Binary),
                Some(KnownOutcome::Unreadable) => results.add(candidate.path, FileOutcome::Unreadable),
            }
        }
        self.search_wanted(&query, &wanted, &mut results).await?;
        Ok(results.finish(listing.ignored().len()))
    }

    /// Fetches files in path order and searches them while they can be among the first results.
    async fn search_wanted(
        &self,
        query: &Query,
        wanted: &[RemoteEntry],
        results: &mut Results,
    ) -> Result<(), EnvError> {
        let mut rest = wanted;
        while let Some(first) = rest.first().filter(|first| results.wants(&first.path)) {
            let mut budget = MAX_BATCH.saturating_sub(first.stat.len);
            let more = rest.iter().skip(1).take_while(|entry| {
                let fits = entry.stat.len <= budget;
                budget = budget.saturating_sub(entry.stat.len);
                fits
            });
            let count = 1 + more.count();
            let (batch, behind) = rest.split_at_checked(count).unwrap_or((rest, &[]));
            rest = behind;
            let paths: Vec<_> = batch.iter().map(|entry| entry.path.clone()).collect();
            for (path, content) in self.contents(paths).await? {
                let outcome = match content {
                    Content::File(bytes) if bytes.len() as u64 <= MAX_READ => {
                        query.search_bytes(path.clone(), bytes).await?
                    }
                    Content::File(_) | Content::Directory | Content::Missing | Content::Unreadable => {
                        FileOutcome::Unreadable
                    }
                };
                results.add(path, outcome);
            }
        }
        Ok(())
    }

    /// Asks the remote side which files can match, if it has a way to know.
    async fn prefilter(
        &self,
        request: &GrepRequest,
        candidates: &[RemoteEntry],
    ) -> Result<Prefilter, EnvError> {
        let mut prefilter = Prefilter::default();
        let literal = required_literal(&request.pattern).filter(|_| !request.case_insensitive);
        let (tool, pattern) = match literal {
            _ if self.system_info().await?.has_ripgrep => ("rg", request.pattern.clone()),
            Some(literal) => ("grep", literal),
            None => return Ok(prefilter),
        };
        let flag = if request.case_insensitive { "--ignore-case" } else { "--case-sensitive" };
        // The answer lists one path per line.
        let askable =
            candidates.iter().map(|entry| &entry.path).filter(|path| !bytes_of(path).contains(&b'\n'));
        for batch in batches(askable.cloned().collect()) {
            let fixed = [tool.as_bytes(), flag.as_bytes(), pattern.as_bytes()];
            let arguments: Vec<_> =
                fixed.into_iter().chain(batch.iter().map(|path| bytes_of(path))).collect();
            let answer = self
                .run_file_script("search", Path::new("/"), HelperScript::new(PREFILTER, &arguments))
                .await?;
            prefilter.take(&batch, &answer);
        }
        Ok(prefilter)
    }

    /// Reads each path, in order.
    pub(super) async fn contents(&self, paths: Vec<PathBuf>) -> Result<Vec<(PathBuf, Content)>, EnvError> {
        let mut contents = Vec::new();
        let limit = (MAX_READ + 1).to_string();
        for batch in batches(paths) {
            let marker = RecordMarker::new(&nonce());
            let fixed = [marker.as_bytes(), limit.as_bytes()];
            let arguments: Vec<_> =
                fixed.into_iter().chain(batch.iter().map(|path| bytes_of(path))).collect();
            let answer =
                self.run_file_script("read", Path::new("/"), HelperScript::new(CONTENTS, &arguments)).await?;
            contents.extend(batch.into_iter().zip(parse_contents(&marker, &answer)));
        }
        Ok(contents)
    }

    /// Returns the metadata of each link's target, if it exists.
    async fn targets(&self, paths: Vec<PathBuf>) -> Result<Vec<(PathBuf, Option<Stat>)>, EnvError> {
        let mut targets = Vec::new();
        for batch in batches(paths) {
            let arguments: Vec<_> = batch.iter().map(|path| bytes_of(path)).collect();
            let answer = self
                .run_file_script("look at", Path::new("/"), HelperScript::new(TARGETS, &arguments))
                .await?;
            let answer = String::from_utf8_lossy(&answer).into_owned();
            targets.extend(batch.into_iter().zip(answer.lines().map(Stat::parse)));
        }
        Ok(targets)
    }

    /// Lists the files below a directory within the scope; empty if it is not a directory.
    async fn listing(
        &self,
        root: &Path,
        max_depth: Option<usize>,
        scope: SearchScope,
    ) -> Result<Listing, EnvError> {
        let depth = max_depth.map(|depth| depth.to_string());
        let arguments: Vec<_> =
            std::iter::once(bytes_of(root)).chain(depth.as_ref().map(|depth| depth.as_bytes())).collect();
        let listed = match self.run_file_script("list", root, HelperScript::new(TREE, &arguments)).await {
            Ok(listed) => listed,
            Err(
                EnvError::NotFound { .. }
                | EnvError::NotADirectory { .. }
                | EnvError::PermissionDenied { .. },
            ) => {
                return Ok(Listing::default());
            }
            Err(error) => return Err(error),
        };
        let entries = parse_entries(&listed, MAX_TREE + 1);
        let entries = entries.ok_or_else(|| unexpected("list", root, &listed))?;
        if entries.len() > MAX_TREE {
            return Err(EnvError::TooManyEntries { path: root.to_path_buf(), limit: MAX_TREE });
        }
        let mut listing = Listing::new(root, entries);
        if scope.ignored {
            // No ignore rules apply.
            let none = Rules::new();
            listing.apply(&none, listing.root_rules(&none), scope);
            return Ok(listing);
        }
        let above = self.contents(Listing::above(root)).await?;
        listing.set_above(self.working_directory(), &above.into_iter().map(Content::into_rule).collect());
        let rules = self.contents(listing.rule_files()).await?;
        let rules = rules.into_iter().map(Content::into_rule).collect();
        listing.apply(&rules, listing.starting_rules(&rules, scope), scope);
        Ok(listing)
    }
}

impl Content {
    /// Converts the content of an ignore file to rules. A directory counts as present; an
    /// unreadable file has no rules.
    pub(super) fn into_rule((path, content): (PathBuf, Self)) -> (PathBuf, Option<Vec<u8>>) {
        let rule = match content {
            Self::File(bytes) => Some(bytes),
            Self::Directory | Self::Unreadable => Some(Vec::new()),
            Self::Missing => None,
        };
        (path, rule)
    }
}

impl Prefilter {
    /// Parses the output of `prefilter.sh` for a batch.
    fn take(&mut self, batch: &[PathBuf], answer: &[u8]) {
        let mut lines = answer.split(|byte| *byte == b'\n');
        let path = |line: &[u8]| PathBuf::from(OsStr::from_bytes(line));
        let list = |lines: &mut dyn Iterator<Item = &[u8]>| -> BTreeSet<PathBuf> {
            lines.take_while(|line| !line.is_empty()).map(path).collect()
        };
        let unreadable = list(&mut lines);
        let mut can_match = list(&mut lines);
        let mut binary = BTreeSet::new();
        for line in lines {
            match line.split_at_checked(2) {
                Some((b"z ", name)) => {
                    binary.insert(path(name));
                }
                Some((b"w ", name)) => {
                    can_match.insert(path(name));
                }
                Some(_) | None => {}
            }
        }
        for path in batch.iter().filter(|path| !can_match.contains(*path)) {
            let known = if unreadable.contains(path) {
                KnownOutcome::Unreadable
            } else if binary.contains(path) {
                KnownOutcome::Binary
            } else {
                KnownOutcome::NoMatch
            };
            self.known.insert(path.clone(), known);
        }
    }
}

/// Parses the output of `contents.sh`.
fn parse_contents(marker: &RecordMarker, answer: &[u8]) -> Vec<Content> {
    let (mut contents, mut bytes) = (Vec::new(), Vec::new());
    Scanner::new(marker).feed(answer, |piece| match piece {
        Piece::Text(text) => bytes.extend(text),
        Piece::Record(record) => {
            let bytes = std::mem::take(&mut bytes);
            contents.push(match record.as_str() {
                "file" => Content::File(bytes),
                "directory" => Content::Directory,
                "missing" => Content::Missing,
                _ => Content::Unreadable,
            });
        }
    });
    contents
}

/// Splits paths into batches that fit the arguments of one script.
pub(super) fn batches(paths: Vec<PathBuf>) -> Vec<Vec<PathBuf>> {
    let mut batches: Vec<Vec<PathBuf>> = Vec::new();
    let mut size = usize::MAX;
    for path in paths {
        // Each argument adds a pointer and a terminator.
        size = size.saturating_add(bytes_of(&path).len() + 16);
        match batches.last_mut() {
            Some(batch) if size <= MAX_ARGUMENTS => batch.push(path),
            Some(_) | None => {
                size = bytes_of(&path).len();
                batches.push(vec![path]);
            }
        }
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_any_contents() {
        let marker = RecordMarker::new("7");
        let answer = b"a\n\x1epintle:\n\x1epintle:7 file\n\x1epintle:7 missing\n\x1epintle:7 file\nx\x1epintle:7 unreadable\n";
        let contents = parse_contents(&marker, answer);
        let file = |bytes: &[u8]| Content::File(bytes.to_vec());
        assert_eq!(contents, [file(b"a\n\x1epintle:\n"), Content::Missing, file(b""), Content::Unreadable]);
    }

    #[test]
    fn batches_fit_the_arguments() {
        let paths: Vec<_> = (0..5000).map(|number| PathBuf::from(format!("/{number:0100}"))).collect();
        let batches = batches(paths.clone());
        assert!(batches.len() > 1);
        let size = |batch: &Vec<PathBuf>| batch.iter().map(|path| bytes_of(path).len() + 16).sum::<usize>();
        assert!(batches.iter().all(|batch| size(batch) <= MAX_ARGUMENTS + 16));
        assert_eq!(batches.concat(), paths);
    }

    #[test]
    fn prefilter_outcomes_are_parsed() {
        let mut prefilter = Prefilter::default();
        let batch = ["/m", "/u", "/z", "/w", "/n"].map(PathBuf::from);
        prefilter.take(&batch, b"/u\n\n/m\n\nz /z\nw /w\n");
        let known: Vec<_> =
            prefilter.known.iter().map(|(path, known)| format!("{} {known:?}", path.display())).collect();
        assert_eq!(known, ["/n NoMatch", "/u Unreadable", "/z Binary"]);
    }
}
