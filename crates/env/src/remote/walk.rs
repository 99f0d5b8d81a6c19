//! Remote walks and reads of many files.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use tokio::time::Instant;

use super::{
    Remote,
    files::{RemoteEntry, bytes_of, check_path, parse_entries, unexpected},
    nonce::nonce,
    records::{Piece, RecordMarker, Scanner},
    script::HelperScript,
    search::{
        Content, batches,
        listing::{Listing, Rules},
    },
    transport::Transport,
};
use crate::{
    environment::ExecutionEnvironment,
    error::EnvError,
    file::{FileKind, MAX_READ},
    search::SearchScope,
    walk::{EntryKind, FileContent, ReadLimits, WalkEntry, WalkLimit, WalkOutput, WalkRequest},
};

const WALK: &str = include_str!("scripts/walk.sh");
const LINKS: &str = include_str!("scripts/links.sh");
const READ_MANY: &str = include_str!("scripts/read_many.sh");
const SET_MODE: &str = include_str!("scripts/set_mode.sh");
const CREATE_SYMLINK: &str = include_str!("scripts/create_symlink.sh");
const CREATE_DIRECTORY: &str = include_str!("scripts/create_directory.sh");

/// Maximum number of entries of a walked tree, ignored ones included unless they are below an ignored directory of the root.
const MAX_TREE: usize = 1_000_000;

/// Maximum number of ignored directories that are not listed.
const MAX_PRUNED: usize = 100;

/// Output of `walk.sh`.
#[derive(Debug, Default)]
struct RawTree {
    started_ns: Option<i64>,
    entries: Vec<RemoteEntry>,
    unreadable: Vec<PathBuf>,
    /// False if the script was stopped.
    is_whole: bool,
}

impl<T: Transport> Remote<T> {
    pub(super) async fn create_directory_at(&self, path: &Path) -> Result<(), EnvError> {
        let arguments = &[bytes_of(path)];
        self.run_file_script("create", path, HelperScript::new(CREATE_DIRECTORY, arguments)).await.map(drop)
    }

    pub(super) async fn create_symlink_at(&self, path: &Path, target: &Path) -> Result<(), EnvError> {
        check_path(target)?;
        let arguments = &[bytes_of(path), bytes_of(target)];
        self.run_file_script("create", path, HelperScript::new(CREATE_SYMLINK, arguments)).await.map(drop)
    }

    pub(super) async fn set_mode_of(&self, path: &Path, mode: u32) -> Result<(), EnvError> {
        // With fewer digits some tools keep the set-group-ID bit of a directory.
        let mode = format!("{:05o}", mode & 0o7777);
        let arguments = &[bytes_of(path), mode.as_bytes()];
        self.run_file_script("change the mode of", path, HelperScript::new(SET_MODE, arguments))
            .await
            .map(drop)
    }

    pub(super) async fn walk_tree(&self, request: &WalkRequest) -> Result<WalkOutput, EnvError> {
        let root = request.root.as_path();
        let deadline = request.time_limit.map(|limit| Instant::now() + limit);
        let (surface, above) = tokio::try_join!(
            self.raw_tree(root, Some(1), &[], deadline),
            self.contents(Listing::above(root))
        )?;
        let above = above.into_iter().map(Content::into_rule).collect();
        // Ignored directories at the top level are often larger than the rest of the tree.
        let surface = self.filtered(root, surface, &above).await?;
        let directories = surface.ignored().iter().filter(|entry| entry.stat.kind() == FileKind::Directory);
        let pruned: Vec<_> =
            directories.filter_map(|entry| plain_name(&entry.path)).take(MAX_PRUNED).collect();
        let raw = self.raw_tree(root, None, &pruned, deadline).await?;
        let (started_ns, is_whole) = (raw.started_ns, raw.is_whole);
        let unreadable = raw.unreadable.clone();
        let listing = self.filtered(root, raw, &above).await?;
        let mut output = WalkOutput { started_ns, ..WalkOutput::default() };
        let relative = |path: &PathBuf| path.strip_prefix(root).map(Path::to_path_buf).ok();
        output.ignored = listing.ignored().iter().filter_map(|entry| relative(&entry.path)).collect();
        let mut is_visited = vec![root.to_path_buf()];
        for entry in listing.into_entries() {
            if entry.stat.kind() == FileKind::Directory {
                is_visited.push(entry.path.clone());
            }
            output.entries.extend(walk_entry(root, &entry));
        }
        // Sorted, since a listing is.
        output.unreadable = unreadable;
        // Their rules may have changed since the first listing.
        let pruned = pruned.iter().map(|name| PathBuf::from(OsStr::from_bytes(name)));
        output.unreadable.extend(pruned.filter(|name| !output.ignored.contains(name)));
        output.unreadable.retain(|path| is_visited.binary_search(&root.join(path)).is_ok());
        output.reached = (!is_whole).then_some(WalkLimit::Time);
        output.sort_and_limit(request.max_entries);
        self.read_targets(root, &mut output.entries).await?;
        Ok(output)
    }

