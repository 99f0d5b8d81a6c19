//! Record of the watched files of a workspace, stored between sessions.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pintle_governance::WatchedFiles;

use super::secrets;
use crate::failure::Failure;
use crate::process_env::{self, ProcessEnv};

/// Directory of these files, below the state directory.
pub(super) const DIRECTORY: &str = "watched";

/// Record of one workspace. The session that holds its lock updates it; others only read it.
#[derive(Clone, Debug, Default)]
pub(crate) struct WatchRecord {
    earlier: WatchedFiles,
    file: Option<Arc<RecordFile>>,
}

#[derive(Debug)]
struct RecordFile {
    path: PathBuf,
    process_env: ProcessEnv,
    /// Held as long as the session lasts.
    _lock: File,
}

impl WatchRecord {
    /// Reads the record of a workspace. Updates it if `keeps_state` is set and no other session holds the lock.
    ///
    /// A record that cannot be read is a failure: a file that it lists may have changed.
    pub(super) fn open(
        workspace: &Path,
        keeps_state: bool,
        process_env: &ProcessEnv,
    ) -> Result<Self, Failure> {
        let Some(path) = secrets::workspace_state_path(DIRECTORY, workspace, process_env) else {
            return Ok(Self::default());
        };
        let lock = match keeps_state {
            // An unwritable state directory was reported earlier.
            true => process_env.try_lock_private(&path.with_extension("lock")).ok().flatten(),
            false => None,
        };
        let earlier = match process_env::read_text_if_exists("record of watched files", &path)? {
            None => WatchedFiles::default(),
            Some(text) => serde_json::from_str(&text).map_err(|error| {
                let message = format!("cannot parse the record of watched files {}", path.display());
                let hint =
                    "review the settings and hooks of the workspace's repositories, then remove the record";
                Failure::failed(message).caused_by(&error).with_hint(hint)
            })?,
        };
        let file =
            lock.map(|lock| Arc::new(RecordFile { path, process_env: process_env.clone(), _lock: lock }));
        // The state of the files belongs to the session that has the lock.
        let earlier = if file.is_some() { earlier } else { earlier.without_states() };
        Ok(Self { earlier, file })
    }

    /// Returns the record of the last session.
    pub(crate) fn earlier(&self) -> &WatchedFiles {
        &self.earlier
    }

    /// Records the repositories that were found before the first command.
    pub(super) fn record_repositories(&self, found: &WatchedFiles) {
        let all = self.earlier.clone().with_repositories(found);
        if all != self.earlier {
            self.write(&all);
        }
    }

    /// Keeps the state without the files, which nothing changes any more.
    pub(super) fn record_final(&self) {
        let Some(file) = &self.file else { return };
        let known = process_env::read_text_if_exists("record of watched files", &file.path).ok().flatten();
        let known = known.and_then(|text| serde_json::from_str::<WatchedFiles>(&text).ok());
        if let Some(known) = known.filter(|known| !known.is_final()) {
            self.write(&known.without_states());
        }
    }

    /// Writes the state of the files.
    pub(crate) fn write(&self, files: &WatchedFiles) {
        let Some(file) = &self.file else { return };
        let written =
            serde_json::to_string(files).map(|text| file.process_env.write_private(&file.path, &text));
        if !matches!(written, Ok(Ok(()))) {
            let path = file.path.display();
            let notices = file.process_env.notices();
            notices.report(format!("the state of protected files cannot be recorded in {path}"));
        }
    }
}
