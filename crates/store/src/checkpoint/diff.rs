//! Changes as text.

use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use similar::{ChangeTag, TextDiff};

use super::compare::{ChangeKind, Comparison};
use super::error::CheckpointError;
use super::manifest::{EntryState, ManifestEntry};
use crate::blob::Blobs;

/// Lines of context around a change.
const CONTEXT: usize = 3;

/// Time for one file after which its diff may not be the shortest.
const MAX_TIME: Duration = Duration::from_millis(500);

/// Type bits of modes, as git writes them.
const REGULAR: u32 = 0o100_000;
const SYMLINK: u32 = 0o120_000;

/// Limits of a diff.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiffLimits {
    /// Maximum size of a content whose lines are compared, in bytes; default 1 MiB. For larger contents, only the name
    /// is shown.
    pub max_file_size: u64,
    /// Size of the text after which further files are only counted, in bytes; default 4 MiB.
    pub max_text: usize,
}

impl Default for DiffLimits {
    fn default() -> Self {
        Self { max_file_size: 1 << 20, max_text: 4 << 20 }
    }
}

impl DiffLimits {
    /// Sets the maximum size of a content whose lines are compared.
    #[must_use]
    pub fn with_max_file_size(mut self, max_file_size: u64) -> Self {
        self.max_file_size = max_file_size;
        self
    }

    /// Sets the size of the text after which further files are only counted.
    #[must_use]
    pub fn with_max_text(mut self, max_text: usize) -> Self {
        self.max_text = max_text;
        self
    }
}

/// Changes as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnifiedDiff {
    /// Unified diff in git's format. It names binary files without their contents.
    pub text: String,
    /// Number of changed files that are not in the text because it was too long.
    pub left_out: usize,
}

/// Changes by files and lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileDiffs {
    /// Changed files and links.
    pub files: Vec<FileDiff>,
    /// Number of changed files that are not in the list because it was too long.
    pub left_out: usize,
}

/// Changes of one file or link.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileDiff {
    /// Path, relative to the root of the checkpoint.
    pub path: PathBuf,
    /// Kind of the change. A file that became a link is removed and added.
    pub kind: ChangeKind,
    /// Changed lines with their context; empty for a change of the mode, and for contents that are not shown.
    pub hunks: Vec<DiffHunk>,
    /// Reason why the lines are not shown.
    pub not_shown: Option<DiffOmission>,
}

/// Reason why changed lines are not shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DiffOmission {
    /// A content is not text.
    Binary,
    /// A content is above [`DiffLimits::max_file_size`].
    TooLarge,
    /// A content is not among the blobs.
    NotAvailable,
}

/// Changed lines that are close to each other.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiffHunk {
    /// Number of the first old line, from 1; of the preceding line if the hunk has no old lines.
    pub old_start: usize,
    /// Number of the first new line, from 1; of the preceding line if the hunk has no new lines.
    pub new_start: usize,
    /// Lines, without their line feeds.
    pub lines: Vec<DiffLine>,
}

/// Line of a hunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiffLine {
    /// It is on both sides.
    Context(String),
    /// It is on the older side only.
    Removed(String),
    /// It is on the newer side only.
    Added(String),
}

impl DiffLine {
    /// Returns the text of the line.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Context(text) | Self::Removed(text) | Self::Added(text) => text,
        }
    }
}

/// Renders changes of files and links as a unified diff for users. It does not contain directories. [`git_patch`]
/// renders a complete patch for `git apply`.
///
/// [`git_patch`]: super::git_patch
///
/// The contents are read from the blobs of the older and of the newer side. For the workspace as the newer side, take a
/// checkpoint of it. A content that is missing from the blobs is only named.
///
/// # Errors
///
/// [`CheckpointError::Store`].
pub async fn unified_diff(
    comparison: &Comparison,
    before: &dyn Blobs,
    after: &dyn Blobs,
    limits: &DiffLimits,
) -> Result<UnifiedDiff, CheckpointError> {
    let mut diff = UnifiedDiff::default();
    diff.left_out = each_pair(comparison, before, after, limits, |pair| {
        let text = render(pair.path, (pair.old, &pair.old_content), (pair.new, &pair.new_content));
        diff.text.push_str(&text);
        text.len()
    })
    .await?;
    Ok(diff)
}