    /// Reads the ignore files of a tree and applies them.
    async fn filtered(&self, root: &Path, raw: RawTree, above: &Rules) -> Result<Listing, EnvError> {
        let mut listing = Listing::new(root, raw.entries);
        listing.set_above(self.working_directory(), above);
        // An incomplete listing may lack the ignore files.
        let rule_files = if raw.is_whole { listing.rule_files() } else { listing.possible_rule_files() };
        let rules = self.contents(rule_files).await?;
        let rules = rules.into_iter().map(Content::into_rule).collect();
        listing.apply(&rules, listing.root_rules(&rules), SearchScope::default());
        Ok(listing)
    }

    /// Lists a tree without applying rules. `pruned` are names in the root that are not entered.
    async fn raw_tree(
        &self,
        root: &Path,
        depth: Option<usize>,
        pruned: &[Vec<u8>],
        deadline: Option<Instant>,
    ) -> Result<RawTree, EnvError> {
        let marker = RecordMarker::new(&nonce());
        let depth = depth.map(|depth| depth.to_string()).unwrap_or_default();
        let fixed = [marker.as_bytes(), depth.as_bytes(), bytes_of(root)];
        let arguments: Vec<_> = fixed.into_iter().chain(pruned.iter().map(Vec::as_slice)).collect();
        let script = HelperScript { deadline, ..HelperScript::new(WALK, &arguments) };
        let listed = self.run_file_script("list", root, script).await?;
        let raw = RawTree::parse(&marker, &listed).ok_or_else(|| unexpected("list", root, &listed))?;
        if raw.entries.len() > MAX_TREE {
            return Err(EnvError::TooManyEntries { path: root.to_path_buf(), limit: MAX_TREE });
        }
        Ok(raw)
    }

    /// Sets the targets of links.
    async fn read_targets(&self, root: &Path, entries: &mut [WalkEntry]) -> Result<(), EnvError> {
        let mut links: Vec<_> = entries.iter_mut().filter(|entry| entry.kind == EntryKind::Symlink).collect();
        let paths: Vec<_> = links.iter().map(|entry| root.join(&entry.path)).collect();
        let mut targets = Vec::new();
        for batch in batches(paths) {
            let marker = RecordMarker::new(&nonce());
            let arguments: Vec<_> =
                std::iter::once(marker.as_bytes()).chain(batch.iter().map(|path| bytes_of(path))).collect();
            let answer =
                self.run_file_script("look at", Path::new("/"), HelperScript::new(LINKS, &arguments)).await?;
            let found = with_records(&marker, &answer).into_iter().map(|(text, record)| {
                let target = text.strip_suffix(b"\n")?;
                (record == "link").then(|| PathBuf::from(OsStr::from_bytes(target)))
            });
            targets.extend(found.take(batch.len()));
        }
        for (entry, target) in links.iter_mut().zip(targets) {
            entry.target = target;
        }
        Ok(())
    }

