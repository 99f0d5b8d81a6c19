//! The writer of a session in files.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use pintle_agent::{Barrier, Fence, SessionId};

use super::blobs::FileBlobs;
use super::disk::{Disk, DiskFile, DiskLock};
use super::inbox::FileInbox;
use super::journal::JournalFiles;
use super::{blocking, io_error, write_summary};
use crate::blob::move_to_blobs;
use crate::error::StoreError;
use crate::format::CLOSED;
use crate::line::{HashChain, SegmentHeader};
use crate::store::{InboxSignal, Position, PostedInput, SessionWriter, Summary};

/// Writer of a session. The lock is held until it is dropped.
#[derive(Debug)]
pub(super) struct FileWriter {
    journal: JournalFiles,
    blobs: FileBlobs,
    inbox: FileInbox,
    chain: HashChain,
    head: Position,
    /// Highest line that is known to be on disk.
    synced: u64,
    /// Directories that have to be on disk with the next line that is synced.
    unsynced_directories: Vec<PathBuf>,
    /// `None` while another thread writes to it, and after an error.
    segment: Option<OpenSegment>,
    ended: Arc<AtomicBool>,
    _lock: Box<dyn DiskLock>,
}

#[derive(Debug)]
struct OpenSegment {
    file: Box<dyn DiskFile>,
    path: PathBuf,
}

impl OpenSegment {
    fn write(&mut self, text: &str) -> Result<(), StoreError> {
        self.file.write_all(text.as_bytes()).map_err(io_error("write", &self.path))
    }

    /// Syncs the segment, and directories with it.
    fn sync(&mut self, disk: &dyn Disk, directories: &[PathBuf]) -> Result<(), StoreError> {
        let file = self.file.as_mut();
        let synced = if directories.is_empty() { file.sync() } else { disk.sync_together(file, directories) };
        synced.map_err(io_error("sync", &self.path))
    }
}

impl FileWriter {
    /// Starts a new segment with this first line. Blocks.
    ///
    /// The first barrier that the writer passes also syncs the first line and its file name, and `unsynced`: further
    /// directories whose entries are not on disk. Until then no line of the segment claims that it is on disk.
    pub(super) fn start(
        journal: JournalFiles,
        blobs: FileBlobs,
        header: &SegmentHeader,
        lock: Box<dyn DiskLock>,
        unsynced: Vec<PathBuf>,
    ) -> Result<Self, StoreError> {
        let (epoch, before) = (header.epoch, header.follows);
        let path = journal.files.segment(epoch);
        let file = journal.disk.create_new(&path).map_err(io_error("create", &path))?;
        let inbox = FileInbox { disk: Arc::clone(&journal.disk), files: journal.files.clone() };
        let own = [journal.files.directory.clone()];
        let mut writer = Self {
            chain: HashChain::new(&journal.id),
            head: Position { epoch, ..before },
            synced: before.seq,
            unsynced_directories: own.into_iter().chain(unsynced).collect(),
            segment: Some(OpenSegment { file, path }),
            ended: Arc::default(),
            _lock: lock,
            journal,
            blobs,
            inbox,
        };
        let text = writer.frame(&[header.object()]);
        if let Some(segment) = &mut writer.segment {
            segment.write(&text)?;
        }
        Ok(writer)
    }

    /// Syncs all lines and names so far. Blocks. An error ends the use of the writer.
    pub(super) fn sync_now(&mut self) -> Result<(), StoreError> {
        if let Some(segment) = &mut self.segment {
            segment.sync(self.journal.disk.as_ref(), &self.unsynced_directories)?;
        }
        self.unsynced_directories.clear();
        self.synced = self.head.seq;
        Ok(())
    }

    /// Converts JSON objects to the next lines.
    fn frame(&mut self, objects: &[String]) -> String {
        let mut text = String::new();
        for object in objects {
            let (line, hash) = self.chain.line(object, self.head.seq + 1, self.synced, &self.head.hash);
            text.push_str(&line);
            self.head.seq += 1;
            self.head.hash = hash;
        }
        text
    }

