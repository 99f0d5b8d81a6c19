//! The test programs of `cargo test`, of which some run at once.
//!
//! Cargo runs one test program after the other, and most of them wait more than they compute. Here cargo's runner only writes
//! down how cargo would run a program, and this process runs it, with the same directory and variables.

use std::{
    env,
    ffi::OsString,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use serde::{Deserialize, Serialize};

use super::runner;
use crate::{
    failure::{Context as _, Failure},
    test_run::TestRun,
};

/// First argument of this program as the runner that writes a program down.
const NAME: &str = "queue-test-program";

/// Number of programs that run at once.
const AT_ONCE: usize = 2;

/// Programs that start first, since they take longest: none of them should run alone at the end.
const LONGEST: &[&str] = &["it-", "pintle_env-", "pintle_workflow-", "pintle_store-"];

/// Time between two looks for a program.
const POLL: Duration = Duration::from_millis(50);

/// A program as cargo would run it.
#[derive(Debug, Serialize, Deserialize)]
struct QueuedProgram {
    /// The program and its arguments.
    words: Vec<OsString>,
    directory: PathBuf,
    variables: Vec<(OsString, OsString)>,
}

/// Programs that wait, in files of a directory.
pub(super) struct ProgramQueue {
    directory: PathBuf,
    /// Cargo has ended.
    is_closed: AtomicBool,
    taking: Mutex<()>,
}

impl QueuedProgram {
    /// Returns the file name of the program.
    fn name(&self) -> String {
        let path = self.words.first().map(Path::new).and_then(Path::file_name);
        path.unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// Writes a program down if this process is the runner of cargo, else returns `None`.
pub(crate) fn run_as_queue() -> Option<Result<ExitCode, Failure>> {
    let mut words = env::args_os().skip(1);
    if words.next()? != NAME {
        return None;
    }
    let directory = PathBuf::from(words.next()?);
    Some(write_down(&directory, words.collect()).map(|()| ExitCode::SUCCESS))
}

fn write_down(queue: &Path, words: Vec<OsString>) -> Result<(), Failure> {
    let directory = env::current_dir().context("there is no current directory")?;
    let program = QueuedProgram { words, directory, variables: env::vars_os().collect() };
    let text = serde_json::to_vec(&program).context("a test program cannot be written down")?;
    let (unfinished, file) = (queue.join(program.name()), queue.join(format!("{}.json", program.name())));
    // A file with the suffix is complete.
    fs::write(&unfinished, text)
        .and_then(|()| fs::rename(&unfinished, &file))
        .context("no test program is queued")
}

impl ProgramQueue {
    /// Creates an empty queue.
    pub(super) fn create(directory: PathBuf) -> Result<Self, Failure> {
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory)
            .with_context(|| format!("{} could not be created", directory.display()))?;
        Ok(Self { directory, is_closed: AtomicBool::new(false), taking: Mutex::default() })
    }

    /// Makes cargo queue its test programs. `program` is this program.
    pub(super) fn set_runner<'a>(
        &self,
        test: &'a mut Command,
        program: &Path,
    ) -> Result<&'a mut Command, Failure> {
        let words = [program.as_os_str(), NAME.as_ref(), self.directory.as_os_str()];
        runner::set(test, &words)
    }

    /// Runs the programs until `queue_all` has returned and none is left. Prints the output of each when it has ended, and
    /// returns all results. `program` is this program.
    pub(super) fn run<T>(
        &self,
        program: &Path,
        queue_all: impl FnOnce() -> T,
    ) -> (T, Vec<Result<TestRun, Failure>>) {
        thread::scope(|scope| {
            let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(|| self.work(program))).collect();
            let queued = queue_all();
            self.is_closed.store(true, Ordering::Release);
            let results = workers.into_iter().flat_map(|worker| match worker.join() {
                Ok(results) => results,
                Err(_) => vec![Err(Failure::new("a thread that runs test programs has panicked"))],
            });
            (queued, results.collect())
        })
    }

    fn work(&self, program: &Path) -> Vec<Result<TestRun, Failure>> {
        let mut results = Vec::new();
        loop {
            // Nothing is queued after that.
            let is_closed = self.is_closed.load(Ordering::Acquire);
            match self.take() {
                Ok(Some(queued)) => results.push(self.run_one(program, &queued)),
                Ok(None) if is_closed => return results,
                Ok(None) => thread::sleep(POLL),
                Err(failure) => {
                    results.push(Err(failure));
                    return results;
                }
            }
        }
    }

    /// Takes the program that should start next, if one waits.
    fn take(&self) -> Result<Option<QueuedProgram>, Failure> {
        let _alone = self.taking.lock().unwrap_or_else(PoisonError::into_inner);
        let entries = fs::read_dir(&self.directory).context("the queue of test programs cannot be read")?;
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let waiting = names.filter(|name| name.ends_with(".json"));
        let Some(next) = waiting.min_by_key(|name| (rank(name), name.clone())) else { return Ok(None) };
        let path = self.directory.join(next);
        let text = fs::read(&path).context("a queued test program cannot be read")?;
        fs::remove_file(&path).context("a queued test program cannot be removed")?;
        let queued = serde_json::from_slice(&text).context("a queued test program cannot be parsed")?;
        Ok(Some(queued))
    }

    fn run_one(&self, program: &Path, queued: &QueuedProgram) -> Result<TestRun, Failure> {
        let name = queued.name();
        // The watchdog prints the files that are left.
        let path = self.directory.join(format!("{name}.log"));
        let log = File::create(&path).with_context(|| format!("cannot create `{}`", path.display()))?;
        let errors = log.try_clone().with_context(|| format!("cannot duplicate `{}`", path.display()))?;
        let mut command = Command::new(program);
        command.arg(runner::NAME).args(&queued.words).current_dir(&queued.directory);
        command.env_clear().envs(queued.variables.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(log).stderr(errors);
        let status = command.status().with_context(|| format!("{name} could not be started"))?;
        let output = fs::read(&path).unwrap_or_default();
        let text = format!("     Running ({name})\n{}", String::from_utf8_lossy(&output));
        print!("{text}");
        let _ = fs::remove_file(&path);
        let mut run = TestRun::default();
        text.lines().for_each(|line| run.add(line));
        if !status.success() {
            run.fail(&name);
        }
        Ok(run)
    }
}

