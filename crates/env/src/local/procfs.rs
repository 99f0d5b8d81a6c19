//! The processes of this machine as the kernel's `/proc` shows them. Linux only: elsewhere, and
//! where `/proc` is not mounted, there is no table and only process groups are known.
#![expect(clippy::disallowed_methods, reason = "the kernel's process table is not a file of the environment")]

use std::{
    collections::HashMap,
    fs,
    io::Read,
    os::unix::fs::DirEntryExt,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use super::TAG_VARIABLE;

/// How often a table is read anew because processes came and went while it was read.
const MAX_READINGS: usize = 4;

/// How often, and after which wait, the variables of a process are read that is just starting its
/// program and has none to show yet.
const STARTING_RETRIES: usize = 5;
const STARTING_WAIT: Duration = Duration::from_millis(1);

/// What most files of a process take.
const FILE_SIZE: usize = 4 << 10;

/// The process that starts the threads of the kernel.
const KERNEL_THREADS: i32 = 2;

/// When the processes started that were there the last time, so that old ones are not read again: they are most of
/// the table, and reading them would take longer than many a command. The number of its directory entry tells a
/// process from a later one of the same id.
static KNOWN: Mutex<Option<Arc<StartTimes>>> = Mutex::new(None);

type StartTimes = HashMap<(i32, u64), u64>;

/// One process.
#[derive(Clone, Debug)]
pub(super) struct ProcessRow {
    pub(super) id: i32,
    pub(super) parent: i32,
    pub(super) group: i32,
    /// When it started, in the kernel's ticks since boot.
    pub(super) started: u64,
    /// Ended, and not yet waited for.
    pub(super) is_zombie: bool,
    /// The mark of the command that it belongs to.
    pub(super) tag: Option<String>,
}

/// When a process started, in the kernel's ticks since boot.
pub(super) fn start_time(id: i32) -> Option<u64> {
    read_row(id).map(|row| row.started)
}

/// Whether nobody at all was started after the process `id`: the kernel gives out numbers in turn, and the last
/// one given is that of `id`. No process can have a descendant then, and nobody has to be looked for.
///
/// It is asked when `id` has just ended: while it lived its number could not be given again, however many were
/// given meanwhile.
#[cfg(target_os = "linux")]
pub(super) fn is_youngest(id: i32) -> bool {
    use nix::sys::statfs::{PROC_SUPER_MAGIC, fstatfs};

    let Ok(mut file) = fs::File::open("/proc/loadavg") else {
        return false;
    };
    // Containers may have another file there that somebody makes up now and then.
    let is_the_kernels = fstatfs(&file).is_ok_and(|system| system.filesystem_type() == PROC_SUPER_MAGIC);
    let mut line = [0; 128];
    let line = file.read(&mut line).ok().and_then(|len| line.get(..len));
    is_the_kernels && line.and_then(parse_last_id) == Some(id)
}

/// Elsewhere nobody says who was started last.
#[cfg(not(target_os = "linux"))]
pub(super) fn is_youngest(_id: i32) -> bool {
    false
}

/// The last field is the number that was given out last.
#[cfg(any(target_os = "linux", test))]
fn parse_last_id(line: &[u8]) -> Option<i32> {
    std::str::from_utf8(line).ok()?.split_ascii_whitespace().nth(4)?.parse().ok()
}

/// The processes that started at `since` or later, with their marks. `None` if there is no table to
/// read.
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

/// Whether every process that was listed could be read. If one went away it may have left a child
/// that was not listed.
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
        if !row.is_zombie && row.parent != KERNEL_THREADS {
            row.tag = read_tag(id);
        }
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
    let stat = read(&Path::new("/proc").join(id.to_string()).join("stat"))?;
    parse_stat(id, &String::from_utf8_lossy(&stat))
}

/// The fields are described in proc(5). The second is the program's name in parentheses, which may
/// itself hold spaces and parentheses.
fn parse_stat(id: i32, stat: &str) -> Option<ProcessRow> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    // Field 22, with field 6 being next.
    let started = fields.nth(16)?.parse().ok()?;
    Some(ProcessRow { id, parent, group, started, is_zombie: matches!(state, "Z" | "X" | "x"), tag: None })
}

fn read_tag(id: i32) -> Option<String> {
    let path = Path::new("/proc").join(id.to_string()).join("environ");
    for _ in 0..STARTING_RETRIES {
        let variables = read(&path)?;
        if !variables.is_empty() {
            return find_tag(&variables);
        }
        thread::sleep(STARTING_WAIT);
    }
    None
}

/// The kernel does not say how long its files are: without a guess they are read in tiny pieces.
fn read(path: &Path) -> Option<Vec<u8>> {
    let mut content = Vec::with_capacity(FILE_SIZE);
    fs::File::open(path).ok()?.take(u64::MAX).read_to_end(&mut content).ok()?;
    Some(content)
}

fn find_tag(variables: &[u8]) -> Option<String> {
    variables
        .split(|byte| *byte == 0)
        .find_map(|variable| variable.strip_prefix(TAG_VARIABLE.as_bytes())?.strip_prefix(b"="))
        .map(|tag| String::from_utf8_lossy(tag).into_owned())
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_name_may_hold_anything() {
        let stat = "7 (a) R (b) S 5 6 6 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 4711 0 0";
        let row = parse_stat(7, stat).unwrap();
        assert_eq!((row.parent, row.group, row.started), (5, 6, 4711));
        assert!(!row.is_zombie);
        assert!(parse_stat(7, stat.replace(" S ", " Z ").as_str()).unwrap().is_zombie);
        assert!(parse_stat(7, "7 (short) S 5").is_none());
    }

    #[test]
    fn old_processes_are_left_out_and_new_ones_are_not() {
        let own = std::process::id().cast_signed();
        let started = start_time(own).unwrap();
        for _ in 0..3 {
            let table = read_table(started).unwrap();
            assert!(table.iter().all(|row| row.started >= started));
            assert!(table.iter().any(|row| row.id == own));
            assert!(read_table(started + 1).unwrap().iter().all(|row| row.id != own));
            // The number of an entry stays, or nothing would be known again.
            let known = known().clone().unwrap();
            assert!(known.iter().any(|((id, _), start)| *id == own && *start == started));
        }
    }

    #[test]
    fn only_the_last_number_given_is_the_youngest() {
        assert_eq!(parse_last_id(b"0.29 1.49 1.75 1/121 7841\n"), Some(7841));
        assert_eq!(parse_last_id(b"0.29 1.49 1.75"), None);
        let start = || std::process::Command::new("true").spawn().unwrap();
        let (mut first, mut second) = (start(), start());
        assert!(!is_youngest(first.id().cast_signed()));
        first.wait().unwrap();
        second.wait().unwrap();
        assert!(!is_youngest(first.id().cast_signed()));
        // On a busy machine it takes some tries to be the last.
        let began = Instant::now();
        loop {
            let mut child = start();
            child.wait().unwrap();
            if is_youngest(child.id().cast_signed()) {
                break;
            }
            assert!(began.elapsed() < Duration::from_secs(30), "nobody is ever the youngest");
        }
    }

    #[test]
    fn the_mark_is_a_whole_variable() {
        assert_eq!(find_tag(b"A=1\0PINTLE_COMMAND_TAG=x.1\0").as_deref(), Some("x.1"));
        assert_eq!(find_tag(b"OLD_PINTLE_COMMAND_TAG=x.1\0"), None);
    }
}