/// Returns changes of files and links by lines. The contents come from the same blobs as for [`unified_diff`].
///
/// # Errors
///
/// [`CheckpointError::Store`].
pub async fn file_diffs(
    comparison: &Comparison,
    before: &dyn Blobs,
    after: &dyn Blobs,
    limits: &DiffLimits,
) -> Result<FileDiffs, CheckpointError> {
    let mut diffs = FileDiffs::default();
    diffs.left_out = each_pair(comparison, before, after, limits, |pair| {
        let file = pair.by_lines();
        let size = file.hunks.iter().flat_map(|hunk| &hunk.lines).map(|line| line.text().len() + 1).sum();
        diffs.files.push(file);
        size
    })
    .await?;
    Ok(diffs)
}

/// Two sides of a changed file or link.
struct FilePair<'a> {
    path: &'a Path,
    kind: ChangeKind,
    old: Option<&'a ManifestEntry>,
    new: Option<&'a ManifestEntry>,
    old_content: SideContent,
    new_content: SideContent,
}

/// Passes the changed files and links to `show` until the sum of its results reaches the limit. Returns the number of
/// the remaining ones.
async fn each_pair(
    comparison: &Comparison,
    before: &dyn Blobs,
    after: &dyn Blobs,
    limits: &DiffLimits,
    mut show: impl FnMut(&FilePair<'_>) -> usize,
) -> Result<usize, CheckpointError> {
    let (mut shown, mut left_out) = (0, 0);
    for change in &comparison.changes {
        let is_shown =
            |entry: &Option<ManifestEntry>| entry.as_ref().is_some_and(|entry| !entry.is_directory());
        let old = change.before.as_ref().filter(|_| is_shown(&change.before));
        let new = change.after.as_ref().filter(|_| is_shown(&change.after));
        if old.is_none() && new.is_none() {
            continue;
        }
        if shown >= limits.max_text {
            left_out += 1;
            continue;
        }
        // A file that became a link is removed and added, as in git.
        let has_same_type = match (old, new) {
            (Some(old), Some(new)) => git_mode(old) & !0o7777 == git_mode(new) & !0o7777,
            (None, _) | (_, None) => true,
        };
        let pairs = if has_same_type {
            vec![(old, new, change.kind)]
        } else {
            vec![(old, None, ChangeKind::Removed), (None, new, ChangeKind::Added)]
        };
        for (old, new, kind) in pairs {
            let old_content = content(old, before, limits).await?;
            let new_content = content(new, after, limits).await?;
            shown += show(&FilePair { path: &change.path, kind, old, new, old_content, new_content });
        }
    }
    Ok(left_out)
}

impl FilePair<'_> {
    fn by_lines(&self) -> FileDiff {
        let (hunks, not_shown) = match (&self.old_content, &self.new_content) {
            (SideContent::Text(before), SideContent::Text(after)) => (hunks(before, after), None),
            (SideContent::TooLarge, _) | (_, SideContent::TooLarge) => {
                (Vec::new(), Some(DiffOmission::TooLarge))
            }
            (SideContent::Removed, _) | (_, SideContent::Removed) => {
                (Vec::new(), Some(DiffOmission::NotAvailable))
            }
            (SideContent::Binary, _) | (_, SideContent::Binary) => (Vec::new(), Some(DiffOmission::Binary)),
        };
        FileDiff { path: self.path.to_path_buf(), kind: self.kind, hunks, not_shown }
    }
}

fn hunks(before: &str, after: &str) -> Vec<DiffHunk> {
    let diff = TextDiff::configure().timeout(MAX_TIME).diff_lines(before, after);
    let groups = diff.grouped_ops(CONTEXT);
    let hunks = groups.iter().map(|ops| {
        let lines = ops.iter().flat_map(|op| diff.iter_changes(op)).map(|change| {
            let text = change.value();
            let text = text.strip_suffix('\n').unwrap_or(text).to_owned();
            match change.tag() {
                ChangeTag::Equal => DiffLine::Context(text),
                ChangeTag::Delete => DiffLine::Removed(text),
                ChangeTag::Insert => DiffLine::Added(text),
            }
        });
        let lines: Vec<DiffLine> = lines.collect();
        let start = |is_side: fn(&DiffLine) -> bool, first: Option<usize>| {
            first.unwrap_or_default() + usize::from(lines.iter().any(is_side))
        };
        let old =
            start(|line| !matches!(line, DiffLine::Added(_)), ops.first().map(|op| op.old_range().start));
        let new =
            start(|line| !matches!(line, DiffLine::Removed(_)), ops.first().map(|op| op.new_range().start));
        DiffHunk { old_start: old, new_start: new, lines }
    });
    hunks.collect()
}

