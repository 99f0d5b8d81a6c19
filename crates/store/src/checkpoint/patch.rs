//! Changes as a patch for `git apply`. Git renders it from the two sides, which are imported into a temporary
//! repository.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use pintle_env::{ExecRequest, ExecResult, ExecutionEnvironment, Git};

use super::compare::Comparison;
use super::error::CheckpointError;
use super::manifest::{EntryState, ManifestEntry};
use crate::blob::Blobs;

/// Timeout of one git command.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Maximum length of git's message in an error, in bytes.
const MAX_MESSAGE: usize = 4_000;

/// Branches of the temporary repository, one for each side.
const BEFORE: &str = "refs/heads/before";
const AFTER: &str = "refs/heads/after";

/// Position of a workspace in the git repository that contains it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepositoryPosition {
    /// Path of the workspace from the top of the repository. Empty at the top, and outside of a repository.
    pub prefix: PathBuf,
    /// Whether the repository names its objects by SHA-256 instead of SHA-1.
    pub has_sha256: bool,
}

impl RepositoryPosition {
    /// Asks git for the position of the working directory of an environment. Without a repository, or without git, the
    /// result is the default.
    ///
    /// Dropping the future stops git.
    ///
    /// # Errors
    ///
    /// [`CheckpointError::Environment`]; [`CheckpointError::Git`] if git refuses the repository, for example because
    /// another user owns it.
    pub async fn locate(workspace: &dyn ExecutionEnvironment) -> Result<Self, CheckpointError> {
        let request = Git::new().request(&["rev-parse", "--show-object-format", "--show-prefix"]);
        let result = workspace.exec_command(request.with_timeout(TIMEOUT)).await?;
        // The shell exits with 127 if git is not installed.
        if result.exit_code == 127 {
            return Ok(Self::default());
        }
        let message = result.stderr.head_text_lossy(MAX_MESSAGE).unwrap_or_default();
        if !result.success() && message.contains("not a git repository") {
            return Ok(Self::default());
        }
        Ok(Self::parse(&output(&result)?))
    }

    /// Parses a line with the object format and the prefix, which may contain line feeds.
    fn parse(output: &[u8]) -> Self {
        let mut parts = output.splitn(2, |byte| *byte == b'\n');
        let format = parts.next().unwrap_or_default();
        let prefix = parts.next().unwrap_or_default();
        let prefix = prefix.strip_suffix(b"\n").unwrap_or(prefix);
        let prefix = prefix.strip_suffix(b"/").unwrap_or(prefix);
        Self { prefix: OsString::from_vec(prefix.to_vec()).into(), has_sha256: format == b"sha256" }
    }
}

/// Changes as a patch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GitPatch {
    /// The patch, to be applied with `git apply` at the top of the repository. Empty without changes.
    pub bytes: Vec<u8>,
    /// Paths that may have changed, but are not in the patch because a content is unknown or missing from the blobs.
    /// Relative to the root of the checkpoint, sorted.
    pub omitted: Vec<PathBuf>,
}

/// Renders changes of files and links as a patch for `git apply`, including binary files. Its paths are relative to the
/// top of the repository. The only mode bit of a file that it contains is the executable bit.
///
/// `scratch` is an environment with git whose working directory is empty. A repository is created there and stays; the
/// caller removes the directory. The contents come from the same blobs as for [`unified_diff`](super::unified_diff),
/// and are in memory all at once. Dropping the future stops git.
///
/// # Errors
///
/// [`CheckpointError::Store`], [`CheckpointError::Environment`], and [`CheckpointError::Git`] if git is missing or fails.
pub async fn git_patch(
    comparison: &Comparison,
    before: &dyn Blobs,
    after: &dyn Blobs,
    position: &RepositoryPosition,
    scratch: &dyn ExecutionEnvironment,
) -> Result<GitPatch, CheckpointError> {
    let mut omitted = comparison.unknown.clone();
    let (mut old_files, mut new_files) = (Vec::new(), Vec::new());
    for change in &comparison.changes {
        let (older, newer) = (change.before.as_ref(), change.after.as_ref());
        let old = PatchSide::read(older, newer, before).await?;
        let new = PatchSide::read(newer, older, after).await?;
        if matches!(old, PatchSide::Unavailable) || matches!(new, PatchSide::Unavailable) {
            omitted.push(change.path.clone());
            continue;
        }
        let path = position.prefix.join(&change.path);
        old.write(&mut old_files, &path);
        new.write(&mut new_files, &path);
    }
    omitted.sort();
    if old_files.is_empty() && new_files.is_empty() {
        return Ok(GitPatch { bytes: Vec::new(), omitted });
    }
    let stream = [
        b"feature done\n".as_slice(),
        commit_header(BEFORE).as_bytes(),
        old_files.as_slice(),
        commit_header(AFTER).as_bytes(),
        new_files.as_slice(),
        b"done\n".as_slice(),
    ]
    .concat();
    drop((old_files, new_files));
    let git = Git::new().without_user_settings();
    let format = if position.has_sha256 { "--object-format=sha256" } else { "--object-format=sha1" };
    run(scratch, git.request(&["init", "--quiet", "--bare", "--template=", format, "."])).await?;
    run(scratch, git.request(&["fast-import", "--quiet"]).with_stdin(stream)).await?;
    let arguments = [&Git::DIFF[..], &["--patch", "--binary", "--full-index", BEFORE, AFTER]].concat();
    let bytes = run(scratch, git.request(&arguments)).await?;
    Ok(GitPatch { bytes, omitted })
}

