//! Blobs as files, which several sessions share by hard links.
//!
//! A session has a separate name for each of its values. Removing another session therefore does not remove them, and a
//! value that no session has any more is a file with a single name.

use std::collections::HashSet;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use super::disk::{Disk, DiskFile};
use super::layout::{SessionFiles, StoreLayout};
use super::{NEW, blocking, io_error};
use crate::blob::Blobs;
use crate::error::StoreError;
use crate::hash::Hash;

/// Maximum number of values that a handle remembers as synced.
const MAX_SYNCED: usize = 1 << 16;

/// Blobs of one session.
#[derive(Clone, Debug)]
pub(super) struct FileBlobs {
    disk: Arc<dyn Disk>,
    layout: StoreLayout,
    files: SessionFiles,
    /// Values whose name in the session was on disk when this handle, or a clone of it, last synced the directory.
    synced: Arc<Mutex<HashSet<Hash>>>,
}

/// Value that has only a temporary name.
struct UnnamedBlob {
    file: TemporaryFile,
    shared: PathBuf,
    own: PathBuf,
}

/// File with a temporary name, which is removed on drop unless the file has its final name by then.
struct TemporaryFile {
    has_name: bool,
    disk: Arc<dyn Disk>,
    path: PathBuf,
    handle: Box<dyn DiskFile>,
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if !self.has_name {
            let _ = self.disk.remove_file(&self.path);
        }
    }
}

#[async_trait]
impl Blobs for FileBlobs {
    async fn put(&self, bytes: Vec<u8>) -> Result<Hash, StoreError> {
        let this = self.clone();
        blocking(move || {
            let hash = Hash::of(&bytes);
            this.put_now(&[(hash, bytes)])?;
            Ok(hash)
        })
        .await
    }

    async fn put_many(&self, values: Vec<Vec<u8>>) -> Result<Vec<Hash>, StoreError> {
        let this = self.clone();
        blocking(move || {
            let values: Vec<_> = values.into_iter().map(|bytes| (Hash::of(&bytes), bytes)).collect();
            this.put_now(&values)?;
            Ok(values.into_iter().map(|(hash, _)| hash).collect())
        })
        .await
    }

    async fn get(&self, hash: &Hash) -> Result<Option<Vec<u8>>, StoreError> {
        let (this, hash) = (self.clone(), *hash);
        blocking(move || this.get_now(&hash)).await
    }
}

impl FileBlobs {
    pub(super) fn new(disk: Arc<dyn Disk>, layout: StoreLayout, files: SessionFiles) -> Self {
        Self { disk, layout, files, synced: Arc::default() }
    }

    /// Keeps values with these hashes. All of them are written before the first is synced, so that the disk handles them
    /// together.
    fn put_now(&self, values: &[(Hash, Vec<u8>)]) -> Result<(), StoreError> {
        let values: Vec<_> = values.iter().filter(|(hash, _)| !self.is_synced(hash)).collect();
        if values.is_empty() {
            return Ok(());
        }
        let directory = self.files.blobs();
        create_dir(self.disk.as_ref(), &directory)?;
        let mut unnamed = Vec::new();
        for (hash, bytes) in &values {
            let (shared, own) = (self.layout.blob(hash), self.files.blob(hash));
            // Another session may be removing its name of the value concurrently.
            if self.disk.links(&own).is_err() && self.disk.link(&shared, &own).is_err() {
                unnamed.push(UnnamedBlob { file: self.write(bytes)?, shared, own });
            }
        }
        for value in &mut unnamed {
            let path = &value.file.path;
            value.file.handle.sync().map_err(io_error("write", path))?;
        }
        for value in unnamed {
            self.name(value)?;
        }
        // Also for names that existed already: the process that added them may have crashed before it synced the
        // directory.
        self.sync_dir(&directory)?;
        let mut synced = self.lock_synced();
        if synced.len() + values.len() > MAX_SYNCED {
            synced.clear();
        }
        synced.extend(values.iter().map(|(hash, _)| *hash));
        Ok(())
    }

    /// Returns whether this handle has synced the name of a value, and it still exists.
    fn is_synced(&self, hash: &Hash) -> bool {
        let is_known = self.lock_synced().contains(hash);
        is_known && self.disk.links(&self.files.blob(hash)).is_ok()
    }

    fn lock_synced(&self) -> MutexGuard<'_, HashSet<Hash>> {
        self.synced.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a value under a temporary name.
    fn write(&self, bytes: &[u8]) -> Result<TemporaryFile, StoreError> {
        let path = self.files.blobs().join(format!("{NEW}{}", uuid::Uuid::now_v7()));
        let handle = self.disk.create_new(&path).map_err(io_error("create", &path))?;
        let mut file = TemporaryFile { has_name: false, disk: Arc::clone(&self.disk), path, handle };
        file.handle.write_all(bytes).map_err(io_error("write", &file.path))?;
        Ok(file)
    }

    /// Gives a value that is on disk both of its names.
    fn name(&self, value: UnnamedBlob) -> Result<(), StoreError> {
        let UnnamedBlob { mut file, shared, own } = value;
        create_dir(self.disk.as_ref(), &self.layout.blobs())?;
        create_dir(self.disk.as_ref(), shared.parent().unwrap_or(self.layout.root()))?;
        // The shared name only saves space.
        match self.disk.link(&file.path, &shared) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                tracing::debug!(%error, "a value is not shared");
            }
            Ok(()) | Err(_) => {}
        }
        self.disk.rename(&file.path, &own).map_err(io_error("create", &own))?;
        file.has_name = true;
        Ok(())
    }

    pub(super) fn get_now(&self, hash: &Hash) -> Result<Option<Vec<u8>>, StoreError> {
        let path = self.files.blob(hash);
        let mut file = match self.disk.open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(io_error("open", &path))?,
        };
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(io_error("read", &path))?;
        if Hash::of(&bytes) == *hash { Ok(Some(bytes)) } else { Err(StoreError::DamagedBlob(*hash)) }
    }

    /// Returns the hashes of all values of the session.
    pub(super) fn all(&self) -> Result<Vec<Hash>, StoreError> {
        let path = self.files.blobs();
        match self.disk.list(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            names => {
                let names = names.map_err(io_error("list", &path))?;
                Ok(names.iter().filter_map(|name| name.parse().ok()).collect())
            }
        }
    }

    fn sync_dir(&self, path: &Path) -> Result<(), StoreError> {
        self.disk.sync_dir(path).map_err(io_error("sync", path))
    }
}

/// Creates a directory, or keeps an existing one, and makes it survive a crash of the machine.
pub(super) fn create_dir(disk: &dyn Disk, path: &Path) -> Result<(), StoreError> {
    match disk.create_dir(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        Err(source) => return Err(io_error("create", path)(source)),
    }
    let parent = path.parent().unwrap_or(path);
    disk.sync_dir(parent).map_err(io_error("sync", parent))
}
