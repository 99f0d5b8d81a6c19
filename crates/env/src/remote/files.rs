//! Remote file operations, implemented by scripts.

use std::{
    ffi::{OsStr, OsString},
    io,
    ops::Range,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use super::{
    Remote,
    nonce::nonce,
    script::{HelperScript, ScriptOutput},
    transport::Transport,
};
use crate::{
    error::EnvError,
    file::{DirEntry, FileIdentity, FileKind, MAX_ENTRIES, MAX_READ, Metadata, TEMPORARY_PREFIX},
    process::ExitStatus,
};

const READ: &str = include_str!("scripts/read.sh");
const WRITE: &str = include_str!("scripts/write.sh");
const METADATA: &str = include_str!("scripts/metadata.sh");
const LIST: &str = include_str!("scripts/list.sh");
const REMOVE: &str = include_str!("scripts/remove.sh");
const PLACE: &str = include_str!("scripts/place.sh");
const CANONICALIZE: &str = include_str!("scripts/canonicalize.sh");
const RENAME: &str = include_str!("scripts/rename.sh");

/// Maximum length of a name on common systems, in bytes.
const MAX_NAME: usize = 255;

/// File type mask of a mode, and the types distinguished here.
const FORMAT: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;
const DIRECTORY: u32 = 0o040_000;
const LINK: u32 = 0o120_000;

/// Output of `stat` for one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stat {
    mode: u32,
    pub(super) len: u64,
    pub(super) modified: Option<SystemTime>,
    pub(super) identity: Option<FileIdentity>,
}

/// An entry of a directory or tree, with its relative path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RemoteEntry {
    pub(super) path: PathBuf,
    pub(super) stat: Stat,
}

impl<T: Transport> Remote<T> {
    pub(super) async fn read_bytes(
        &self,
        path: &Path,
        range: Option<Range<u64>>,
    ) -> Result<Vec<u8>, EnvError> {
        let range = range.unwrap_or(0..u64::MAX);
        // One byte beyond the limit shows that there is more.
        let wanted = range.end.saturating_sub(range.start).min(MAX_READ + 1);
        let (start, wanted) =
            (range.start.min(i64::MAX as u64 - MAX_READ * 2).to_string(), wanted.to_string());
        let arguments = [bytes_of(path), start.as_bytes(), wanted.as_bytes()];
        let bytes = self.run_file_script("read", path, HelperScript::new(READ, &arguments)).await?;
        if bytes.len() as u64 > MAX_READ {
            return Err(EnvError::TooLarge { path: path.to_path_buf(), limit: MAX_READ });
        }
        Ok(bytes)
    }

    pub(super) async fn write_bytes(&self, path: &Path, bytes: &[u8]) -> Result<(), EnvError> {
        let (size, name) = (bytes.len().to_string(), format!("{TEMPORARY_PREFIX}{}", nonce()));
        let arguments = [bytes_of(path), size.as_bytes(), name.as_bytes()];
        let script = HelperScript { input: Some(bytes), ..HelperScript::new(WRITE, &arguments) };
        self.run_file_script("write", path, script).await.map(drop)
    }

    pub(super) async fn stat(&self, path: &Path) -> Result<Metadata, EnvError> {
        let output =
            self.run_file_script("look at", path, HelperScript::new(METADATA, &[bytes_of(path)])).await?;
        let printed = String::from_utf8_lossy(&output);
        let (stat, owner) = printed.split_once('\n').unwrap_or((&*printed, ""));
        let stat = Stat::parse(stat).ok_or_else(|| unexpected("look at", path, &output))?;
        Ok(Metadata::new(stat.kind(), stat.len)
            .with_modified(stat.modified)
            .with_mode(stat.permissions())
            .with_owned(Some(owner.trim() == "owned"))
            .with_identity(stat.identity))
    }