/// Returns the start of a commit in a stream for `git fast-import`.
fn commit_header(branch: &str) -> String {
    format!("commit {branch}\ncommitter pintle <pintle> 0 +0000\ndata 0\n")
}

/// Runs git and returns its standard output.
async fn run(scratch: &dyn ExecutionEnvironment, request: ExecRequest) -> Result<Vec<u8>, CheckpointError> {
    output(&scratch.exec_command(request.with_timeout(TIMEOUT)).await?)
}

/// Returns the standard output of git, if it succeeded.
fn output(result: &ExecResult) -> Result<Vec<u8>, CheckpointError> {
    if result.timed_out {
        return Err(CheckpointError::Git(format!("not finished within {} s", TIMEOUT.as_secs())));
    }
    if !result.success() {
        let message = result.stderr.head_text_lossy(MAX_MESSAGE).unwrap_or_default();
        return Err(CheckpointError::Git(message.trim().to_owned()));
    }
    if result.stdout.dropped() > 0 {
        return Err(CheckpointError::Git("the output is too large".to_owned()));
    }
    result.stdout.read_at(0, usize::MAX).map_err(|error| CheckpointError::Git(error.to_string()))
}

/// One side of a changed path.
enum PatchSide {
    /// It has no file or link. Git keeps no directories.
    Absent,
    /// It has this mode and content.
    Present { mode: &'static str, content: Vec<u8> },
    /// Its content is not among the blobs.
    Unavailable,
}

impl PatchSide {
    /// Reads a side. `other` is the entry on the other side.
    async fn read(
        entry: Option<&ManifestEntry>,
        other: Option<&ManifestEntry>,
        blobs: &dyn Blobs,
    ) -> Result<Self, CheckpointError> {
        let Some(entry) = entry else { return Ok(Self::Absent) };
        Ok(match &entry.state {
            EntryState::File { hash, .. } => {
                let mode = if is_executable(entry, other) { "100755" } else { "100644" };
                let content = blobs.get(hash).await?;
                content.map_or(Self::Unavailable, |content| Self::Present { mode, content })
            }
            EntryState::Symlink { target } => {
                Self::Present { mode: "120000", content: target.as_os_str().as_bytes().to_vec() }
            }
            EntryState::Directory => Self::Absent,
            EntryState::Other | EntryState::Unknown(_) => Self::Unavailable,
        })
    }

    /// Appends a file or link to a stream for `git fast-import`.
    fn write(&self, stream: &mut Vec<u8>, path: &Path) {
        let Self::Present { mode, content } = self else { return };
        stream.extend_from_slice(format!("M {mode} inline ").as_bytes());
        stream.extend_from_slice(&quote_path(path));
        stream.extend_from_slice(format!("\ndata {}\n", content.len()).as_bytes());
        stream.extend_from_slice(content);
        stream.push(b'\n');
    }
}

/// Returns whether a file is executable. If its environment has no modes, the mode of the other side is used, so that a
/// change of the content does not become a change of the mode.
fn is_executable(file: &ManifestEntry, other: Option<&ManifestEntry>) -> bool {
    let other = other.filter(|other| matches!(other.state, EntryState::File { .. }));
    let mode = file.mode.or_else(|| other.and_then(|other| other.mode));
    mode.is_some_and(|mode| mode & 0o100 != 0)
}

/// Quotes a path for `git fast-import`.
fn quote_path(path: &Path) -> Vec<u8> {
    let mut text = vec![b'"'];
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'\n' => text.extend_from_slice(b"\\n"),
            b'"' | b'\\' => text.extend_from_slice(&[b'\\', *byte]),
            byte => text.push(*byte),
        }
    }
    text.push(b'"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_read_from_the_output_of_git() {
        for (output, prefix, has_sha256) in [
            (&b"sha1\n\n"[..], &b""[..], false),
            (b"sha1\na/b c/\n", b"a/b c", false),
            (b"sha256\na\nb\xff/\n", b"a\nb\xff", true),
            // Git before 2.25 repeats an unknown option.
            (b"--show-object-format\na/\n", b"a", false),
            (b"", b"", false),
        ] {
            let position = RepositoryPosition::parse(output);
            let expected = (prefix, has_sha256);
            assert_eq!((position.prefix.as_os_str().as_bytes(), position.has_sha256), expected, "{output:?}");
        }
    }

    #[test]
    fn a_file_without_a_mode_keeps_the_mode_of_the_other_side() {
        let file = |mode| {
            let hash = crate::hash::Hash::of(b"x");
            ManifestEntry::new(EntryState::File { hash, size: 1 }, mode)
        };
        let directory = ManifestEntry::new(EntryState::Directory, Some(0o755));
        for (entry, other, expected) in [
            (file(Some(0o755)), None, true),
            (file(Some(0o644)), Some(file(Some(0o755))), false),
            (file(Some(0o655)), None, false),
            (file(None), Some(file(Some(0o700))), true),
            (file(None), Some(directory), false),
            (file(None), None, false),
        ] {
            assert_eq!(is_executable(&entry, other.as_ref()), expected, "{entry:?} {other:?}");
        }
    }
}
