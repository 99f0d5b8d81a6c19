//! Checks of the directories that belong to the command.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use pintle_host::config_file::check_user_file;
use pintle_store::{Filter, Page};
use rustix::fs::{Access, access, statvfs};

use super::report::DoctorCheck;
use crate::process_env::ProcessEnv;
use crate::render::plural;
use crate::sessions::Sessions;

/// Free space below which sessions may soon fail to be kept.
const LITTLE_SPACE: u64 = 256 << 20;

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
        return DoctorCheck::problem(name, failure.message(), "correct the file");
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
            "free some space, for example with `pintle sessions prune`",
        );
    }
    DoctorCheck::ok(name, message)
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
        own.write_private(&directory.path().join("own/config.toml"), "[key_command]\nx = 1\n").unwrap();
        assert_eq!(configuration(&own).status, CheckStatus::Problem);
        let nothing = ProcessEnv::from_variables([]);
        assert_eq!(
            (configuration(&nothing).status, store(&nothing).await.status),
            (CheckStatus::Warning, CheckStatus::Warning)
        );
    }
}