    pub(super) async fn list_entries(&self, path: &Path) -> Result<Vec<DirEntry>, EnvError> {
        let listed = self.run_file_script("list", path, HelperScript::new(LIST, &[bytes_of(path)])).await?;
        let entries = parse_entries(&listed, MAX_ENTRIES + 1);
        let entries = entries.ok_or_else(|| unexpected("list", path, &listed))?;
        if entries.len() > MAX_ENTRIES {
            return Err(EnvError::TooManyEntries { path: path.to_path_buf(), limit: MAX_ENTRIES });
        }
        let mut entries: Vec<_> = entries.into_iter().map(RemoteEntry::into_dir_entry).collect();
        entries.sort_by(|left, right| left.name.cmp(&right.name));
        Ok(entries)
    }

    pub(super) async fn remove_path(&self, path: &Path) -> Result<(), EnvError> {
        self.run_file_script("remove", path, HelperScript::new(REMOVE, &[bytes_of(path)])).await.map(drop)
    }

    pub(super) async fn rename_path(&self, from: &Path, to: &Path) -> Result<(), EnvError> {
        check_path(to)?;
        let renamed = self
            .run_file_script("rename", from, HelperScript::new(RENAME, &[bytes_of(from), bytes_of(to)]))
            .await;
        match renamed {
            // This error always refers to the new path.
            Err(EnvError::IsADirectory { .. }) => Err(EnvError::IsADirectory { path: to.to_path_buf() }),
            renamed => renamed.map(drop),
        }
    }

    pub(super) async fn real_path(&self, path: &Path) -> Result<PathBuf, EnvError> {
        let found = self
            .run_file_script("follow the links in", path, HelperScript::new(CANONICALIZE, &[bytes_of(path)]))
            .await?;
        Ok(PathBuf::from(OsString::from_vec(found)))
    }

    pub(super) async fn place_of(&self, path: &Path) -> Result<Option<String>, EnvError> {
        let found =
            self.run_file_script("look at", path, HelperScript::new(PLACE, &[bytes_of(path)])).await?;
        let found = String::from_utf8_lossy(&found).into_owned();
        // A `stat` without times of birth prints something else, a file system without them zero.
        let number =
            |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<u64>().ok())?;
        let (inode, birth) = found.trim().split_once(' ').unwrap_or_default();
        let (seconds, nanos) = birth.split_once('.').unwrap_or((birth, "0"));
        let known = number(inode).zip(number(seconds)).zip(number(nanos));
        Ok(known.and_then(|((inode, seconds), nanos)| crate::place::identity(inode, seconds, nanos)))
    }

    /// Runs a script that operates on `path` and converts its failure.
    pub(super) async fn run_file_script(
        &self,
        action: &'static str,
        path: &Path,
        script: HelperScript<'_>,
    ) -> Result<Vec<u8>, EnvError> {
        check_path(path)?;
        let dialect = self.system_info().await?.stat;
        let output = self.run_script(script, dialect).await;
        let output = output.map_err(|error| error.map_path(|_| path.to_path_buf()))?;
        match output.status {
            ExitStatus::Exited(0) => Ok(output.stdout),
            ExitStatus::Exited(_) | ExitStatus::Signaled(_) => Err(failure(action, path, &output)),
        }
    }
}

impl Stat {
    /// Parses "MODE SIZE SECONDS", the mode in hexadecimal; the seconds may have a fraction. The inode and the seconds of the
    /// last change may follow.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        let mode = u32::from_str_radix(words.next()?, 16).ok()?;
        let len = words.next()?.parse().ok()?;
        let modified = words.next().and_then(parse_time);
        Some(Self { mode, len, modified, identity: parse_identity(&mut words) })
    }

    /// Returns the permission bits.
    pub(super) fn permissions(self) -> u32 {
        self.mode & 0o7777
    }

    pub(super) fn is_link(self) -> bool {
        self.mode & FORMAT == LINK
    }

    pub(super) fn kind(self) -> FileKind {
        match self.mode & FORMAT {
            REGULAR => FileKind::File,
            DIRECTORY => FileKind::Directory,
            _ => FileKind::Other,
        }
    }
}