    pub(super) async fn read_files(
        &self,
        paths: Vec<PathBuf>,
        limits: ReadLimits,
    ) -> Result<Vec<FileContent>, EnvError> {
        let (limit, total) = (limits.file.min(MAX_READ), limits.total.min(MAX_READ));
        let mut contents = Vec::with_capacity(paths.len());
        let mut read = 0;
        for batch in batches(paths) {
            if read > 0 && read >= total {
                contents.extend(batch.iter().map(|_| FileContent::Skipped));
                continue;
            }
            let marker = RecordMarker::new(&nonce());
            let numbers = [limit, total, read].map(|number| number.to_string());
            let fixed = std::iter::once(marker.as_bytes()).chain(numbers.iter().map(String::as_bytes));
            // A path that no system accepts is not sent.
            let is_valid = |path: &&PathBuf| check_path(path).is_ok();
            let arguments: Vec<_> =
                fixed.chain(batch.iter().filter(is_valid).map(|path| bytes_of(path))).collect();
            let answer = self
                .run_file_script("read", Path::new("/"), HelperScript::new(READ_MANY, &arguments))
                .await?;
            let mut found = parse_read(&marker, &answer, limit).into_iter();
            for path in &batch {
                let content = if is_valid(&path) { found.next() } else { None };
                let content = content.unwrap_or(FileContent::Unreadable);
                match &content {
                    FileContent::Bytes(bytes) => read += bytes.len() as u64,
                    FileContent::Skipped => read = total.max(1),
                    FileContent::TooLarge
                    | FileContent::Missing
                    | FileContent::NotAFile
                    | FileContent::Unreadable => {}
                }
                contents.push(content);
            }
        }
        Ok(contents)
    }
}

impl RawTree {
    /// Parses the output of `walk.sh`, which may have been stopped.
    fn parse(marker: &RecordMarker, output: &[u8]) -> Option<Self> {
        let mut parts = with_records(marker, output).into_iter();
        let Some((listed, _unreadable)) = parts.next() else {
            // The record that ends the listing is missing.
            let end = memchr::memmem::rfind(output, b"//\n").map_or(0, |at| at + 3);
            let listed = output.get(..end)?;
            return if listed.is_empty() {
                Some(Self::default())
            } else {
                Self::parse_listed(listed).map(|tree| Self { is_whole: false, ..tree })
            };
        };
        let mut tree = Self::parse_listed(&listed)?;
        let Some((unreadable, _end)) = parts.next() else {
            return Some(Self { is_whole: false, ..tree });
        };
        let mut rest = unreadable.as_slice();
        while let Some(end) = memchr::memmem::find(rest, b"//\n") {
            let path = rest.get(..end)?.strip_prefix(b"./")?;
            tree.unreadable.push(PathBuf::from(OsStr::from_bytes(path)));
            rest = rest.get(end + 3..)?;
        }
        Some(tree)
    }

    fn parse_listed(listed: &[u8]) -> Option<Self> {
        let end = memchr::memchr(b'\n', listed)?;
        let seconds: Option<i64> = String::from_utf8_lossy(listed.get(..end)?).trim().parse().ok();
        Some(Self {
            started_ns: seconds.and_then(|seconds| seconds.checked_mul(1_000_000_000)),
            entries: parse_entries(listed.get(end + 1..)?, MAX_TREE + 1)?,
            unreadable: Vec::new(),
            is_whole: true,
        })
    }
}

/// Returns the name of a path if it is no pattern, so that `find` can compare with it.
fn plain_name(path: &Path) -> Option<Vec<u8>> {
    let name = path.file_name()?.as_bytes();
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-+ ".contains(byte);
    name.iter().all(is_plain).then(|| name.to_vec())
}

fn walk_entry(root: &Path, entry: &RemoteEntry) -> Option<WalkEntry> {
    let kind = match entry.stat.kind() {
        FileKind::File => EntryKind::File,
        FileKind::Directory => EntryKind::Directory,
        FileKind::Other if entry.stat.is_link() => EntryKind::Symlink,
        FileKind::Other => EntryKind::Other,
    };
    let size = if kind == EntryKind::File { entry.stat.len } else { 0 };
    let found = WalkEntry::new(entry.path.strip_prefix(root).ok()?, kind);
    Some(found.with_size(size).with_mode(Some(entry.stat.permissions())).with_identity(entry.stat.identity))
}

