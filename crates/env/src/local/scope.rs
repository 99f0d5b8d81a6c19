//! The processes that belong to a command.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use nix::{
    errno::Errno,
    sys::signal::{self, Signal as SystemSignal},
    unistd::Pid,
};

use super::{
    pid_sequence::Position,
    procfs::{self, ProcessRow},
};
use crate::process::ExitStatus;

/// Exit code of a waiting leader for a command that was killed by a signal, less its number.
const SIGNALED: i32 = 128;
const SIGNALS: std::ops::RangeInclusive<i32> = 1..=31;

/// Maximum number of ids checked without a blocking thread.
const MAX_QUICK_CHECK: usize = 64;

/// Finds the processes of one command by their group, their tag and their parents.
///
/// Clones share the state of the group.
#[derive(Clone, Debug)]
pub(super) struct Scope {
    /// The first process, leader of the group.
    leader: i32,
    tag: String,
    /// Start time of the leader; `None` without a process table.
    since: Option<u64>,
    /// Last process id allocated before the leader's own.
    before: Option<Position>,
    group: Arc<Group>,
}

#[derive(Debug, Default)]
struct Group {
    /// The leader was waited for: its id can be reused once the group is empty.
    leader_is_reaped: AtomicBool,
    /// The group was seen empty after that: the id may belong to another process by now.
    is_gone: AtomicBool,
    /// Processes found last time, with start times: an exiting process no longer shows its tag, and
    /// one that clears it still belongs to the command.
    seen: Mutex<BTreeSet<(i32, u64)>>,
    /// Id and start time of the first process of the command's own PID namespace.
    init: OnceLock<(i32, u64)>,
    #[cfg(test)]
    searches: std::sync::atomic::AtomicUsize,
}

/// The live processes of a command at one point in time.
#[derive(Clone, Debug, Default)]
pub(super) struct Members {
    /// The first process is alive.
    pub(super) has_leader: bool,
    /// Number of other live processes.
    pub(super) jobs: usize,
    /// The first process of the command's PID namespace is alive. It only reaps, and is no job.
    has_init: bool,
    /// Processes outside the group.
    outsiders: Vec<i32>,
}

impl Members {
    pub(super) fn is_empty(&self) -> bool {
        !self.has_leader && self.jobs == 0 && !self.has_init
    }

    /// Returns true if only the first process of the namespace is left, which then exits automatically.
    pub(super) fn has_only_init(&self) -> bool {
        self.has_init && !self.has_leader && self.jobs == 0
    }
}

impl Scope {
    /// Creates the scope of the process `leader`, just started after `before` in its own group.
    pub(super) fn new(leader: i32, tag: String, before: Option<Position>) -> Self {
        Self { leader, tag, since: procfs::start_time(leader), before, group: Arc::default() }
    }

    pub(super) fn leader(&self) -> i32 {
        self.leader
    }

    /// Start time from which a table must include tags.
    pub(super) fn since(&self) -> Option<u64> {
        self.since
    }

    /// Records the first process of the command's own PID namespace, whose parent is the leader. The
    /// leader then only waits for it.
    #[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
    pub(super) fn set_init(&self, id: i32) {
        // A namespace that is gone already has no process to find.
        if let Some(started) = procfs::start_time(id) {
            self.group.init.get_or_init(|| (id, started));
        }
    }

    /// Returns the id of the first process of the command's own PID namespace.
    #[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
    pub(super) fn init(&self) -> Option<i32> {
        self.group.init.get().map(|(id, _)| *id)
    }

    /// Returns the status of the command whose leader exited with `code`. A leader that waits for
    /// another process reports its signal by a code, as a shell does.
    pub(super) fn true_status(&self, code: i32) -> ExitStatus {
        let signal = code.checked_sub(SIGNALED).filter(|signal| SIGNALS.contains(signal));
        let signal = signal.filter(|_| self.group.init.get().is_some());
        signal.map_or(ExitStatus::Exited(code), ExitStatus::Signaled)
    }

    /// Returns how often processes of this command were searched for.
    #[cfg(all(test, target_os = "linux"))]
    pub(super) fn searches(&self) -> usize {
        self.group.searches.load(Ordering::Relaxed)
    }

