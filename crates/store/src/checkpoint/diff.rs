//! Changes as text.

use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use similar::TextDiff;

use super::compare::Comparison;
use super::error::CheckpointError;
use super::manifest::{Entry, State};
use crate::blob::Blobs;

/// Lines of context around a change.
const CONTEXT: usize = 3;

/// Time for one file after which its diff is no longer the shortest.
const MAX_TIME: Duration = Duration::from_millis(500);

/// Type bits of modes, as git writes them.
const REGULAR: u32 = 0o100_000;
const SYMLINK: u32 = 0o120_000;

/// Limits of a diff.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiffLimits {
    /// Maximum size of a content whose lines are compared, in bytes; default 1 MiB. Larger ones are named only.
    pub max_file_size: u64,
    /// Size of the text after which further files are counted only, in bytes; default 4 MiB.
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

    /// Sets the size of the text after which further files are counted only.
    #[must_use]
    pub fn with_max_text(mut self, max_text: usize) -> Self {
        self.max_text = max_text;
        self
    }
}

/// Changes as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diff {
    /// Unified diff in the form of git, by which binary files are named only.
    pub text: String,
    /// Number of changed files that are not in the text because it was too long.
    pub left_out: usize,
}

/// Renders changes of files and links as a unified diff. Directories are not part of it.
///
/// The contents are read from the blobs of the older and of the newer side. For the workspace as the newer side, take a
/// checkpoint of it; a content that is not among the blobs is named only.
///
/// # Errors
///
/// [`CheckpointError::Store`].
pub async fn unified_diff(
    comparison: &Comparison,
    before: &dyn Blobs,
    after: &dyn Blobs,
    limits: &DiffLimits,
) -> Result<Diff, CheckpointError> {
    let mut diff = Diff::default();
    for change in &comparison.changes {
        let is_shown = |entry: &Option<Entry>| entry.as_ref().is_some_and(|entry| !entry.is_directory());
        let old = change.before.as_ref().filter(|_| is_shown(&change.before));
        let new = change.after.as_ref().filter(|_| is_shown(&change.after));
        if old.is_none() && new.is_none() {
            continue;
        }
        if diff.text.len() >= limits.max_text {
            diff.left_out += 1;
            continue;
        }
        // A file that has become a link is removed and added, as in git.
        let has_same_type = match (old, new) {
            (Some(old), Some(new)) => git_mode(old) & !0o7777 == git_mode(new) & !0o7777,
            (None, _) | (_, None) => true,
        };
        let pairs = if has_same_type { vec![(old, new)] } else { vec![(old, None), (None, new)] };
        for (old, new) in pairs {
            let old_content = content(old, before, limits).await?;
            let new_content = content(new, after, limits).await?;
            diff.text.push_str(&render(&change.path, (old, &old_content), (new, &new_content)));
        }
    }
    Ok(diff)
}

/// Content of one side.
enum Content {
    Text(String),
    Binary,
    TooLarge,
    Removed,
}

async fn content(
    entry: Option<&Entry>,
    blobs: &dyn Blobs,
    limits: &DiffLimits,
) -> Result<Content, CheckpointError> {
    let Some(entry) = entry else { return Ok(Content::Text(String::new())) };
    Ok(match &entry.state {
        State::File { size, .. } if *size > limits.max_file_size => Content::TooLarge,
        State::File { hash, .. } => match blobs.get(hash).await? {
            None => Content::Removed,
            Some(bytes) if bytes.contains(&0) => Content::Binary,
            Some(bytes) => String::from_utf8(bytes).map_or(Content::Binary, Content::Text),
        },
        State::Symlink { target } => {
            let target = target.as_os_str().to_str();
            target.map_or(Content::Binary, |target| Content::Text(target.to_owned()))
        }
        State::Directory | State::Other | State::Unknown(_) => Content::Removed,
    })
}

/// Returns the mode as git writes it.
fn git_mode(entry: &Entry) -> u32 {
    match entry.state {
        State::Symlink { .. } => SYMLINK,
        State::File { .. } | State::Directory | State::Other | State::Unknown(_) => {
            REGULAR | entry.mode.unwrap_or(0o644)
        }
    }
}

fn render(path: &Path, old: (Option<&Entry>, &Content), new: (Option<&Entry>, &Content)) -> String {
    let (from, to) = (quoted("a/", path), quoted("b/", path));
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
        (Content::Text(before), Content::Text(after)) => {
            let diff = TextDiff::configure().timeout(MAX_TIME).diff_lines(before, after);
            let hunks =
                diff.unified_diff().context_radius(CONTEXT).header(from_or_none, to_or_none).to_string();
            write!(text, "{hunks}")
        }
        (Content::TooLarge, _) | (_, Content::TooLarge) => {
            writeln!(text, "Files {from_or_none} and {to_or_none} differ and are too large to show")
        }
        (Content::Removed, _) | (_, Content::Removed) => {
            writeln!(text, "Files {from_or_none} and {to_or_none} differ and are not available")
        }
        (Content::Binary, _) | (_, Content::Binary) => {
            writeln!(text, "Binary files {from_or_none} and {to_or_none} differ")
        }
    };
    text
}

/// Writes a path as git does: in quotes, with escapes, if it has unusual bytes.
fn quoted(prefix: &str, path: &Path) -> String {
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