impl RemoteEntry {
    fn into_dir_entry(self) -> DirEntry {
        match self.stat.kind() {
            FileKind::Directory => DirEntry::directory(self.path),
            FileKind::File => DirEntry::file(self.path, self.stat.len),
            FileKind::Other if self.stat.is_link() => DirEntry::symlink(self.path),
            FileKind::Other => DirEntry::other(self.path),
        }
    }
}

/// Parses at most `limit` records of "MODE SIZE SECONDS ./PATH//" and a line feed. A path never
/// contains two adjacent slashes, so any name is parsed correctly.
pub(super) fn parse_entries(mut listed: &[u8], limit: usize) -> Option<Vec<RemoteEntry>> {
    let mut entries = Vec::new();
    while !listed.is_empty() && entries.len() < limit {
        let name = find(listed, b" ./")?;
        let (stat, rest) = (listed.get(..name)?, listed.get(name + 3..)?);
        let end = find(rest, b"//\n")?;
        let path = PathBuf::from(OsStr::from_bytes(rest.get(..end)?));
        entries.push(RemoteEntry { path, stat: Stat::parse(&String::from_utf8_lossy(stat))? });
        listed = rest.get(end + 3..)?;
    }
    Some(entries)
}

/// Rejects paths that no system accepts before they are sent.
pub(super) fn check_path(path: &Path) -> Result<(), EnvError> {
    let invalid = |source| EnvError::InvalidPath { path: path.to_path_buf(), source };
    if bytes_of(path).contains(&0) {
        return Err(invalid(io::Error::new(io::ErrorKind::InvalidInput, "a zero byte in a path")));
    }
    if path.iter().any(|name| name.len() > MAX_NAME) {
        let text = format!("a name of more than {MAX_NAME} bytes");
        return Err(invalid(io::Error::new(io::ErrorKind::InvalidFilename, text)));
    }
    Ok(())
}

pub(super) fn bytes_of(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    memchr::memmem::find(bytes, needle)
}

/// Parses seconds since the epoch, with or without a fraction and possibly negative.
fn parse_time(seconds: &str) -> Option<SystemTime> {
    let (whole, fraction) = seconds.split_once(['.', ',']).unwrap_or((seconds, ""));
    let nanos = format!("{fraction:0<9}").get(..9)?.parse().ok()?;
    let distance = Duration::from_secs(whole.trim_start_matches('-').parse().ok()?);
    let whole = if whole.starts_with('-') {
        SystemTime::UNIX_EPOCH.checked_sub(distance)?
    } else {
        SystemTime::UNIX_EPOCH.checked_add(distance)?
    };
    whole.checked_add(Duration::from_nanos(nanos))
}

/// Parses the inode and the seconds of the last change.
fn parse_identity<'w>(words: &mut impl Iterator<Item = &'w str>) -> Option<FileIdentity> {
    let inode = words.next()?.parse().ok()?;
    let changed = parse_time(words.next()?)?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Some(FileIdentity { inode, changed_ns: i64::try_from(changed.as_nanos()).ok()? })
}