    /// Records that the leader was waited for.
    pub(super) fn mark_leader_reaped(&self) {
        self.group.leader_is_reaped.store(true, Ordering::Release);
    }

    /// Returns true if a quick check shows that the leader left no process behind. Call it after
    /// the leader was waited for.
    pub(super) fn is_alone(&self) -> bool {
        let successors = self.successors(self.leader.saturating_add(1), MAX_QUICK_CHECK);
        let is_alone = successors.is_some_and(|rows| !rows.iter().any(ProcessRow::may_have_tag));
        self.note_group(is_alone);
        is_alone
    }

    /// Finds the live processes; blocks.
    pub(super) fn scan(&self) -> Members {
        // Checking an unused id costs no more than reading an entry of the table.
        let mut successors = self.successors(self.leader, procfs::table_len().max(MAX_QUICK_CHECK));
        successors.iter_mut().flatten().for_each(procfs::read_tag_of);
        let table = successors.or_else(|| self.since.and_then(procfs::read_table));
        self.scan_table(table.as_deref())
    }

    /// Returns the live processes started after the leader, without tags, from the id `first`.
    /// Returns `None` if process ids are no reliable order or there are more than `most` to check.
    ///
    /// No descendant is missed. Ids are checked in ascending order, so parents before children: a
    /// process that is gone when checked has started all its children before, and these have higher
    /// ids. Ids allocated meanwhile are checked too, until no new one appears.
    fn successors(&self, first: i32, most: usize) -> Option<Vec<ProcessRow>> {
        #[cfg(test)]
        self.group.searches.fetch_add(1, Ordering::Relaxed);
        let since = self.since?;
        let (mut rows, mut next) = (Vec::new(), first);
        loop {
            let ids = Position::now()?.allocated_after(self.leader, self.before)?;
            let last = *ids.end();
            if usize::try_from(last - self.leader).ok()? > most {
                return None;
            }
            if next > last {
                return Some(rows);
            }
            rows.extend(procfs::read_pids(next..=last, since)?);
            next = last.saturating_add(1);
        }
    }

    /// Finds the live processes in `table`.
    pub(super) fn scan_table(&self, table: Option<&[ProcessRow]>) -> Members {
        match (self.since, table) {
            (Some(since), Some(table)) => {
                if table.iter().any(|row| row.id == self.leader && row.started != since) {
                    // The id was reused, which is possible only once the group is empty.
                    self.group.is_gone.store(true, Ordering::Release);
                }
                let members = self.members(since, table);
                let group_is_empty =
                    members.jobs == members.outsiders.len() && !members.has_leader && !members.has_init;
                self.note_group(group_is_empty);
                members
            }
            _ => self.probe_group(),
        }
    }

    /// Sends a signal to the group and to the processes outside it.
    ///
    /// A leader that waits for another process, and the first process of a namespace, only get the
    /// kill signal: the exit status would be lost with the first, and every process with the
    /// second.
    pub(super) fn send(&self, members: &Members, signal: SystemSignal) {
        let init = self.group.init.get();
        if !self.group_is_gone() && (init.is_none() || signal == SystemSignal::SIGKILL) {
            log_failure(self.leader, signal::killpg(Pid::from_raw(self.leader), signal));
        }
        if let Some((id, _)) = init
            && members.has_init
            && signal == SystemSignal::SIGKILL
        {
            log_failure(*id, signal::kill(Pid::from_raw(*id), signal));
        }
        for id in &members.outsiders {
            log_failure(*id, signal::kill(Pid::from_raw(*id), signal));
        }
    }

