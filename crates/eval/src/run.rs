//! Runs: the attempts of an agent on a suite, in a directory that several processes share.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pintle_host::failure::Failure;
use pintle_host::process_env::{ProcessEnv, absolute, read_text, read_text_if_exists};
use serde::{Deserialize, Serialize};

use crate::agent::AgentSetup;
use crate::attempt::{AttemptKey, AttemptRecord, perform};
use crate::jobs::for_each;
use crate::machine::Machine;
use crate::run_files::{VERSION, parse, to_json};
use crate::suite::{Instance, Suite};

/// File with the configuration.
const RUN_FILE: &str = "run.json";

/// Directory of the records of attempts.
const ATTEMPTS: &str = "attempts";

/// Extension of the record of an attempt on an older version of its instance.
const SUPERSEDED: &str = "superseded";

/// How long another process may hold the configuration locked.
const LOCK_TIME: Duration = Duration::from_secs(30);

/// Settings that all attempts of a run share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunConfiguration {
    /// Version of this format.
    pub version: u32,
    /// Name of the suite.
    pub suite: String,
    /// Name of the agent.
    pub agent: String,
    /// Model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Flags of the agent.
    pub flags: Vec<String>,
    /// Seconds after which an attempt is stopped.
    pub time_limit_s: u64,
    /// Whether tests and agents of this project run in a sandbox.
    pub sandbox: bool,
}

/// Attempts of an agent on a suite.
#[derive(Debug)]
pub struct EvalRun<'a> {
    agent: &'a AgentSetup,
    machine: &'a Machine,
    directory: PathBuf,
    configuration: RunConfiguration,
}

/// Progress of a run, for the user.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunProgress<'a> {
    /// An attempt has finished.
    Finished(&'a AttemptRecord),
    /// An attempt had finished before.
    Kept,
    /// Another process works on an attempt.
    Elsewhere,
    /// An instance is left out, because this program is missing.
    LeftOut(&'a Instance, &'a str),
}

impl<'a> EvalRun<'a> {
    /// Opens a run in a directory, which is created. A run of the same suite, agent and settings continues.
    ///
    /// # Errors
    ///
    /// The directory has the attempts of another run, or cannot be used, and the program of the agent is missing.
    pub async fn open(
        suite: &Suite,
        agent: &'a AgentSetup,
        machine: &'a Machine,
        directory: &Path,
    ) -> Result<Self, Failure> {
        let configuration = RunConfiguration {
            version: VERSION,
            suite: suite.name.clone(),
            agent: agent.kind.name().to_owned(),
            model: agent.model.clone(),
            flags: agent.flags.clone(),
            time_limit_s: agent.time_limit.as_secs(),
            sandbox: machine.has_sandbox(),
        };
        let directory = absolute(directory)?;
        let process_env = machine.process_env();
        if directory.exists() && !process_env.is_directory(&directory) {
            let message = format!("{} is a file; expected a directory for the run", directory.display());
            return Err(Failure::usage(message));
        }
        agent.require_program(machine).await?;
        let _lock = process_env.lock_private(&directory.join("run.lock"), LOCK_TIME).await?;
        let file = directory.join(RUN_FILE);
        match read_configuration(&file)? {
            Some(found) if found != configuration => {
                let message = format!("{} has the attempts of another run", directory.display());
                return Err(Failure::usage(message).with_hint("select another directory with `--out`"));
            }
            Some(_) => {}
            None => {
                process_env.write_private(&file, &to_json(&configuration)?)?;
            }
        }
        Ok(Self { agent, machine, directory, configuration })
    }