/// Content of one side.
enum SideContent {
    Text(String),
    Binary,
    TooLarge,
    Removed,
}

async fn content(
    entry: Option<&ManifestEntry>,
    blobs: &dyn Blobs,
    limits: &DiffLimits,
) -> Result<SideContent, CheckpointError> {
    let Some(entry) = entry else { return Ok(SideContent::Text(String::new())) };
    Ok(match &entry.state {
        EntryState::File { size, .. } if *size > limits.max_file_size => SideContent::TooLarge,
        EntryState::File { hash, .. } => match blobs.get(hash).await? {
            None => SideContent::Removed,
            Some(bytes) if bytes.contains(&0) => SideContent::Binary,
            Some(bytes) => String::from_utf8(bytes).map_or(SideContent::Binary, SideContent::Text),
        },
        EntryState::Symlink { target } => {
            let target = target.as_os_str().to_str();
            target.map_or(SideContent::Binary, |target| SideContent::Text(target.to_owned()))
        }
        EntryState::Directory | EntryState::Other | EntryState::Unknown(_) => SideContent::Removed,
    })
}

/// Returns the mode as git writes it.
fn git_mode(entry: &ManifestEntry) -> u32 {
    match entry.state {
        EntryState::Symlink { .. } => SYMLINK,
        EntryState::File { .. } | EntryState::Directory | EntryState::Other | EntryState::Unknown(_) => {
            REGULAR | entry.mode.unwrap_or(0o644)
        }
    }
}

fn render(
    path: &Path,
    old: (Option<&ManifestEntry>, &SideContent),
    new: (Option<&ManifestEntry>, &SideContent),
) -> String {
    let (from, to) = (quote("a/", path), quote("b/", path));
    let mut text = format!("diff --git {from} {to}\n");
    let from_or_none = if old.0.is_some() { from.as_str() } else { "/dev/null" };
    let to_or_none = if new.0.is_some() { to.as_str() } else { "/dev/null" };
    let _ = match (old.0.map(git_mode), new.0.map(git_mode)) {
        (Some(old), Some(new)) if old != new => writeln!(text, "old mode {old:o}\nnew mode {new:o}"),
        (Some(old), None) => writeln!(text, "deleted file mode {old:o}"),
        (None, Some(new)) => writeln!(text, "new file mode {new:o}"),
        (Some(_), Some(_)) | (None, None) => Ok(()),
    };
    let has_same_content = match (old.0, new.0) {
        (Some(old), Some(new)) => old.state == new.state,
        (None, _) | (_, None) => false,
    };
    let _ = match (old.1, new.1) {
        _ if has_same_content => Ok(()),
        (SideContent::Text(before), SideContent::Text(after)) => {
            let diff = TextDiff::configure().timeout(MAX_TIME).diff_lines(before, after);
            let hunks =
                diff.unified_diff().context_radius(CONTEXT).header(from_or_none, to_or_none).to_string();
            write!(text, "{hunks}")
        }
        (SideContent::TooLarge, _) | (_, SideContent::TooLarge) => {
            writeln!(text, "Files {from_or_none} and {to_or_none} differ and are too large to show")
        }
        (SideContent::Removed, _) | (_, SideContent::Removed) => {
            writeln!(text, "Files {from_or_none} and {to_or_none} differ and are not available")
        }
        (SideContent::Binary, _) | (_, SideContent::Binary) => {
            writeln!(text, "Binary files {from_or_none} and {to_or_none} differ")
        }
    };
    text
}

/// Writes a path as git does: in quotes, with escapes, if it has unusual bytes.
fn quote(prefix: &str, path: &Path) -> String {
    let bytes = path.as_os_str().as_bytes();
    let is_usual = |byte: &u8| !byte.is_ascii_control() && *byte != b'"' && *byte != b'\\';
    if let Some(path) = path.to_str().filter(|_| bytes.iter().all(is_usual)) {
        return format!("{prefix}{path}");
    }
    let mut text = format!("\"{prefix}");
    for byte in bytes {
        let _ = match byte {
            b'\n' => write!(text, "\\n"),
            b'\t' => write!(text, "\\t"),
            b'"' => write!(text, "\\\""),
            b'\\' => write!(text, "\\\\"),
            0x20..=0x7e => write!(text, "{}", char::from(*byte)),
            _ => write!(text, "\\{byte:03o}"),
        };
    }
    text.push('"');
    text
}