    fn members(&self, since: u64, table: &[ProcessRow]) -> Members {
        let mut ours = BTreeSet::from([self.leader]);
        let mut seen = self.group.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let known = table.iter().filter(|row| seen.contains(&(row.id, row.started)));
        ours.extend(known.map(|row| row.id));
        let alive = |row: &&ProcessRow| row.started >= since && !row.is_zombie;
        // A child may precede its parent in the table: repeat until no process is added.
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
            if self.group.init.get() == Some(&(row.id, row.started)) {
                members.has_init = true;
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

    /// Checks whether the group exists. Without a table, nothing else is known.
    fn probe_group(&self) -> Members {
        let leader_is_reaped = self.group.leader_is_reaped.load(Ordering::Acquire);
        let exists =
            !self.group_is_gone() && signal::killpg(Pid::from_raw(self.leader), None) != Err(Errno::ESRCH);
        self.note_group(!exists);
        Members {
            has_leader: !leader_is_reaped,
            jobs: usize::from(leader_is_reaped && exists),
            has_init: false,
            outsiders: Vec::new(),
        }
    }
}

/// Returns true if `tag` is `outer` itself or was assigned by an environment inside the command.
fn is_within(tag: &str, outer: &str) -> bool {
    tag.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn log_failure(id: i32, sent: nix::Result<()>) {
    match sent {
        // The process is gone already, as intended.
        Ok(()) | Err(Errno::ESRCH) => {}
        Err(error) => tracing::warn!(id, %error, "signal not delivered"),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "the tests start processes directly")]

    use std::{
        io::{BufRead, BufReader},
        os::{
            fd::OwnedFd,
            unix::{net::UnixStream, process::CommandExt},
        },
        process::{Command, Stdio},
        sync::atomic::AtomicU32,
        time::{Duration, Instant},
    };

    use super::*;
    use crate::variables::TAG_VARIABLE;

    fn row(id: i32, parent: i32, group: i32, tag: Option<&str>) -> ProcessRow {
        ProcessRow {
            id,
            parent,
            group,
            started: 50,
            is_thread: false,
            is_zombie: false,
            tag: tag.map(str::to_owned),
        }
    }

    fn scope() -> Scope {
        Scope { leader: 10, tag: "t.1".to_owned(), since: Some(50), before: None, group: Arc::default() }
    }

    #[test]
    fn members_are_found_by_group_tag_and_parent() {
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
        let members = scope().scan_table(Some(&table));
        assert!(members.has_leader);
        assert_eq!(members.jobs, 5);
        assert_eq!(members.outsiders, [16, 12, 13, 15]);
    }

    #[test]
    fn the_first_process_of_a_namespace_is_no_job() {
        let scope = scope();
        scope.group.init.set((11, 50)).unwrap();
        let table = [row(11, 10, 10, Some("t.1")), row(12, 11, 12, Some("t.1"))];
        let members = scope.scan_table(Some(&table));
        assert_eq!((members.jobs, members.has_init), (1, true));
        assert_eq!(members.outsiders, [12]);
        let left = scope.scan_table(Some(&table[..1]));
        assert!(left.has_only_init() && !left.is_empty());
        assert!(scope.scan_table(Some(&[])).is_empty());
        assert_eq!(scope.true_status(137), ExitStatus::Signaled(9));
        assert_eq!(scope.true_status(255), ExitStatus::Exited(255));
        assert_eq!(self::scope().true_status(137), ExitStatus::Exited(137));
    }

    #[test]
    fn an_empty_group_is_never_ours_again() {
        let scope = scope();
        scope.mark_leader_reaped();
        assert!(scope.scan_table(Some(&[row(1, 0, 1, None)])).is_empty());
        let reused = [row(10, 1, 10, None), row(11, 10, 10, None)];
        let members = scope.scan_table(Some(&reused));
        assert_eq!(members.jobs, 0);
        assert!(members.outsiders.is_empty());
    }

    #[test]
    fn a_member_without_its_tag_remains_a_member() {
        let scope = scope();
        scope.mark_leader_reaped();
        assert_eq!(scope.scan_table(Some(&[row(12, 1, 12, Some("t.1"))])).jobs, 1);
        assert_eq!(scope.scan_table(Some(&[row(12, 1, 12, None)])).outsiders, [12]);
        let reused = ProcessRow { started: 60, ..row(12, 1, 12, None) };
        assert!(scope.scan_table(Some(&[reused])).is_empty());
        assert!(scope.scan_table(Some(&[row(12, 1, 12, None)])).is_empty());
    }

    #[test]
    fn a_reused_id_is_not_ours() {
        let scope = scope();
        scope.mark_leader_reaped();
        let reused = [ProcessRow { started: 60, ..row(10, 1, 10, None) }, row(11, 10, 10, None)];
        assert!(scope.scan_table(Some(&reused)).is_empty());
        assert!(scope.group_is_gone());
    }

    /// A finished command that left a job behind, which printed its id. The job exits when the
    /// guard is dropped.
    struct Leftover {
        scope: Scope,
        job: i32,
        _input: UnixStream,
    }

    /// The jobs exit at the end of their input.
    const JOBS: [(&str, &str); 4] = [
        ("in the group", "sh -c 'echo $$; exec cat >/dev/null' <&3 &"),
        ("in a session of its own", "setsid sh -c 'echo $$; exec cat >/dev/null' <&3 &"),
        ("forked twice", "(setsid sh -c 'sh -c \"echo \\$\\$; exec cat >/dev/null\" <&3 &' &)"),
        ("behind nohup", "nohup sh -c 'echo $$; exec cat >/dev/null' <&3 &"),
    ];

    /// Runs a command that leaves `job` behind. Samples positions meanwhile, as a busy application
    /// would.
    fn spawn_leftover(job: &str) -> Leftover {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let tag = format!("scope-{}.{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let (input, end) = UnixStream::pair().unwrap();
        let before = Position::now();
        let mut child = Command::new("/bin/sh")
            .args(["-c", &format!("exec 3<&0; {job}")])
            .env(TAG_VARIABLE, &tag)
            .stdin(OwnedFd::from(end))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .unwrap();
        let scope = Scope::new(child.id().cast_signed(), tag, before);
        let is_done = AtomicBool::new(false);
        let mut line = String::new();
        std::thread::scope(|threads| {
            threads.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    Position::now();
                    std::thread::sleep(Duration::from_millis(1));
                }
            });
            BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
            child.wait().unwrap();
            is_done.store(true, Ordering::Relaxed);
        });
        scope.mark_leader_reaped();
        Leftover { scope, job: line.trim().parse().unwrap(), _input: input }
    }

