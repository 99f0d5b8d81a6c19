//! Everything that a command started.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use nix::{
    errno::Errno,
    sys::signal::{self, Signal as SystemSignal},
    unistd::Pid,
};

use super::procfs::{self, ProcessRow};

/// Knows the processes of one command: by their group, by their mark, and by their parents.
///
/// Clones know the same about the group.
#[derive(Clone, Debug)]
pub(super) struct Scope {
    /// The first process, which leads the group.
    leader: i32,
    tag: String,
    /// When the leader started; `None` where there is no process table.
    since: Option<u64>,
    group: Arc<Group>,
}

#[derive(Debug, Default)]
struct Group {
    /// The leader was waited for: its number is free once the group is empty.
    leader_is_reaped: AtomicBool,
    /// It was seen empty after that: the number can belong to somebody else by now.
    is_gone: AtomicBool,
    /// Who ran the last time, with the start: one that is just ending shows its mark no more, and one that wipes it
    /// stays ours.
    seen: Mutex<BTreeSet<(i32, u64)>>,
}

/// The processes of a command that were running when somebody looked.
#[derive(Clone, Debug, Default)]
pub(super) struct Members {
    /// The first process itself runs.
    pub(super) has_leader: bool,
    /// Others run, and so many.
    pub(super) jobs: usize,
    /// Those that have left the group.
    outsiders: Vec<i32>,
}

impl Members {
    pub(super) fn is_empty(&self) -> bool {
        !self.has_leader && self.jobs == 0
    }
}

impl Scope {
    /// The scope of the process `leader`, which was just started in a group of its own.
    pub(super) fn new(leader: i32, tag: String) -> Self {
        Self { leader, tag, since: procfs::start_time(leader), group: Arc::default() }
    }

    pub(super) fn leader(&self) -> i32 {
        self.leader
    }

    /// The start time from which on a table must show marks.
    pub(super) fn since(&self) -> Option<u64> {
        self.since
    }

    /// To be called when the leader was waited for.
    pub(super) fn leader_was_reaped(&self) {
        self.group.leader_is_reaped.store(true, Ordering::Release);
    }

    /// Whether it is known at once, without a look at the table, that the leader left nobody behind. To be asked
    /// after the leader was waited for.
    pub(super) fn is_alone(&self) -> bool {
        let is_alone = self.since.is_some() && procfs::is_youngest(self.leader);
        self.note_group(is_alone);
        is_alone
    }

    /// Looks who runs; blocks.
    pub(super) fn look(&self) -> Members {
        let table = self.since.and_then(procfs::read_table);
        self.look_in(table.as_deref())
    }

    /// Looks who runs according to `table`.
    pub(super) fn look_in(&self, table: Option<&[ProcessRow]>) -> Members {
        match (self.since, table) {
            (Some(since), Some(table)) => {
                if table.iter().any(|row| row.id == self.leader && row.started != since) {
                    // The number is in use again, which it cannot be before the group is empty.
                    self.group.is_gone.store(true, Ordering::Release);
                }
                let members = self.members(since, table);
                let group_is_empty = members.jobs == members.outsiders.len() && !members.has_leader;
                self.note_group(group_is_empty);
                members
            }
            _ => self.look_at_group(),
        }
    }

    /// Sends a signal to the group and to those that have left it.
    pub(super) fn send(&self, members: &Members, signal: SystemSignal) {
        if !self.group_is_gone() {
            report(self.leader, signal::killpg(Pid::from_raw(self.leader), signal));
        }
        for id in &members.outsiders {
            report(*id, signal::kill(Pid::from_raw(*id), signal));
        }
    }

    fn members(&self, since: u64, table: &[ProcessRow]) -> Members {
        let mut ours = BTreeSet::from([self.leader]);
        let mut seen = self.group.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let known = table.iter().filter(|row| seen.contains(&(row.id, row.started)));
        ours.extend(known.map(|row| row.id));
        let alive = |row: &&ProcessRow| row.started >= since && !row.is_zombie;
        // A child may stand before its parent in the table: look until nobody is new.
        loop {
            let is_new = |row: &&ProcessRow| !ours.contains(&row.id) && self.owns(row, &ours);
            let new: Vec<_> = table.iter().filter(alive).filter(is_new).collect();
            if new.is_empty() {
                break;
            }
            ours.extend(new.iter().map(|row| row.id));
        }
        let mut members = Members::default();
        seen.clear();
        for row in table.iter().filter(|row| ours.contains(&row.id) && !row.is_zombie) {
            seen.insert((row.id, row.started));
            if row.id == self.leader {
                members.has_leader = row.started == since;
                continue;
            }
            members.jobs += 1;
            if self.group_is_gone() || row.group != self.leader {
                members.outsiders.push(row.id);
            }
        }
        members
    }

