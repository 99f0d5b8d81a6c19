//! The walk that updates a backup.

use std::ffi::OsStr;
use std::io;

use nix::sys::stat::{FileStat, Mode, fstat};
use nix::unistd::{UnlinkatFlags, unlinkat};

use super::{
    MAX_COPY, Method, NEVER, Pair, changed_at, copy, entries, is_directory, is_recent, is_regular, is_same,
    is_temporary, is_unchanged_leaf, link, make_directory, set_time, state,
};

/// A walk that updates a backup.
pub(super) struct BackupUpdate {
    /// Number of files that may still be linked.
    pub(super) files_left: usize,
    /// Whether the walk ends at a directory that lacks a file or directory of its backup.
    pub(super) ends_at_missing: bool,
}

impl BackupUpdate {
    /// Updates the backup of an entry. Returns whether the walk continues.
    pub(super) fn update_entry(
        &mut self,
        pair: &Pair,
        name: &OsStr,
        method: Method,
        depth: usize,
    ) -> io::Result<bool> {
        let Some(source) = &pair.source else { return Ok(true) };
        let (found, known) = (state(source, name)?, state(&pair.backup, name)?);
        if let Some(found) = &found
            && is_directory(found)
            && depth > 0
        {
            return self.update_subdirectory(pair, name, method, depth, (found, known.as_ref()));
        }
        if known.as_ref().is_some_and(is_directory) {
            return Ok(!self.ends_at_missing);
        }
        if let Some(found) = found.filter(is_regular) {
            self.update_file(pair, name, method, (&found, known.as_ref()))?;
        }
        Ok(true)
    }

    fn update_subdirectory(
        &mut self,
        pair: &Pair,
        name: &OsStr,
        method: Method,
        depth: usize,
        (found, known): (&FileStat, Option<&FileStat>),
    ) -> io::Result<bool> {
        if method == Method::Linked && known.is_some_and(|known| is_unchanged_leaf(found, known)) {
            return Ok(true);
        }
        if known.is_some_and(|known| !is_directory(known)) {
            unlinkat(&pair.backup, name, UnlinkatFlags::NoRemoveDir)?;
        }
        let mode = Mode::from_bits_truncate(found.st_mode & 0o777) | Mode::S_IRWXU;
        if make_directory(&pair.backup, name, mode)? {
            // The time of its creation may be equal to the time of the source.
            set_time(&pair.backup, name, NEVER)?;
        }
        self.update_directory(&pair.enter(name)?, method, depth - 1)
    }

    /// Updates the backup of a directory. The time of the backup is the time at which the status of its source last changed,
    /// which no process can set. Directories of which both are equal have the same entries. Returns whether the walk
    /// continues.
    fn update_directory(&mut self, pair: &Pair, method: Method, depth: usize) -> io::Result<bool> {
        let Some(source) = &pair.source else { return Ok(true) };
        let changed = changed_at(&fstat(source)?);
        if pair.is_unchanged()? {
            return self.update_entries(pair, method, depth);
        }
        if self.ends_at_missing && pair.lacks_entry()? {
            return Ok(false);
        }
        for name in entries(source)?.keys().filter(|name| !is_temporary(name)) {
            if !self.update_entry(pair, name, method, depth)? {
                return Ok(false);
            }
        }
        // Another change within the same tick of the clock would not change the time.
        let time = if is_recent(changed) { NEVER } else { changed };
        set_time(&pair.backup, OsStr::new("."), time)?;
        Ok(true)
    }

    /// Updates the entries of a directory whose source has not changed: its subdirectories, and copied files, which may have
    /// changed in place. Returns whether the walk continues.
    fn update_entries(&mut self, pair: &Pair, method: Method, depth: usize) -> io::Result<bool> {
        for (name, is_directory) in entries(&pair.backup)? {
            match (is_directory, method) {
                (true, _) | (false, Method::Copied) => {
                    if !self.update_entry(pair, &name, method, depth)? {
                        return Ok(false);
                    }
                }
                (false, Method::Linked) => self.count_file()?,
            }
        }
        Ok(true)
    }

    fn update_file(
        &mut self,
        pair: &Pair,
        name: &OsStr,
        method: Method,
        (found, known): (&FileStat, Option<&FileStat>),
    ) -> io::Result<()> {
        let Some(source) = &pair.source else { return Ok(()) };
        self.count_file()?;
        if let Some(known) = known {
            if is_same(found, known, method) {
                return Ok(());
            }
            unlinkat(&pair.backup, name, UnlinkatFlags::NoRemoveDir)?;
        }
        match method {
            Method::Copied if found.st_size <= MAX_COPY => copy(source, &pair.backup, name, found)?,
            Method::Copied | Method::Linked => link(source, &pair.backup, name)?,
        };
        Ok(())
    }

    fn count_file(&mut self) -> io::Result<()> {
        self.files_left = self.files_left.checked_sub(1).ok_or(io::ErrorKind::QuotaExceeded)?;
        Ok(())
    }
}