    #[test]
    fn leftovers_are_found_by_id_order() {
        for (name, job) in JOBS {
            let started = Instant::now();
            // On a very busy machine samples are too far apart, and the table has to be read.
            loop {
                let leftover = spawn_leftover(job);
                let first = leftover.scope.leader() + 1;
                assert!(!leftover.scope.is_alone(), "{name}");
                if let Some(rows) = leftover.scope.successors(first, usize::MAX) {
                    assert!(rows.iter().any(|row| row.id == leftover.job && row.may_have_tag()), "{name}");
                    assert!(rows.iter().is_sorted_by_key(|row| row.id));
                    break;
                }
                assert!(started.elapsed() < Duration::from_secs(60), "{name}: ids never suffice");
            }
        }
    }

    #[test]
    fn leftovers_are_found_with_and_without_id_order() {
        for (name, job) in JOBS {
            let leftover = spawn_leftover(job);
            let unknown = Scope { before: None, ..leftover.scope.clone() };
            assert!(unknown.successors(unknown.leader() + 1, usize::MAX).is_none(), "{name}");
            assert!(leftover.scope.successors(leftover.scope.leader() + 1, 0).is_none(), "{name}");
            for scope in [&leftover.scope, &unknown] {
                assert!(!scope.is_alone(), "{name}");
                let members = scope.scan();
                assert!(!members.has_leader && members.jobs >= 1, "{name}");
                let is_outside = members.outsiders.contains(&leftover.job);
                assert_eq!(is_outside, !["in the group", "behind nohup"].contains(&name), "{name}");
            }
        }
    }

    #[test]
    fn a_quick_check_finds_no_leftovers() {
        let started = Instant::now();
        // On a busy machine this takes some attempts until no other process starts meanwhile, or
        // all of these are gone.
        loop {
            let leftover = spawn_leftover("echo 0; true");
            assert_eq!(leftover.scope.scan().jobs, 0);
            if leftover.scope.is_alone() {
                assert!(leftover.scope.group_is_gone());
                break;
            }
            assert!(started.elapsed() < Duration::from_secs(60), "the quick check never succeeds");
        }
    }
}
