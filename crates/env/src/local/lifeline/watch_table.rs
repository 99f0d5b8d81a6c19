//! Table of running commands for the supervisor: an unnamed file in memory with one line per
//! command.
//!
//! No process is woken when a command starts or ends, and the table outlives the embedding process.

use std::{fs::File, io, os::unix::fs::FileExt};

/// Bytes per line with its line ending, padded with blanks. Two kernel numbers and a colon fit.
const LINE: usize = 48;

/// A file of fixed-length lines; unused ones are blank.
#[derive(Debug)]
pub(super) struct WatchTable {
    file: File,
    /// Blank lines below `len`.
    blank: Vec<LineNumber>,
    len: u64,
}

/// Line number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LineNumber(u64);

impl WatchTable {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { file: create()?, blank: Vec::new(), len: 0 })
    }

    /// Returns a handle to read the file from its start. All handles share one file offset.
    pub(super) fn handle(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Writes `entry` to a blank line.
    pub(super) fn write(&mut self, entry: &str) -> io::Result<LineNumber> {
        let line = self.blank.last().copied().unwrap_or(LineNumber(self.len));
        self.put(line, entry)?;
        if self.blank.pop().is_none() {
            self.len += 1;
        }
        Ok(line)
    }

    /// Blanks a line.
    pub(super) fn clear(&mut self, line: LineNumber) -> io::Result<()> {
        self.put(line, "")?;
        self.blank.push(line);
        Ok(())
    }

    fn put(&self, LineNumber(number): LineNumber, entry: &str) -> io::Result<()> {
        if entry.len() >= LINE || entry.contains('\n') {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the entry does not fit into a line"));
        }
        let mut bytes = [b' '; LINE];
        bytes.iter_mut().zip(entry.bytes()).for_each(|(target, byte)| *target = byte);
        bytes[LINE - 1] = b'\n';
        self.file.write_all_at(&bytes, number * LINE as u64)
    }
}

#[cfg(target_os = "linux")]
fn create() -> io::Result<File> {
    use nix::sys::memfd::{MFdFlags, memfd_create};

    let file = memfd_create(c"pintle-commands", MFdFlags::MFD_CLOEXEC)?;
    Ok(file.into())
}

/// On other systems it is a file on disk.
#[cfg(not(target_os = "linux"))]
fn create() -> io::Result<File> {
    tempfile::tempfile_in("/tmp")
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn entries(table: &WatchTable) -> Vec<String> {
        let mut text = String::new();
        let mut file = table.handle().unwrap();
        file.read_to_string(&mut text).unwrap();
        std::io::Seek::rewind(&mut file).unwrap();
        assert!(text.is_empty() || text.ends_with('\n'));
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn cleared_lines_are_reused() {
        let mut table = WatchTable::new().unwrap();
        assert_eq!(entries(&table), Vec::<String>::new());
        let [one, two, _] = ["1:10", "2:20", "3:30"].map(|entry| table.write(entry).unwrap());
        table.clear(two).unwrap();
        assert_eq!(entries(&table), ["1:10", "3:30"]);
        assert_eq!(table.write("4:40").unwrap(), two);
        assert_eq!(entries(&table), ["1:10", "4:40", "3:30"]);
        table.clear(one).unwrap();
        let longest = format!("{}:{}", i32::MAX, u64::MAX);
        assert_eq!(table.write(&longest).unwrap(), one);
        assert_eq!(entries(&table), [longest.as_str(), "4:40", "3:30"]);
        let next = table.write("5:50").unwrap();
        assert_eq!(next, LineNumber(3));
        assert_eq!(table.file.metadata().unwrap().len(), 4 * LINE as u64);
    }

    #[test]
    fn an_invalid_entry_takes_no_line() {
        let mut table = WatchTable::new().unwrap();
        table.write(&"x".repeat(LINE)).unwrap_err();
        table.write("1\n2").unwrap_err();
        assert_eq!(table.write("1:10").unwrap(), LineNumber(0));
        assert_eq!(entries(&table), ["1:10"]);
    }
}