    fn owns(&self, row: &ProcessRow, ours: &BTreeSet<i32>) -> bool {
        let is_tagged = row.tag.as_deref().is_some_and(|tag| is_within(tag, &self.tag));
        is_tagged
            || (!self.group_is_gone() && row.group == self.leader)
            || (ours.contains(&row.parent) && (row.parent != self.leader || !self.group_is_gone()))
    }

    fn group_is_gone(&self) -> bool {
        self.group.is_gone.load(Ordering::Acquire)
    }

    fn note_group(&self, is_empty: bool) {
        if is_empty && self.group.leader_is_reaped.load(Ordering::Acquire) {
            self.group.is_gone.store(true, Ordering::Release);
        }
    }

    /// All that is known without a table: whether the group exists.
    fn look_at_group(&self) -> Members {
        let leader_is_reaped = self.group.leader_is_reaped.load(Ordering::Acquire);
        let exists =
            !self.group_is_gone() && signal::killpg(Pid::from_raw(self.leader), None) != Err(Errno::ESRCH);
        self.note_group(!exists);
        Members {
            has_leader: !leader_is_reaped,
            jobs: usize::from(leader_is_reaped && exists),
            outsiders: Vec::new(),
        }
    }
}

/// Whether a mark is `tag` itself or was given by an environment inside the command.
fn is_within(mark: &str, tag: &str) -> bool {
    mark.strip_prefix(tag).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn report(id: i32, sent: nix::Result<()>) {
    match sent {
        // It is gone already, which is what a signal is for.
        Ok(()) | Err(Errno::ESRCH) => {}
        Err(error) => tracing::warn!(id, %error, "signal not delivered"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: i32, parent: i32, group: i32, tag: Option<&str>) -> ProcessRow {
        ProcessRow { id, parent, group, started: 50, is_zombie: false, tag: tag.map(str::to_owned) }
    }

    fn scope() -> Scope {
        Scope { leader: 10, tag: "t.1".to_owned(), since: Some(50), group: Arc::default() }
    }

    #[test]
    fn members_are_found_by_group_mark_and_parent() {
        let table = [
            row(16, 15, 16, None),
            row(10, 1, 10, Some("t.1")),
            row(11, 10, 10, Some("t.1")),
            row(12, 1, 12, Some("t.1")),
            row(13, 1, 13, Some("t.1/u.4")),
            row(14, 1, 14, Some("t.11")),
            row(15, 12, 15, None),
            ProcessRow { started: 49, ..row(17, 10, 10, None) },
            ProcessRow { is_zombie: true, ..row(18, 10, 10, None) },
        ];
        let members = scope().look_in(Some(&table));
        assert!(members.has_leader);
        assert_eq!(members.jobs, 5);
        assert_eq!(members.outsiders, [16, 12, 13, 15]);
    }

    #[test]
    fn an_empty_group_is_never_taken_for_ours_again() {
        let scope = scope();
        scope.leader_was_reaped();
        assert!(scope.look_in(Some(&[row(1, 0, 1, None)])).is_empty());
        let reused = [row(10, 1, 10, None), row(11, 10, 10, None)];
        let members = scope.look_in(Some(&reused));
        assert_eq!(members.jobs, 0);
        assert!(members.outsiders.is_empty());
    }

    #[test]
    fn who_was_ours_once_stays_ours_without_a_mark() {
        let scope = scope();
        scope.leader_was_reaped();
        assert_eq!(scope.look_in(Some(&[row(12, 1, 12, Some("t.1"))])).jobs, 1);
        assert_eq!(scope.look_in(Some(&[row(12, 1, 12, None)])).outsiders, [12]);
        let reused = ProcessRow { started: 60, ..row(12, 1, 12, None) };
        assert!(scope.look_in(Some(&[reused])).is_empty());
        assert!(scope.look_in(Some(&[row(12, 1, 12, None)])).is_empty());
    }

    #[test]
    fn a_number_that_is_in_use_again_is_not_ours() {
        let scope = scope();
        scope.leader_was_reaped();
        let reused = [ProcessRow { started: 60, ..row(10, 1, 10, None) }, row(11, 10, 10, None)];
        assert!(scope.look_in(Some(&reused)).is_empty());
        assert!(scope.group_is_gone());
    }
}
