//! The process table of the local machine, read from the kernel's `/proc`. Linux only: elsewhere,
//! and where `/proc` is not mounted, there is no table and only process groups are known.
#![expect(clippy::disallowed_methods, reason = "the kernel's process table is not a file of the environment")]

use std::{
    collections::HashMap,
    fs,
    io::{self, Read},
    os::unix::fs::DirEntryExt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use nix::errno::Errno;

use crate::variables::TAG_VARIABLE;

/// Maximum number of attempts to read a table while processes come and go.
const MAX_READINGS: usize = 4;

/// Number of attempts, and the wait between them, to read the variables of a process that is just
/// executing its program and has none to show yet.
const STARTING_RETRIES: usize = 5;
const STARTING_WAIT: Duration = Duration::from_millis(1);

/// Size that most files of a process fit in.
const FILE_SIZE: usize = 4 << 10;

/// Parent of all kernel threads.
const KERNEL_THREADS: i32 = 2;

/// Start times of the processes seen last time, so that old ones are not read again: they are most
/// of the table, and reading them would take longer than many commands. The inode of the directory
/// entry distinguishes a process from a later one with the same id.
static KNOWN: Mutex<Option<Arc<StartTimes>>> = Mutex::new(None);

type StartTimes = HashMap<(i32, u64), u64>;

/// A process in the table.
#[derive(Clone, Debug)]
pub(super) struct ProcessRow {
    pub(super) id: i32,
    pub(super) parent: i32,
    pub(super) group: i32,
    /// Start time, in the kernel's ticks since boot.
    pub(super) started: u64,
    /// True for a thread other than the first of its process.
    pub(super) is_thread: bool,
    /// Exited but not yet waited for.
    pub(super) is_zombie: bool,
    /// Tag of the command that it belongs to.
    pub(super) tag: Option<String>,
}

impl ProcessRow {
    /// Returns true for a live process that is not a kernel thread.
    pub(super) fn may_have_tag(&self) -> bool {
        !self.is_zombie && self.parent != KERNEL_THREADS
    }
}

/// Returns the start time of a process, in the kernel's ticks since boot.
pub(super) fn start_time(id: i32) -> Option<u64> {
    read_row(id).map(|row| row.started)
}

/// Returns the number of processes when the table was last read; 0 if it never was.
pub(super) fn table_len() -> usize {
    known().as_ref().map_or(0, |known| known.len())
}

/// Reads the processes with these ids, in order, that started at `since` or later, without their
/// tags. Returns `None` if one of them cannot be read.
pub(super) fn read_pids(ids: impl Iterator<Item = i32>, since: u64) -> Option<Vec<ProcessRow>> {
    let mut rows = Vec::new();
    for id in ids {
        // Threads have ids too, which the table does not list.
        match look_up(id) {
            Ok(Some(row)) if row.started >= since && !row.is_thread => rows.push(row),
            Ok(_) => {}
            Err(_) => return None,
        }
    }
    Some(rows)
}

/// Reads the tag of a process that can have one.
pub(super) fn read_tag_of(row: &mut ProcessRow) {
    if row.may_have_tag() {
        row.tag = read_tag(row.id);
    }
}

/// Reads the processes that started at `since` or later, with their tags. Returns `None` if there
/// is no table.
pub(super) fn read_table(since: u64) -> Option<Vec<ProcessRow>> {
    let mut table = Vec::new();
    for _ in 0..MAX_READINGS {
        let is_complete = read_once(since, &mut table)?;
        if is_complete {
            break;
        }
    }
    Some(table)
}

/// Reads the table once. Returns true if every listed process could be read: one that exited may
/// have left a child that was not listed.
fn read_once(since: u64, table: &mut Vec<ProcessRow>) -> Option<bool> {
    table.clear();
    let known = self::known().clone().unwrap_or_default();
    let mut seen = StartTimes::with_capacity(known.len());
    let mut is_complete = true;
    for entry in fs::read_dir("/proc").ok()? {
        let entry = entry.ok()?;
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let key = (id, entry.ino());
        if let Some(started) = known.get(&key).filter(|started| **started < since) {
            seen.insert(key, *started);
            continue;
        }
        let Some(mut row) = read_row(id) else {
            is_complete = false;
            continue;
        };
        seen.insert(key, row.started);
        if row.started < since {
            continue;
        }
        read_tag_of(&mut row);
        table.push(row);
    }
    let is_there = !seen.is_empty();
    *self::known() = Some(Arc::new(seen));
    is_there.then_some(is_complete)
}

fn known() -> MutexGuard<'static, Option<Arc<StartTimes>>> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read_row(id: i32) -> Option<ProcessRow> {
    look_up(id).ok().flatten()
}

