//! Forks, which share the segments and values of their origin by hard links.
//!
//! A segment is only ever appended to, and the first line of the fork names the last line of the segment that belongs
//! to the fork. Writing to the origin, or deleting it, therefore does not change its forks.

use std::collections::BTreeSet;
use std::io::{self, Read as _};
use std::path::Path;

use pintle_agent::SessionId;

use super::FileStore;
use super::blobs::create_dir;
use super::disk::Disk;
use super::io_error;
use super::layout::SessionFiles;
use super::writer::FileWriter;
use crate::error::StoreError;
use crate::hash::Hash;
use crate::line::SegmentHeader;
use crate::store::Summary;

/// Size of a part of a file that is copied, in bytes.
const PART: usize = 64 << 10;

impl FileStore {
    pub(super) fn fork_now(
        &self,
        origin: &SessionId,
        at: u64,
        summary: &Summary,
    ) -> Result<FileWriter, StoreError> {
        let disk = self.disk.as_ref();
        let from = self.journal(origin)?;
        let prefix = from.prefix(at)?;
        let (journal, lock) = self.new_journal(&summary.id)?;
        let directory = journal.files.inherited();
        // A process may have crashed while it created the fork.
        for left_over in [&directory, &journal.files.blobs()] {
            match disk.remove_dir_all(left_over) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(io_error("remove", left_over)(error));
                }
                Ok(()) | Err(_) => {}
            }
        }
        create_dir(disk, &directory)?;
        for span in &prefix.spans {
            let path = from.segment(&span.session, span.epoch);
            // The newest lines may not be on disk yet.
            disk.sync_file(&path).map_err(io_error("sync", &path))?;
            share(disk, &path, &journal.files.inherited_segment(span.epoch))?;
        }
        disk.sync_dir(&directory).map_err(io_error("sync", &directory))?;
        share_values(disk, &from.files, &journal.files, &prefix.values)?;
        let epoch = journal.newest_epoch()?.max(prefix.head.epoch) + 1;
        let mut header = SegmentHeader::new(summary.id.clone(), epoch, prefix.head);
        header.forked_from = prefix.spans.last().map(|span| span.session.clone());
        let mut writer = self.first_writer(journal, &header, lock, summary)?;
        // The caller may refer to the fork at once.
        writer.sync_now()?;
        Ok(writer)
    }
}

/// Gives these values of one session to another.
fn share_values(
    disk: &dyn Disk,
    from: &SessionFiles,
    to: &SessionFiles,
    values: &BTreeSet<Hash>,
) -> Result<(), StoreError> {
    let directory = to.blobs();
    create_dir(disk, &directory)?;
    for hash in values {
        match share(disk, &from.blob(hash), &to.blob(hash)) {
            // A missing value is missing in the fork as well.
            Err(StoreError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
            shared => shared?,
        }
    }
    disk.sync_dir(&directory).map_err(io_error("sync", &directory))
}

/// Gives a file a second name, or copies it if that is impossible.
fn share(disk: &dyn Disk, from: &Path, to: &Path) -> Result<(), StoreError> {
    match disk.link(from, to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(io_error("share", from)(error)),
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            tracing::debug!(%error, "a file is copied");
            copy(disk, from, to)
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

fn copy(disk: &dyn Disk, from: &Path, to: &Path) -> Result<(), StoreError> {
    let mut input = disk.open(from).map_err(io_error("open", from))?;
    let mut output = disk.create_new(to).map_err(io_error("create", to))?;
    let mut part = vec![0; PART];
    loop {
        let size = input.read(&mut part).map_err(io_error("read", from))?;
        let Some(bytes) = part.get(..size).filter(|bytes| !bytes.is_empty()) else { break };
        output.write_all(bytes).map_err(io_error("write", to))?;
    }
    output.sync().map_err(io_error("write", to))
}