/// Returns the records of an output, each with the text before it.
fn with_records(marker: &RecordMarker, output: &[u8]) -> Vec<(Vec<u8>, String)> {
    let (mut parts, mut text) = (Vec::new(), Vec::new());
    Scanner::new(marker).feed(output, |piece| match piece {
        Piece::Text(more) => text.extend(more),
        Piece::Record(record) => parts.push((std::mem::take(&mut text), record)),
    });
    parts
}

/// Parses the output of `read_many.sh`.
fn parse_read(marker: &RecordMarker, output: &[u8], limit: u64) -> Vec<FileContent> {
    let mut contents = Vec::new();
    let mut sizes = Vec::new();
    for (text, record) in with_records(marker, output) {
        match record.as_str() {
            "sizes" => {
                let text = String::from_utf8_lossy(&text).into_owned();
                sizes = text.lines().map(size_of).collect();
            }
            "all" => return split(text, &sizes).unwrap_or_default(),
            "again" => {}
            "file" if text.len() as u64 > limit => contents.push(FileContent::TooLarge),
            "file" => contents.push(FileContent::Bytes(text)),
            "too_large" => contents.push(FileContent::TooLarge),
            "missing" => contents.push(FileContent::Missing),
            "not_a_file" => contents.push(FileContent::NotAFile),
            "skipped" => contents.push(FileContent::Skipped),
            _ => contents.push(FileContent::Unreadable),
        }
    }
    contents
}

/// Returns the size in the facts of a file.
fn size_of(facts: &str) -> Option<usize> {
    facts.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Splits contents that follow each other; `None` if they have other sizes together.
fn split(mut text: Vec<u8>, sizes: &[Option<usize>]) -> Option<Vec<FileContent>> {
    let sum = sizes.iter().copied().sum::<Option<usize>>()?;
    if sum != text.len() {
        return None;
    }
    let mut contents = Vec::with_capacity(sizes.len());
    for size in sizes.iter().rev() {
        let bytes = text.split_off(text.len().checked_sub((*size)?)?);
        contents.push(FileContent::Bytes(bytes));
    }
    contents.reverse();
    Some(contents)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(content: &[u8]) -> FileContent {
        FileContent::Bytes(content.to_vec())
    }

    #[test]
    fn contents_are_split_by_their_sizes() {
        let marker = RecordMarker::new("7");
        let facts = "81a4 3 1 2 3\n81a4 0 1 2 3\n81a4 2 1 2 3\n\u{1e}pintle:7 sizes\n";
        for (rest, expected) in [
            ("a\nbcd\u{1e}pintle:7 all\n", vec![bytes(b"a\nb"), bytes(b""), bytes(b"cd")]),
            // The sizes do not fit: nothing is known.
            ("a\nbc\u{1e}pintle:7 all\n", vec![]),
            (
                "a\nb\u{1e}pintle:7 again\nxy\u{1e}pintle:7 file\n\u{1e}pintle:7 missing\nlong\u{1e}pintle:7 file\n",
                vec![bytes(b"xy"), FileContent::Missing, FileContent::TooLarge],
            ),
        ] {
            let output = [facts, rest].concat();
            assert_eq!(parse_read(&marker, output.as_bytes(), 3), expected, "{rest:?}");
        }
    }

    #[test]
    fn stopped_walk_keeps_whole_entries() {
        let marker = RecordMarker::new("7");
        let whole = "1700000000\n81a4 1 7 5 6 ./a//\n41ed 0 7 5 6 ./b\n/c//\n";
        for (output, entries, unreadable, is_whole) in [
            (format!("{whole}\u{1e}pintle:7 unreadable\n./b//\n\u{1e}pintle:7 end\n"), 2, 1, true),
            (format!("{whole}\u{1e}pintle:7 unreadable\n./b"), 2, 0, false),
            (whole.to_owned(), 2, 0, false),
            (format!("{whole}81a4 1 7"), 2, 0, false),
            ("17".to_owned(), 0, 0, false),
            (String::new(), 0, 0, false),
        ] {
            let tree = RawTree::parse(&marker, output.as_bytes()).unwrap();
            assert_eq!(
                (tree.entries.len(), tree.unreadable.len(), tree.is_whole),
                (entries, unreadable, is_whole),
                "{output:?}"
            );
        }
        assert!(RawTree::parse(&marker, b"1\nno listing//\n").is_none());
    }
}
