//! Sessions as files in a directory.

mod blobs;
mod disk;
mod fork;
mod inbox;
mod journal;
mod layout;
mod ledgers;
mod reader;
mod segment;
mod sweep;
#[cfg(test)]
mod tests;
mod writer;

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use pintle_agent::{SessionId, Timestamp};

use self::blobs::{FileBlobs, create_dir};
use self::disk::{Disk, DiskLock, LocalDisk};
use self::inbox::FileInbox;
use self::journal::JournalFiles;
use self::layout::{SessionFiles, StoreLayout, id_of};
use self::reader::FileReader;
use self::segment::START;
use self::writer::FileWriter;
use crate::blob::{self, Blobs};
use crate::error::StoreError;
use crate::format::summary_of;
use crate::hash::Hash;
use crate::holder::Holder;
use crate::line::SegmentHeader;
use crate::store::{
    Filter, JournalProblem, LineId, OpenedSession, Page, Position, Posting, Reader, SessionStore,
    SessionWriter, Summary, Verification,
};

/// Prefix of the names of directories that are being removed.
const TRASH: &str = ".deleted-";

/// Prefix of the names of files that are renamed once they are on disk.
const NEW: &str = "new-";

/// Sessions in a directory of the local file system that only its owner can enter.
///
/// Several stores, and several processes, may use one directory concurrently. A session has at most one writer. A
/// second one is refused while the process of the first exists, even if that process is stopped. The directory must be
/// on a file system with locks; a directory where locking fails is refused.
#[derive(Clone, Debug)]
pub struct FileStore {
    disk: Arc<dyn Disk>,
    layout: StoreLayout,
}

impl FileStore {
    /// Opens the store in `root`, and creates that directory if its parent exists. Blocks for a few system calls.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`] if the directory cannot be created.
    pub fn open(root: impl Into<PathBuf>) -> Result<Self, StoreError> {
        Self::on(Arc::new(LocalDisk), root.into())
    }

    fn on(disk: Arc<dyn Disk>, root: PathBuf) -> Result<Self, StoreError> {
        let layout = StoreLayout::new(root);
        create_dir(disk.as_ref(), layout.root())?;
        create_dir(disk.as_ref(), &layout.sessions())?;
        Ok(Self { disk, layout })
    }