/// Reads the process or thread with this id, if there is one.
fn look_up(id: i32) -> io::Result<Option<ProcessRow>> {
    match read(&format!("/proc/{id}/stat")) {
        Ok(stat) => {
            let row = parse_stat(id, &String::from_utf8_lossy(&stat));
            row.map(Some).ok_or_else(|| io::ErrorKind::InvalidData.into())
        }
        Err(error) if is_gone(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns true if the process is gone; one that exits between open and read gives `ESRCH`.
fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(Errno::ESRCH as i32)
}

/// Parses `/proc/PID/stat`; see proc(5). The second field is the program's name in parentheses,
/// which may itself contain spaces and parentheses.
fn parse_stat(id: i32, stat: &str) -> Option<ProcessRow> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    // Field 22, with field 6 being next.
    let started = fields.nth(16)?.parse().ok()?;
    // Field 38 is the signal sent to the parent on exit; a thread sends none.
    let is_thread = fields.nth(15) == Some("-1");
    let is_zombie = matches!(state, "Z" | "X" | "x");
    Some(ProcessRow { id, parent, group, started, is_thread, is_zombie, tag: None })
}

fn read_tag(id: i32) -> Option<String> {
    let path = format!("/proc/{id}/environ");
    for _ in 0..STARTING_RETRIES {
        let variables = read(&path).ok()?;
        if !variables.is_empty() {
            return find_tag(&variables);
        }
        thread::sleep(STARTING_WAIT);
    }
    None
}

/// Reads a file of `/proc`. The kernel does not report its size: without a guess it is read in tiny
/// pieces.
fn read(path: &str) -> io::Result<Vec<u8>> {
    let mut content = Vec::with_capacity(FILE_SIZE);
    fs::File::open(path)?.take(u64::MAX).read_to_end(&mut content)?;
    Ok(content)
}

fn find_tag(variables: &[u8]) -> Option<String> {
    variables
        .split(|byte| *byte == 0)
        .find_map(|variable| variable.strip_prefix(TAG_VARIABLE.as_bytes())?.strip_prefix(b"="))
        .map(|tag| String::from_utf8_lossy(tag).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_names_may_contain_anything() {
        let stat = "7 (a) R (b) S 5 6 6 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 4711 0 0";
        let row = parse_stat(7, stat).unwrap();
        assert_eq!((row.parent, row.group, row.started), (5, 6, 4711));
        assert!(!row.is_zombie);
        assert!(parse_stat(7, stat.replace(" S ", " Z ").as_str()).unwrap().is_zombie);
        assert!(parse_stat(7, "7 (short) S 5").is_none());
        assert!(!row.is_thread);
        let of_a_thread = format!("{stat} 3 4 5 6 7 8 9 10 11 12 13 14 15 -1 2 0");
        assert!(parse_stat(7, &of_a_thread).unwrap().is_thread);
        let of_a_process = format!("{stat} 3 4 5 6 7 8 9 10 11 12 13 14 -1 17 2 0");
        assert!(!parse_stat(7, &of_a_process).unwrap().is_thread);
    }

    #[test]
    fn old_processes_are_skipped_and_new_ones_are_not() {
        let own = std::process::id().cast_signed();
        let started = start_time(own).unwrap();
        for _ in 0..3 {
            let table = read_table(started).unwrap();
            assert!(table.iter().all(|row| row.started >= started));
            assert!(table.iter().any(|row| row.id == own));
            assert!(read_table(started + 1).unwrap().iter().all(|row| row.id != own));
            // The inode of an entry is stable, or nothing would be recognised again.
            let known = known().clone().unwrap();
            assert!(known.iter().any(|((id, _), start)| *id == own && *start == started));
        }
    }

    #[test]
    fn an_id_may_be_unused_or_a_threads() {
        let own = std::process::id().cast_signed();
        let (sender, receiver) = std::sync::mpsc::channel();
        let (release, wait) = std::sync::mpsc::channel::<()>();
        let thread = thread::spawn(move || {
            sender.send(nix::unistd::gettid().as_raw()).unwrap();
            wait.recv().unwrap_err();
        });
        let other = receiver.recv().unwrap();
        assert!(look_up(other).unwrap().unwrap().is_thread);
        assert!(!look_up(own).unwrap().unwrap().is_thread);
        // No id is that large.
        assert!(look_up(i32::MAX).unwrap().is_none());
        let rows = read_pids([own, other, i32::MAX].into_iter(), 0).unwrap();
        assert_eq!(rows.iter().map(|row| row.id).collect::<Vec<_>>(), [own]);
        assert!(read_pids([own].into_iter(), u64::MAX).unwrap().is_empty());
        drop(release);
        thread.join().unwrap();
    }

    #[test]
    fn the_tag_is_a_complete_variable() {
        assert_eq!(find_tag(b"A=1\0PINTLE_COMMAND_TAG=x.1\0").as_deref(), Some("x.1"));
        assert_eq!(find_tag(b"OLD_PINTLE_COMMAND_TAG=x.1\0"), None);
    }
}