/// Converts an exit code of a script, as defined in `prelude.sh`, to an error.
fn failure(action: &'static str, path: &Path, output: &ScriptOutput) -> EnvError {
    let cause = |kind: io::ErrorKind| match output.stderr_tail.as_str() {
        "" => io::Error::from(kind),
        message => io::Error::new(kind, message),
    };
    let at = path.to_path_buf();
    match output.status {
        ExitStatus::Exited(71) => EnvError::NotFound { path: at, source: cause(io::ErrorKind::NotFound) },
        ExitStatus::Exited(72) => EnvError::NotADirectory { path: at },
        ExitStatus::Exited(73) => EnvError::IsADirectory { path: at },
        ExitStatus::Exited(74) => EnvError::NotARegularFile { path: at },
        ExitStatus::Exited(75) => {
            EnvError::PermissionDenied { path: at, source: cause(io::ErrorKind::PermissionDenied) }
        }
        ExitStatus::Exited(76) => {
            EnvError::Io { action, path: at, source: io::Error::other("too many symbolic links") }
        }
        ExitStatus::Exited(77) => {
            EnvError::Io { action, path: at, source: io::ErrorKind::CrossesDevices.into() }
        }
        ExitStatus::Exited(79) => {
            // The script prints the mode.
            let mode = u32::from_str_radix(output.stderr_tail.trim(), 8).unwrap_or_default();
            EnvError::ReadOnlyFile { path: at, mode }
        }
        ExitStatus::Exited(_) | ExitStatus::Signaled(_) if !output.stderr_tail.is_empty() => {
            EnvError::Io { action, path: at, source: io::Error::other(output.stderr_tail.clone()) }
        }
        ExitStatus::Exited(_) | ExitStatus::Signaled(_) => EnvError::Io {
            action,
            path: at,
            source: io::Error::other(format!("the script exited with {}", output.status.code())),
        },
    }
}

/// Creates the error for unparsable output of `stat`.
pub(super) fn unexpected(action: &'static str, path: &Path, output: &[u8]) -> EnvError {
    let start = String::from_utf8_lossy(output.get(..80).unwrap_or(output)).into_owned();
    EnvError::Io {
        action,
        path: path.to_path_buf(),
        source: io::Error::new(io::ErrorKind::InvalidData, format!("unexpected output of stat: {start:?}")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn facts_are_read() {
        let stat = Stat::parse("81a4 12 1700000000.250000000\n").unwrap();
        assert_eq!((stat.kind(), stat.len, stat.mode & 0o7777), (FileKind::File, 12, 0o644));
        assert_eq!(stat.modified, Some(SystemTime::UNIX_EPOCH + Duration::new(1_700_000_000, 250_000_000)));
        assert_eq!(Stat::parse("41ed 0 1700000000").unwrap().kind(), FileKind::Directory);
        assert_eq!(Stat::parse("a1ff 0 ?").unwrap().modified, None);
        assert!(Stat::parse("a1ff 0 ?").unwrap().is_link());
        assert_eq!(Stat::parse("-rw-r--r-- 1"), None);
        assert_eq!(stat.identity, None);
        let identity = Stat::parse("81a4 12 1700000000 77 1700000001.5").unwrap().identity;
        assert_eq!(identity, Some(FileIdentity { inode: 77, changed_ns: 1_700_000_001_500_000_000 }));
    }

    #[test]
    fn times_may_precede_the_epoch() {
        assert_eq!(parse_time("-2"), Some(SystemTime::UNIX_EPOCH - Duration::from_secs(2)));
        assert_eq!(parse_time("-2.5"), Some(SystemTime::UNIX_EPOCH - Duration::from_millis(1500)));
        assert_eq!(parse_time("x"), None);
    }

    #[test]
    fn invalid_paths_are_refused() {
        for path in ["/a\0b".to_owned(), format!("/{}", "x".repeat(256))] {
            assert!(matches!(check_path(Path::new(&path)), Err(EnvError::InvalidPath { .. })), "{path:?}");
        }
        check_path(Path::new(&format!("/{}", "x".repeat(255)))).unwrap();
    }

    proptest! {
        #[test]
        fn parses_any_names(names in prop::collection::vec("[a \n./']{1,6}", 0..6)) {
            // Output of find has no empty names and no names of dots alone.
            let names: Vec<_> = names.iter()
                .map(|name| name.split('/').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/"))
                .filter(|name| !name.is_empty())
                .collect();
            let mut printed = Vec::new();
            for name in &names {
                printed.extend_from_slice(format!("81a4 1 7 ./{name}//\n").as_bytes());
            }
            let parsed: Vec<_> = parse_entries(&printed, 9).unwrap().into_iter().map(|entry| entry.path).collect();
            let expected: Vec<_> = names.iter().map(PathBuf::from).collect();
            prop_assert_eq!(parsed, expected);
        }
    }
}
