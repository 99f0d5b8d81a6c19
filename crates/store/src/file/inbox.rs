//! Inputs for a session from processes that do not write it.
//!
//! ```text
//! inbox/lock                     locked while an input is added
//! inbox/0000000007-3f9a….json    input 7, with the hash of its id: its id as a JSON string, a line feed, and the input
//! inbox/3f9a….taken              an input that the session has taken
//! ```

use std::collections::BTreeMap;
use std::io::{self, Read as _, Seek as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::blobs::create_dir;
use super::disk::Disk;
use super::layout::SessionFiles;
use super::{NEW, io_error};
use crate::error::StoreError;
use crate::hash::Hash;
use crate::store::{INBOX_INTERVAL, PostedInput, Posting, WatchedInbox};

/// Longest wait for other processes that add an input.
const LOCK_ATTEMPTS: u32 = 500;
const LOCK_PAUSE: std::time::Duration = std::time::Duration::from_millis(10);

/// Signals of the writers in this process, by the directories of their inboxes.
static WATCHED: Mutex<BTreeMap<PathBuf, watch::Sender<()>>> = Mutex::new(BTreeMap::new());

#[derive(Clone, Debug)]
pub(super) struct FileInbox {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) files: SessionFiles,
}

fn inbox_watchers() -> MutexGuard<'static, BTreeMap<PathBuf, watch::Sender<()>>> {
    WATCHED.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FileInbox {
    /// Adds an input at the end.
    pub(super) fn post(&self, input_id: &str, input: String) -> Result<Posting, StoreError> {
        let directory = self.files.inbox();
        create_dir(self.disk.as_ref(), &directory)?;
        let _lock = self.lock(&directory)?;
        let names = self.names(&directory)?;
        let hash = Hash::of(input_id.as_bytes()).to_string();
        if names.iter().any(|name| name.contains(&hash)) {
            return Ok(Posting::Known);
        }
        let number = names.iter().filter_map(|name| number_of(name)).max().unwrap_or(0) + 1;
        let temporary = directory.join(format!("{NEW}{}", uuid::Uuid::now_v7()));
        let head = format!("{}\n", serde_json::Value::from(input_id));
        let mut file = self.disk.create_new(&temporary).map_err(io_error("create", &temporary))?;
        let written = file.write_all(head.as_bytes()).and_then(|()| file.write_all(input.as_bytes()));
        let written = written.and_then(|()| file.sync());
        // An input can have tens of megabytes, and the writer of the session reads it as soon as it is posted.
        drop(input);
        let path = directory.join(format!("{number:010}-{hash}.json"));
        let renamed = written.and_then(|()| self.disk.rename(&temporary, &path));
        if let Err(source) = renamed {
            let _ = self.disk.remove_file(&temporary);
            return Err(io_error("write", &temporary)(source));
        }
        self.sync(&directory)?;
        if let Some(writer) = inbox_watchers().get(&directory) {
            writer.send_replace(());
        }
        Ok(Posting::Accepted)
    }

    /// Returns the signal that wakes the writer when an input may have been posted.
    pub(super) fn signal(&self) -> WatchedInbox {
        let mut watched = inbox_watchers();
        watched.retain(|_, writer| writer.receiver_count() > 0);
        let posted = watched.entry(self.files.inbox()).or_default().subscribe();
        WatchedInbox { posted, interval: Some(INBOX_INTERVAL) }
    }

    /// Returns the inputs that were not taken yet, the oldest first.
    pub(super) fn waiting(&self) -> Result<Vec<PostedInput>, StoreError> {
        let directory = self.files.inbox();
        let mut names = self.names(&directory)?;
        names.retain(|name| number_of(name).is_some());
        names.sort_unstable();
        names.iter().map(|name| self.read(&directory.join(name))).collect()
    }

    /// Returns whether there are inputs that were not taken yet.
    pub(super) fn has_waiting(&self) -> Result<bool, StoreError> {
        Ok(self.names(&self.files.inbox())?.iter().any(|name| number_of(name).is_some()))
    }

    /// Removes an input and keeps its id.
    pub(super) fn take(&self, input_id: &str) -> Result<(), StoreError> {
        let directory = self.files.inbox();
        let hash = Hash::of(input_id.as_bytes()).to_string();
        let names = self.names(&directory)?;
        let waiting = names.iter().filter(|name| number_of(name).is_some() && name.contains(&hash));
        for name in waiting {
            let path = directory.join(name);
            let taken = directory.join(format!("{hash}.taken"));
            self.disk.rename(&path, &taken).map_err(io_error("rename", &path))?;
        }
        self.sync(&directory)
    }

    fn names(&self, directory: &Path) -> Result<Vec<String>, StoreError> {
        match self.disk.list(directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            names => names.map_err(io_error("list", directory)),
        }
    }

    fn read(&self, path: &Path) -> Result<PostedInput, StoreError> {
        let mut file = self.disk.open(path).map_err(io_error("open", path))?;
        let size = file.seek(io::SeekFrom::End(0)).and_then(|size| file.rewind().map(|()| size));
        let size = size.map_err(io_error("read", path))?;
        // A string that grows by doubling could use twice the size of the input.
        let mut text = String::with_capacity(usize::try_from(size).unwrap_or(0));
        file.read_to_string(&mut text).map_err(io_error("read", path))?;
        let id = text.split_once('\n').and_then(|(id, _)| {
            let input_id = serde_json::from_str::<String>(id).ok()?;
            Some((input_id, id.len() + 1))
        });
        let (input_id, start) =
            id.ok_or_else(|| io_error("read", path)(io::ErrorKind::InvalidData.into()))?;
        text.drain(..start);
        Ok(PostedInput { input_id, input: text })
    }

    fn sync(&self, directory: &Path) -> Result<(), StoreError> {
        self.disk.sync_dir(directory).map_err(io_error("sync", directory))
    }

    fn lock(&self, directory: &Path) -> Result<Box<dyn super::disk::DiskLock>, StoreError> {
        let path = directory.join("lock");
        for _ in 0..LOCK_ATTEMPTS {
            if let Ok(lock) = self.disk.lock(&path, "").map_err(io_error("lock", &path))? {
                return Ok(lock);
            }
            std::thread::sleep(LOCK_PAUSE);
        }
        Err(io_error("lock", &path)(io::ErrorKind::TimedOut.into()))
    }
}

/// Returns the number of a waiting input.
fn number_of(name: &str) -> Option<u64> {
    name.strip_suffix(".json")?.split_once('-')?.0.parse().ok()
}
