//! The processes of this machine as the kernel's `/proc` shows them. Linux only: elsewhere, and
//! where `/proc` is not mounted, there is no table and only process groups are known.
#![expect(clippy::disallowed_methods, reason = "the kernel's process table is not a file of the environment")]

use std::{fs, path::Path, thread, time::Duration};

use super::TAG_VARIABLE;

/// How often a table is read anew because processes came and went while it was read.
const MAX_READINGS: usize = 4;

/// How often, and after which wait, the variables of a process are read that is just starting its
/// program and has none to show yet.
const STARTING_RETRIES: usize = 5;
const STARTING_WAIT: Duration = Duration::from_millis(1);

/// The process that starts the threads of the kernel.
const KERNEL_THREADS: i32 = 2;

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

/// All processes; the marks only of those that started at `since` or later. `None` if there is no
/// table to read.
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
    let mut is_complete = true;
    for entry in fs::read_dir("/proc").ok()? {
        let name = entry.ok()?.file_name();
        let Some(id) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let Some(mut row) = read_row(id) else {
            is_complete = false;
            continue;
        };
        if row.started >= since && !row.is_zombie && row.parent != KERNEL_THREADS {
            row.tag = read_tag(id);
        }
        table.push(row);
    }
    (!table.is_empty()).then_some(is_complete)
}

fn read_row(id: i32) -> Option<ProcessRow> {
    let stat = fs::read(Path::new("/proc").join(id.to_string()).join("stat")).ok()?;
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
        let variables = fs::read(&path).ok()?;
        if !variables.is_empty() {
            return find_tag(&variables);
        }
        thread::sleep(STARTING_WAIT);
    }
    None
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
    fn a_name_may_hold_anything() {
        let stat = "7 (a) R (b) S 5 6 6 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 4711 0 0";
        let row = parse_stat(7, stat).unwrap();
        assert_eq!((row.parent, row.group, row.started), (5, 6, 4711));
        assert!(!row.is_zombie);
        assert!(parse_stat(7, stat.replace(" S ", " Z ").as_str()).unwrap().is_zombie);
        assert!(parse_stat(7, "7 (short) S 5").is_none());
    }

    #[test]
    fn the_mark_is_a_whole_variable() {
        assert_eq!(find_tag(b"A=1\0PINTLE_COMMAND_TAG=x.1\0").as_deref(), Some("x.1"));
        assert_eq!(find_tag(b"OLD_PINTLE_COMMAND_TAG=x.1\0"), None);
    }
}