    /// Performs the attempts that no process has finished or works on: `attempts` on each of the instances, `jobs` of them
    /// concurrently. Reports each of them.
    ///
    /// Dropping the future ends the agents and tests. A killed run continues with the attempts that it had not finished.
    ///
    /// # Errors
    ///
    /// An agent that cannot start, and files that cannot be read or written. Attempts that have finished stay.
    pub async fn perform(
        &self,
        instances: &[&Instance],
        attempts: u32,
        jobs: usize,
        report: &dyn Fn(RunProgress<'_>),
    ) -> Result<(), Failure> {
        let pairs =
            (1..=attempts).flat_map(|number| instances.iter().map(move |instance| (*instance, number)));
        let pairs: Vec<(&Instance, u32)> = pairs.collect();
        let known = read_records(&self.directory, self.machine.process_env())?;
        let known = known.as_slice();
        for_each(&pairs, jobs, |_, (instance, number)| self.perform_one(instance, *number, known, report))
            .await
    }

    async fn perform_one(
        &self,
        instance: &Instance,
        number: u32,
        known: &[(AttemptRecord, PathBuf)],
        report: &dyn Fn(RunProgress<'_>),
    ) -> Result<(), Failure> {
        if let Some(program) = self.machine.missing_program(&instance.needs).await? {
            report(RunProgress::LeftOut(instance, program));
            return Ok(());
        }
        let instance_hash = instance.hash(self.machine).await?;
        let id = self.attempt_id(&instance_hash, number)?;
        let process_env = self.machine.process_env();
        let attempts = self.directory.join(ATTEMPTS);
        let file = attempts.join(format!("{id}.json"));
        // The kernel releases the lock of a killed process.
        let Some(_lock) = process_env.try_lock_private(&attempts.join(format!("{id}.lock")))? else {
            report(RunProgress::Elsewhere);
            return Ok(());
        };
        let others = known.iter().filter(|(record, _)| {
            (&record.instance, record.attempt) == (&instance.id, number) && record.id != id
        });
        let others: Vec<&Path> = others.map(|(_, patch)| patch.as_path()).collect();
        move_text(&file.with_extension(SUPERSEDED), &file, process_env)?;
        if file.is_file() {
            self.set_aside(&others)?;
            report(RunProgress::Kept);
            return Ok(());
        }
        // Another run may have an attempt with the same id.
        let place = blake3::hash(format!("{id}\n{}", self.directory.display()).as_bytes()).to_hex();
        let root = self.machine.work_directory(&place)?;
        let patch = attempts.join(format!("{id}.patch"));
        let key = AttemptKey { id: &id, instance, instance_hash: &instance_hash, number };
        let performed = perform(&key, self.agent, self.machine, &root, &patch).await;
        let removed = self.machine.remove(&root);
        let record = performed?;
        removed?;
        process_env.write_private(&file, &to_json(&record)?)?;
        self.set_aside(&others)?;
        report(RunProgress::Finished(&record));
        Ok(())
    }

    /// Sets records of an attempt on an older version of its instance aside, so that the attempt counts once. `patches` are the
    /// patches of the records, which stay.
    fn set_aside(&self, patches: &[&Path]) -> Result<(), Failure> {
        patches.iter().try_for_each(|patch| {
            let record = patch.with_extension("json");
            move_text(&record, &record.with_extension(SUPERSEDED), self.machine.process_env())
        })
    }

    /// Returns the hash of instance, configuration and number.
    fn attempt_id(&self, instance: &str, number: u32) -> Result<String, Failure> {
        let configuration = to_json(&self.configuration)?;
        let hash = blake3::hash(format!("{instance}\n{configuration}\n{number}").as_bytes());
        Ok(hash.to_hex().chars().take(32).collect())
    }
}

/// Reads a run: its configuration, and its attempts with their patches, by instance and number.
///
/// # Errors
///
/// The directory has no run, or a record is invalid.
pub fn read_run(
    directory: &Path,
    process_env: &ProcessEnv,
) -> Result<(RunConfiguration, Vec<(AttemptRecord, PathBuf)>), Failure> {
    let configuration = read_configuration(&directory.join(RUN_FILE))?
        .ok_or_else(|| Failure::usage(format!("{} has no run of `pintle eval run`", directory.display())))?;
    let mut attempts = read_records(directory, process_env)?;
    attempts
        .sort_by(|(one, _), (other, _)| (&one.instance, one.attempt).cmp(&(&other.instance, other.attempt)));
    Ok((configuration, attempts))
}

/// Reads the records of a run with the files of their patches, in any order.
fn read_records(
    directory: &Path,
    process_env: &ProcessEnv,
) -> Result<Vec<(AttemptRecord, PathBuf)>, Failure> {
    let mut records = Vec::new();
    for path in process_env.paths_in(&directory.join(ATTEMPTS)) {
        if path.extension().is_some_and(|extension| extension == "json") {
            let record: AttemptRecord = parse(&read_text("record", &path)?, &path)?;
            records.push((record, path.with_extension("patch")));
        }
    }
    Ok(records)
}

/// Moves a text file, if it exists. A process that is killed leaves both files, of which the next one moves the first.
fn move_text(from: &Path, to: &Path, process_env: &ProcessEnv) -> Result<(), Failure> {
    if let Some(text) = read_text_if_exists("record", from)? {
        process_env.write_private(to, &text)?;
        process_env.remove_file(from)?;
    }
    Ok(())
}

fn read_configuration(file: &Path) -> Result<Option<RunConfiguration>, Failure> {
    read_text_if_exists("run", file)?.map(|text| parse(&text, file)).transpose()
}