    /// Returns the directory.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.layout.root()
    }

    fn journal(&self, id: &SessionId) -> Result<JournalFiles, StoreError> {
        Ok(JournalFiles { disk: Arc::clone(&self.disk), id: id.clone(), files: self.layout.session(id)? })
    }

    fn blobs_of(&self, files: SessionFiles) -> FileBlobs {
        FileBlobs::new(Arc::clone(&self.disk), self.layout.clone(), files)
    }

    fn lock(&self, journal: &JournalFiles) -> Result<Box<dyn DiskLock>, StoreError> {
        let path = journal.files.lock();
        let text = serde_json::to_string(&Holder::this_process()).unwrap_or_default();
        match self.disk.lock(&path, &text) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(StoreError::NotFound(journal.id.clone()))
            }
            locked => locked
                .map_err(io_error("lock", &path))?
                .map_err(|text| StoreError::InUse { session: journal.id.clone(), holder: holder_of(&text) }),
        }
    }

    fn holder_now(&self, id: &SessionId) -> Result<Option<Holder>, StoreError> {
        let journal = self.journal(id)?;
        journal.spans()?;
        let path = journal.files.lock();
        let holder = self.disk.lock_holder(&path).map_err(io_error("look at", &path))?;
        Ok(holder.map(|text| holder_of(&text)))
    }

    fn create_now(&self, summary: &Summary) -> Result<FileWriter, StoreError> {
        let (journal, lock) = self.new_journal(&summary.id)?;
        let epoch = journal.newest_epoch()? + 1;
        self.first_writer(journal, &SegmentHeader::new(summary.id.clone(), epoch, START), lock, summary)
    }

    /// Creates the directory of a session and locks it. Its name may be lost in a crash of the machine until the first
    /// barrier of its writer.
    fn new_journal(&self, id: &SessionId) -> Result<(JournalFiles, Box<dyn DiskLock>), StoreError> {
        let journal = self.journal(id)?;
        let directory = &journal.files.directory;
        match self.disk.create_dir(directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(io_error("create", directory)(error));
            }
            Ok(()) | Err(_) => {}
        }
        let lock = self.lock(&journal)?;
        match journal.spans() {
            Ok(_) => Err(StoreError::Exists(id.clone())),
            // A process that crashed while it created the session left this directory.
            Err(StoreError::NotFound(_)) => Ok((journal, lock)),
            Err(error) => Err(error),
        }
    }

    /// Writes the first line of a new session. The session exists from then on, and survives a crash of the machine once
    /// its writer has passed a barrier.
    fn first_writer(
        &self,
        journal: JournalFiles,
        header: &SegmentHeader,
        lock: Box<dyn DiskLock>,
        summary: &Summary,
    ) -> Result<FileWriter, StoreError> {
        let blobs = self.blobs_of(journal.files.clone());
        let files = journal.files.clone();
        let writer = FileWriter::start(journal, blobs, header, lock, vec![self.layout.sessions()])?;
        write_summary(self.disk.as_ref(), &files, summary)?;
        Ok(writer)
    }

    fn open_now(&self, id: &SessionId) -> Result<OpenedSession, StoreError> {
        let journal = self.journal(id)?;
        // Checked first: a session that does not exist gets no lock file.
        journal.epochs()?;
        let lock = self.lock(&journal)?;
        let extent = journal.extent()?;
        // The previous writer may have crashed with lines that are not on disk yet. The new segment has to follow them.
        let newest = journal.files.segment(extent.head.epoch);
        self.disk.sync_file(&newest).map_err(io_error("sync", &newest))?;
        if extent.synced == 0 {
            journal.sync_names()?;
        }
        let blobs = self.blobs_of(journal.files.clone());
        let header = SegmentHeader::new(id.clone(), extent.newest_epoch + 1, extent.head);
        let mut writer = FileWriter::start(journal, blobs, &header, lock, Vec::new())?;
        // Readers know lines by the number of their writer, so that number must not be used again after a crash.
        writer.sync_now()?;
        if let Some(torn) = &extent.torn {
            tracing::warn!(session = %id, seq = torn.seq, bytes = torn.bytes, "the end of a journal was torn");
        }
        Ok(OpenedSession { writer: Box::new(writer), torn: extent.torn })
    }

    fn verify_now(&self, id: &SessionId, head: Option<&Position>) -> Result<Verification, StoreError> {
        let journal = self.journal(id)?;
        let blobs = self.blobs_of(journal.files.clone());
        let mut walk = match journal.walk(1) {
            Ok(walk) => walk,
            Err(error) => return damage(error, START, 0),
        };
        let mut problems = Vec::new();
        let mut verified_blobs = 0;
        let mut matches_head = head.map(|head| head.seq == 0 && head.hash == Hash::START);
        loop {
            let line = match walk.next() {
                Ok(Some(line)) => line,
                Ok(None) => break,
                Err(error) => {
                    let mut found = damage(error, walk.head(), walk.synced())?;
                    problems.append(&mut found.problems);
                    found.problems = problems;
                    return Ok(Verification { matches_head, blobs: verified_blobs, ..found });
                }
            };
            if head.is_some_and(|head| head.seq == line.seq) {
                matches_head = Some(head.is_some_and(|head| head.hash == walk.head().hash));
            }
            for hash in blob::hashes(&line.object) {
                match blobs.get_now(&hash) {
                    Ok(Some(_)) => verified_blobs += 1,
                    Ok(None) => {
                        problems.push(JournalProblem::from_error(line.seq, &StoreError::MissingBlob(hash)));
                    }
                    Err(error @ StoreError::DamagedBlob(_)) => {
                        problems.push(JournalProblem::from_error(line.seq, &error));
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(Verification {
            head: walk.head(),
            synced: walk.synced(),
            blobs: verified_blobs,
            matches_head,
            torn: walk.torn(),
            problems,
        })
    }

    fn summary_now(&self, id: &SessionId) -> Result<Option<Summary>, StoreError> {
        let journal = self.journal(id)?;
        match journal.spans() {
            Err(StoreError::NotFound(_)) => return Ok(None),
            spans => spans?,
        };
        let found = read_summary(self.disk.as_ref(), &journal.files);
        Ok(Some(found.unwrap_or_else(|| self.rebuilt_summary(&journal))))
    }

    /// Rebuilds the summary from the readable part of the journal. The summary file is a cache, and may be lost.
    fn rebuilt_summary(&self, journal: &JournalFiles) -> Summary {
        let mut found = Summary::new(journal.id.clone(), Timestamp::from_millis(0));
        let Ok(mut walk) = journal.walk(1) else { return found };
        while let Ok(Some(line)) = walk.next() {
            let summary = summary_of(&line.object);
            found = summary.filter(|summary| summary.id == journal.id).unwrap_or(found);
        }
        let newest = journal.files.segment(walk.newest_epoch());
        found.updated_at = self.disk.modified(&newest).unwrap_or(found.updated_at);
        found
    }

    fn list_now(&self, filter: &Filter, page: &Page) -> Result<Vec<Summary>, StoreError> {
        let sessions = self.layout.sessions();
        let names = self.disk.list(&sessions).map_err(io_error("list", &sessions))?;
        let mut summaries = Vec::new();
        for id in names.iter().filter_map(|name| id_of(name)) {
            let Ok(files) = self.layout.session(&id) else { continue };
            let found = read_summary(self.disk.as_ref(), &files);
            // A loss of power may leave the first summary of a session, but none of its lines.
            let was_used = |found: &Summary| !found.title.is_empty() && found.updated_at > found.created_at;
            let summary = match found.as_ref().is_some_and(was_used) {
                true => found,
                // A session that is damaged, or was deleted meanwhile, does not hide the others.
                false => self.summary_now(&id).unwrap_or(found),
            };
            summaries.extend(summary.filter(|summary| filter.matches(summary)));
        }
        Ok(page.of_summaries(summaries))
    }

    /// Removes the directory of a session. It is renamed first, so that the session disappears as a whole.
    fn discard(&self, directory: &Path) -> Result<(), StoreError> {
        let sessions = self.layout.sessions();
        let trash = sessions.join(format!("{TRASH}{}", uuid::Uuid::now_v7()));
        self.disk.rename(directory, &trash).map_err(io_error("remove", directory))?;
        self.disk.sync_dir(&sessions).map_err(io_error("sync", &sessions))?;
        self.disk.remove_dir_all(&trash).map_err(io_error("remove", &trash))
    }

    fn delete_now(&self, id: &SessionId) -> Result<bool, StoreError> {
        let journal = self.journal(id)?;
        match journal.epochs() {
            Err(StoreError::NotFound(_)) => return Ok(false),
            epochs => epochs?,
        };
        let _lock = self.lock(&journal)?;
        let directory = &journal.files.directory;
        let hashes = self.blobs_of(journal.files.clone()).all()?;
        self.discard(directory)?;
        for hash in hashes {
            let path = self.layout.blob(&hash);
            if self.disk.links(&path).is_ok_and(|links| links == 1)
                && let Err(error) = self.disk.remove_file(&path)
            {
                tracing::debug!(%error, "a value without references was not removed");
            }
        }
        Ok(true)
    }
}

/// Returns a damaged journal as a result, and any other error as an error.
fn damage(error: StoreError, head: Position, synced: u64) -> Result<Verification, StoreError> {
    let seq = if let StoreError::Damaged { seq, .. } = &error {
        *seq
    } else if let StoreError::NotAJournal(_) = &error {
        head.seq + 1
    } else {
        return Err(error);
    };
    let problems = vec![JournalProblem::from_error(seq, &error)];
    Ok(Verification { head, synced, blobs: 0, matches_head: None, torn: None, problems })
}

#[async_trait]
impl SessionStore for FileStore {
    async fn create(&self, summary: Summary) -> Result<Box<dyn SessionWriter>, StoreError> {
        let this = self.clone();
        blocking(move || Ok(Box::new(this.create_now(&summary)?) as Box<dyn SessionWriter>)).await
    }

    async fn fork(
        &self,
        origin: &SessionId,
        at: u64,
        summary: Summary,
    ) -> Result<Box<dyn SessionWriter>, StoreError> {
        let (this, origin) = (self.clone(), origin.clone());
        blocking(move || Ok(Box::new(this.fork_now(&origin, at, &summary)?) as Box<dyn SessionWriter>)).await
    }

    async fn open(&self, id: &SessionId) -> Result<OpenedSession, StoreError> {
        let (this, id) = (self.clone(), id.clone());
        blocking(move || this.open_now(&id)).await
    }

    async fn read(&self, id: &SessionId, from: u64) -> Result<Box<dyn Reader>, StoreError> {
        let journal = self.journal(id)?;
        Ok(Box::new(blocking(move || FileReader::open(journal, from, None)).await?))
    }

    async fn read_after(&self, id: &SessionId, last: LineId) -> Result<Box<dyn Reader>, StoreError> {
        let journal = self.journal(id)?;
        let next = last.seq.saturating_add(1);
        Ok(Box::new(blocking(move || FileReader::open(journal, next, Some(last))).await?))
    }

    async fn verify(&self, id: &SessionId, head: Option<&Position>) -> Result<Verification, StoreError> {
        let (this, id, head) = (self.clone(), id.clone(), head.copied());
        blocking(move || this.verify_now(&id, head.as_ref())).await
    }

    async fn summary(&self, id: &SessionId) -> Result<Option<Summary>, StoreError> {
        let (this, id) = (self.clone(), id.clone());
        blocking(move || this.summary_now(&id)).await
    }

    async fn list(&self, filter: &Filter, page: &Page) -> Result<Vec<Summary>, StoreError> {
        let (this, filter, page) = (self.clone(), filter.clone(), page.clone());
        blocking(move || this.list_now(&filter, &page)).await
    }

    async fn holder(&self, id: &SessionId) -> Result<Option<Holder>, StoreError> {
        let (this, id) = (self.clone(), id.clone());
        blocking(move || this.holder_now(&id)).await
    }

    async fn post(&self, id: &SessionId, input_id: &str, input: String) -> Result<Posting, StoreError> {
        let journal = self.journal(id)?;
        let input_id = input_id.to_owned();
        blocking(move || {
            journal.sync_if_unsynced()?;
            FileInbox { disk: journal.disk, files: journal.files }.post(&input_id, input)
        })
        .await
    }

    async fn has_posted(&self, id: &SessionId) -> Result<bool, StoreError> {
        let journal = self.journal(id)?;
        blocking(move || {
            journal.spans()?;
            FileInbox { disk: journal.disk, files: journal.files }.has_waiting()
        })
        .await
    }

    async fn delete(&self, id: &SessionId) -> Result<bool, StoreError> {
        let (this, id) = (self.clone(), id.clone());
        blocking(move || this.delete_now(&id)).await
    }

    async fn sweep(&self, before: Timestamp) -> Result<u64, StoreError> {
        let this = self.clone();
        blocking(move || this.sweep_now(before)).await
    }

    fn blobs(&self, id: &SessionId) -> Box<dyn Blobs> {
        match self.layout.session(id) {
            Ok(files) => Box::new(self.blobs_of(files)),
            Err(_) => Box::new(blob::NoBlobs(id.clone())),
        }
    }
}

/// Writes the summary atomically.
fn write_summary(disk: &dyn Disk, files: &SessionFiles, summary: &Summary) -> Result<(), StoreError> {
    let path = files.summary();
    let temporary = files.directory.join(format!("{NEW}{}", uuid::Uuid::now_v7()));
    let text = serde_json::to_string(summary).unwrap_or_default();
    let mut file = disk.create_new(&temporary).map_err(io_error("create", &temporary))?;
    let written = file.write_all(text.as_bytes()).and_then(|()| disk.rename(&temporary, &path));
    written.map_err(|source| {
        let _ = disk.remove_file(&temporary);
        io_error("write", &path)(source)
    })
}

/// Reads the summary; `None` if it is missing or unreadable.
fn read_summary(disk: &dyn Disk, files: &SessionFiles) -> Option<Summary> {
    let mut text = String::new();
    disk.open(&files.summary()).ok()?.read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

/// Parses the text of a lock.
fn holder_of(text: &str) -> Holder {
    let unknown = Holder::new("an unknown host", 0);
    serde_json::from_str(text).unwrap_or(unknown)
}

fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError + use<> {
    let path = path.to_owned();
    move |source| StoreError::Io { action, path, source }
}

/// Runs blocking work on a separate thread. Cancelling the call does not stop the work.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    finished(tokio::task::spawn_blocking(work).await)?
}

/// Returns the result of work on another thread, and resumes its panic.
fn finished<T>(joined: Result<T, tokio::task::JoinError>) -> Result<T, StoreError> {
    joined.map_err(|error| match error.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        // The runtime is shutting down.
        Err(error) => io_error("finish", Path::new("the work"))(io::Error::other(error)),
    })
}