/// Returns the position of a program in the order of starts.
fn rank(name: &str) -> usize {
    LONGEST.iter().position(|prefix| name.starts_with(prefix)).unwrap_or(LONGEST.len())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn script(directory: &Path, name: &str, text: &str) -> OsString {
        let path = directory.join(name);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.into()
    }

    #[test]
    fn queued_programs_run_as_cargo_would_run_them() {
        let directory = env::temp_dir().join(format!("pintle-programs-{}", std::process::id()));
        let queue = ProgramQueue::create(directory.join("queue")).unwrap();
        // In place of this program.
        let runner = script(&directory, "runner", "shift; exec \"$@\"");
        let passes = "echo 'test result: ok. 1 passed; 0 failed; 0 ignored'";
        let words = |name: &str, text: &str| vec![script(&directory, name, text), "argument".into()];
        let queued = [
            words("acp-1", passes),
            words("it-2", "echo 'test result: FAILED. 0 passed; 1 failed'; exit 101"),
        ];
        let (waiting, results) = queue.run(Path::new(&runner), || {
            let _alone = queue.taking.lock().unwrap();
            for words in queued {
                write_down(&queue.directory, words).unwrap();
            }
            fs::read_dir(&queue.directory).unwrap().count()
        });
        assert_eq!(waiting, 2);
        let mut run = TestRun::default();
        results.into_iter().for_each(|result| run.merge(result.unwrap()));
        assert_eq!(run.to_string(), "all 2 test binaries: 1 passed; 1 failed; 0 ignored");
        assert_eq!(run.require(2).unwrap_err().to_string(), "test programs failed: it-2");
        // Nothing is left for the watchdog.
        assert_eq!(fs::read_dir(&queue.directory).unwrap().count(), 0);
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn the_longest_programs_start_first() {
        let directory = env::temp_dir().join(format!("pintle-ranks-{}", std::process::id()));
        let queue = ProgramQueue::create(directory.clone()).unwrap();
        for name in ["acp-1", "pintle_store-2", "it-3", "it-4"] {
            write_down(&directory, vec![name.into()]).unwrap();
        }
        let order: Vec<String> =
            std::iter::from_fn(|| queue.take().unwrap()).map(|queued| queued.name()).collect();
        assert_eq!(order, ["it-3", "it-4", "pintle_store-2", "acp-1"]);
        fs::remove_dir_all(directory).unwrap();
    }
}
