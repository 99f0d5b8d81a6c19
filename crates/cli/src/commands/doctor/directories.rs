//! Checks of the directories that belong to the command.

use std::collections::HashSet;
use std::fs::Metadata;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use pintle_host::config_file::check_user_file;
use pintle_host::process_env::ProcessEnv;
use pintle_host::sessions::Sessions;
use pintle_store::{Filter, Page};
use pintle_tui::render::plural;
use rustix::fs::{Access, access, statvfs};

use super::report::DoctorCheck;
use pintle_host::failure::Failure;

/// Free space below which sessions may soon fail to be kept.
const LITTLE_SPACE: u64 = 256 << 20;

/// Most entries of the state directory that are measured.
const MAX_ENTRIES: usize = 1_000_000;

/// Bytes in a block of the metadata of a file.
const BLOCK: u64 = 512;

/// Most sessions that are counted.
const MAX_SESSIONS: usize = 10_000;

/// Checks the directory of the user's configuration and its file.
pub(super) fn configuration(process_env: &ProcessEnv) -> DoctorCheck {
    let name = "configuration";
    let Some(directory) = process_env.configuration_directory() else {
        let remedy = "set PINTLE_CONFIG_DIR, XDG_CONFIG_HOME or HOME to keep rules and keys";
        return DoctorCheck::warning(name, "no directory", remedy);
    };
    let shown = directory.display();
    if let Err(failure) = check_user_file(process_env) {
        return DoctorCheck::problem(name, with_details(&failure), "correct the file");
    }
    match mode(&directory) {
        None => DoctorCheck::ok(name, format!("{shown}, which does not exist yet")),
        Some(mode) if mode & 0o022 != 0 => DoctorCheck::warning(
            name,
            format!("other users can write {shown} (mode {mode:04o}) and can thereby run commands as you"),
            format!("`chmod go-w {shown}`"),
        ),
        Some(_) => DoctorCheck::ok(name, shown.to_string()),
    }
}

/// Returns the message of a failure with its details, within a line.
fn with_details(failure: &Failure) -> String {
    let details: Vec<&str> = failure.details_without_hints().lines().map(str::trim).collect();
    match details.is_empty() {
        true => failure.message(),
        false => format!("{}: {}", failure.message(), details.join("; ")),
    }
}

/// Checks the directory of the sessions.
pub(super) async fn store(process_env: &ProcessEnv) -> DoctorCheck {
    let name = "store";
    let directory = match process_env.state_directory() {
        Ok(directory) => directory,
        Err(failure) => return DoctorCheck::warning(name, failure.message(), "set one of these variables"),
    };
    let shown = directory.display().to_string();
    let existing = nearest_existing(&directory);
    if access(&existing, Access::WRITE_OK | Access::EXEC_OK).is_err() {
        let message = format!("{shown} cannot be written, so sessions are not kept");
        return DoctorCheck::warning(name, message, "change its owner, or set PINTLE_STATE_DIR");
    }
    let free = free_space(&existing);
    let free_text = free.map_or_else(String::new, |bytes| format!(", {} MiB free", bytes >> 20));
    if existing != directory {
        return DoctorCheck::ok(name, format!("{shown}, which does not exist yet{free_text}"));
    }
    let mode = mode(&directory).unwrap_or_default();
    let count = match sessions(process_env).await {
        Ok(count) => count,
        Err(why) => {
            return DoctorCheck::warning(name, format!("{shown}: {why}"), "check its owner and its files");
        }
    };
    let message = format!("{shown} (mode {mode:04o}), {count}{free_text}");
    if mode & 0o022 != 0 {
        let remedy = format!("`chmod go-w {shown}`");
        return DoctorCheck::warning(name, format!("{message}; other users can write it"), remedy);
    }
    if free.is_some_and(|bytes| bytes < LITTLE_SPACE) {
        return DoctorCheck::warning(
            name,
            message,
            "free some space, for example with `pintle sessions prune --all --older-than 30d`",
        );
    }
    DoctorCheck::ok(name, message)
}

/// Reports the disk space of the state directory and its parts, the largest first.
pub(super) fn state(process_env: &ProcessEnv) -> DoctorCheck {
    let name = "state";
    let Ok(directory) = process_env.state_directory() else {
        return DoctorCheck::ok(name, "no directory");
    };
    let mut usage = DiskUsage::default();
    let entries = directory.read_dir().into_iter().flatten().flatten();
    let mut parts: Vec<(u64, String)> = entries
        .map(|entry| (usage.measure(&entry.path()), entry.file_name().to_string_lossy().into_owned()))
        .collect();
    parts.sort();
    let at_least = if usage.entries > MAX_ENTRIES { "at least " } else { "" };
    let total = format!("{at_least}{}", mebibytes(parts.iter().map(|(bytes, _)| bytes).sum()));
    let shown = parts.iter().rev().filter(|(bytes, _)| *bytes >= 1 << 20);
    let shown: Vec<String> = shown.map(|(bytes, part)| format!("{part} {}", mebibytes(*bytes))).collect();
    DoctorCheck::ok(name, if shown.is_empty() { total } else { format!("{total}: {}", shown.join(", ")) })
}

fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

/// Disk space of trees. Links are not followed, and a file with several names counts once.
#[derive(Default)]
struct DiskUsage {
    entries: usize,
    linked: HashSet<(u64, u64)>,
}

impl DiskUsage {
    /// Returns the bytes of a tree. Does not measure entries above the limit.
    fn measure(&mut self, root: &Path) -> u64 {
        let (mut bytes, mut paths) = (0, vec![root.to_path_buf()]);
        while let Some(path) = paths.pop() {
            self.entries = self.entries.saturating_add(1);
            if self.entries > MAX_ENTRIES {
                break;
            }
            let Ok(found) = path.symlink_metadata() else { continue };
            bytes += self.bytes_of(&found);
            if found.is_dir() {
                paths.extend(path.read_dir().into_iter().flatten().flatten().map(|entry| entry.path()));
            }
        }
        bytes
    }

    fn bytes_of(&mut self, found: &Metadata) -> u64 {
        let is_counted =
            !found.is_dir() && found.nlink() > 1 && !self.linked.insert((found.dev(), found.ino()));
        if is_counted { 0 } else { found.blocks() * BLOCK }
    }
}

/// Returns how many sessions are kept.
async fn sessions(process_env: &ProcessEnv) -> Result<String, String> {
    let sessions = Sessions::open(process_env).await.map_err(|failure| failure.message())?;
    let found = sessions.list(&Filter::default(), &Page::of(MAX_SESSIONS)).await;
    let count = found.map_err(|failure| failure.message())?.len();
    Ok(match count {
        MAX_SESSIONS => format!("at least {MAX_SESSIONS} sessions"),
        count => plural(count as u64, "session"),
    })
}

fn mode(path: &Path) -> Option<u32> {
    path.metadata().ok().map(|found| found.permissions().mode() & 0o7777)
}

fn free_space(path: &Path) -> Option<u64> {
    statvfs(path).ok().map(|found| found.f_bavail.saturating_mul(found.f_frsize))
}

/// Returns the path itself or its nearest parent that exists.
fn nearest_existing(path: &Path) -> PathBuf {
    let mut existing = path.ancestors().filter(|ancestor| ancestor.exists());
    existing.next().unwrap_or(Path::new("/")).to_path_buf()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "fixtures are written as other programs do")]

    use super::super::report::CheckStatus;
    use super::*;

    #[tokio::test]
    async fn directories_are_checked() {
        let directory = tempfile::tempdir().unwrap();
        let process_env = |name: &str| {
            let (config, state) = (directory.path().join(name), directory.path().join(name));
            ProcessEnv::from_variables([
                ("PINTLE_CONFIG_DIR", config.as_os_str()),
                ("PINTLE_STATE_DIR", state.as_os_str()),
            ])
        };
        let missing = process_env("missing");
        assert_eq!(
            (configuration(&missing).status, store(&missing).await.status),
            (CheckStatus::Ok, CheckStatus::Ok)
        );
        assert!(!directory.path().join("missing").exists());
        for (name, mode, expected) in [("own", 0o700, CheckStatus::Ok), ("open", 0o777, CheckStatus::Warning)]
        {
            let path = directory.path().join(name);
            std::fs::create_dir(&path).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let process_env = process_env(name);
            assert_eq!(
                (configuration(&process_env).status, store(&process_env).await.status),
                (expected, expected)
            );
        }
        let own = process_env("own");
        let large = directory.path().join("own/caches/a");
        std::fs::create_dir_all(&large).unwrap();
        std::fs::write(large.join("one"), vec![1; 3 << 20]).unwrap();
        std::fs::hard_link(large.join("one"), large.join("same")).unwrap();
        std::os::unix::fs::symlink(directory.path(), large.join("link")).unwrap();
        assert_eq!(state(&own), DoctorCheck::ok("state", "3 MiB: caches 3 MiB"));
        assert_eq!(state(&missing), DoctorCheck::ok("state", "0 MiB"));
        own.write_private(&directory.path().join("own/config.toml"), "[key_command]\nx = 1\n").unwrap();
        assert_eq!(configuration(&own).status, CheckStatus::Problem);
        let file = directory.path().join("own/config.toml");
        own.write_private(&file, "modle = 1\nmode = \"aut\"\n").unwrap();
        let name = file.display();
        let message = format!(
            "the configuration has 2 mistakes: {name}: line 1, column 1: unknown key `modle`; did you mean `model`?; \
             {name}: line 2, column 8: `mode`: found \"aut\", expected one of plan, ask, edit, auto; did you mean `auto`?"
        );
        assert_eq!(configuration(&own), DoctorCheck::problem("configuration", message, "correct the file"));
        let nothing = ProcessEnv::from_variables([]);
        assert_eq!(
            (configuration(&nothing).status, store(&nothing).await.status),
            (CheckStatus::Warning, CheckStatus::Warning)
        );
    }
}