    /// Appends text to the segment. After an error or a cancelled call, there is no segment.
    async fn write(&mut self, text: String, barrier: Barrier) -> Result<(), StoreError> {
        let mut segment = self.segment.take().ok_or_else(|| StoreError::Lost(self.journal.id.clone()))?;
        let segment = match barrier {
            // The page cache accepts it immediately.
            Barrier::Written => {
                segment.write(&text)?;
                segment
            }
            Barrier::Synced => {
                let disk = Arc::clone(&self.journal.disk);
                let directories = std::mem::take(&mut self.unsynced_directories);
                blocking(move || {
                    segment.write(&text)?;
                    segment.sync(disk.as_ref(), &directories)?;
                    Ok(segment)
                })
                .await?
            }
        };
        self.segment = Some(segment);
        if barrier == Barrier::Synced {
            self.synced = self.head.seq;
        }
        Ok(())
    }

    async fn append_now(&mut self, objects: Vec<String>, barrier: Barrier) -> Result<Position, StoreError> {
        if objects.is_empty() && self.synced == self.head.seq {
            return Ok(self.head);
        }
        let mut short = Vec::with_capacity(objects.len());
        for object in objects {
            short.push(move_to_blobs(object, &self.blobs).await?);
        }
        let text = self.frame(&short);
        self.write(text, barrier).await?;
        Ok(self.head)
    }
}

/// Ends the writer on drop, unless it is cleared first.
struct EndOnDrop(Option<Arc<AtomicBool>>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        if let Some(ended) = &self.0 {
            ended.store(true, Ordering::Release);
        }
    }
}

impl Drop for FileWriter {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
    }
}

#[async_trait]
impl SessionWriter for FileWriter {
    fn id(&self) -> &SessionId {
        &self.journal.id
    }

    fn epoch(&self) -> u64 {
        self.head.epoch
    }

    fn head(&self) -> Position {
        self.head
    }

    async fn append(&mut self, objects: Vec<String>, barrier: Barrier) -> Result<Position, StoreError> {
        if self.ended.load(Ordering::Acquire) {
            return Err(StoreError::Lost(self.journal.id.clone()));
        }
        // The writer ends after an error, and if this call is cancelled.
        let mut end = EndOnDrop(Some(Arc::clone(&self.ended)));
        let position = self.append_now(objects, barrier).await?;
        end.0 = None;
        Ok(position)
    }

    fn fence(&self) -> Fence {
        let (ended, id) = (Arc::clone(&self.ended), self.journal.id.clone());
        Fence::new(move || {
            // The lock of a running process cannot be taken away.
            if ended.load(Ordering::Acquire) {
                Err(io::Error::from(StoreError::Lost(id.clone())))
            } else {
                Ok(())
            }
        })
    }

    async fn set_summary(&mut self, summary: Summary) -> Result<(), StoreError> {
        let JournalFiles { disk, files, .. } = self.journal.clone();
        blocking(move || write_summary(disk.as_ref(), &files, &summary)).await
    }

    async fn inbox(&mut self) -> Result<Vec<PostedInput>, StoreError> {
        let inbox = self.inbox.clone();
        blocking(move || inbox.waiting()).await
    }

    fn inbox_signal(&self) -> Box<dyn InboxSignal> {
        Box::new(self.inbox.signal())
    }

    async fn take(&mut self, input_id: &str) -> Result<(), StoreError> {
        let (inbox, input_id) = (self.inbox.clone(), input_id.to_owned());
        blocking(move || inbox.take(&input_id)).await
    }

    async fn close(&mut self) -> Result<Position, StoreError> {
        self.append(Vec::new(), Barrier::Synced).await?;
        // Written after the sync: it shows readers that all earlier lines were on disk.
        let head = self.append(vec![CLOSED.to_owned()], Barrier::Synced).await?;
        self.ended.store(true, Ordering::Release);
        Ok(head)
    }
}
