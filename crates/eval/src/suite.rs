//! Suites: instances with hidden tests, from files of ours, of SWE-bench, or of cases of cheats.

mod cases;
mod file;
mod jsonl;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use globset::Glob;
use pintle_host::failure::{Failure, OrFailure as _};
use pintle_host::process_env::{absolute, read_text, read_text_if_exists};
use pintle_workflow::contract::Contract;
use pintle_workflow::results::ResultsFormat;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::machine::Machine;

/// Name of the file that defines a suite.
const SUITE_FILE: &str = "suite.toml";

/// Instances that agents are measured on.
#[derive(Debug)]
pub struct Suite {
    /// Name, for reports.
    pub name: String,
    /// Instances, in the order of the suite.
    pub instances: Vec<Instance>,
    /// Files that the suite generated, removed on drop.
    _generated: Option<TempDir>,
}

/// One goal, with the tests that judge it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Instance {
    /// Name, unique in the suite.
    pub id: String,
    /// Goal, for the agent.
    pub prompt: String,
    /// Words that group instances.
    pub tags: Vec<String>,
    /// Files from which an attempt starts.
    pub source: InstanceSource,
    /// Command that prepares each clone.
    pub prepare: Option<String>,
    /// Whether `prepare` and tests may use the network.
    pub network: bool,
    /// Time limit of `prepare` and of each test command.
    pub timeout: Duration,
    /// Tests that judge an attempt.
    pub tests: HiddenTests,
    /// Change that reaches the goal.
    pub gold: Option<GoldChange>,
    /// Contract for `pintle task`, with the prompt as its goal. Without one, a session drafts it.
    pub contract: Option<Contract>,
    /// Script of the sessions of a task, for suites of cheats.
    pub cheat: Option<CheatCase>,
    /// Programs that the commands need. Without them, the instance is left out.
    pub needs: Vec<String>,
}

/// Files from which an attempt starts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InstanceSource {
    /// Files of a directory.
    Files(PathBuf),
    /// Files of a commit, without its history.
    Commit {
        /// Repository on this machine.
        repository: PathBuf,
        /// Id of the commit.
        commit: String,
    },
}

/// Tests that an agent does not see.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HiddenTests {
    /// Directories whose files are written over the clone before the commands of `fail_to_pass` run.
    pub files: Vec<PathBuf>,
    /// Patch that is applied before tests run.
    pub patch: Option<String>,
    /// Files of the base that replace the agent's versions.
    pub restore: Vec<String>,
    /// Commands, or names of tests, that fail before the change and pass after it.
    pub fail_to_pass: Vec<String>,
    /// Commands, or names of tests, that pass before and after the change.
    pub pass_to_pass: Vec<String>,
    /// Command that runs all tests, if the tests are names.
    pub runner: Option<TestRunner>,
}

/// Command whose output has the results of single tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestRunner {
    /// Command of the shell.
    pub command: String,
    /// Format of its output.
    pub results: ResultsFormat,
}

/// Change of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GoldChange {
    /// Directory whose files are written over the clone.
    pub files: Option<PathBuf>,
    /// Files that are removed.
    pub delete: Vec<String>,
    /// Patch that is applied.
    pub patch: Option<String>,
    /// Script that runs in the root of the clone.
    pub script: Option<PathBuf>,
}

/// A task whose sessions follow a script: a cheat, or its honest twin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheatCase {
    /// Whether the change only appears to reach the goal.
    pub is_cheat: bool,
    /// Change of the last candidate.
    pub change: GoldChange,
    /// Change of a candidate before it.
    pub rival: Option<GoldChange>,
    /// Files that the session for the anchor adds.
    pub anchor: Option<PathBuf>,
    /// Answer of that session.
    pub proposal: ScriptedProposal,
    /// Files that a second session for an anchor adds, and its answer.
    pub second_anchor: Option<(PathBuf, ScriptedProposal)>,
    /// Text whose presence in a request makes the reviewer report a finding.
    pub review_finds: Option<String>,
    /// Part of the evidence that finds the cheat, if the case names it.
    pub class: Option<CheatClass>,
}

/// Answer of a session that writes an anchor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptedProposal {
    /// Command of the shell that runs the test.
    pub command: String,
    /// Format of its results.
    pub results: Option<ResultsFormat>,
    /// File with the results.
    pub report: Option<String>,
}

/// Part of the evidence that finds a cheat. The reviewer approves everything, except for [`CheatClass::Review`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum CheatClass {
    /// The comparison of files and of single tests, or clean clones.
    Construction,
    /// A run that must fail.
    Control,
    /// A second anchor that no candidate sees.
    HiddenAnchor,
    /// A review, whose request must contain the cheat.
    Review,
}

impl Suite {
    /// Loads a suite: a directory with `suite.toml`, such a file, or a directory of cases with `case.toml`. Runs the generator
    /// of the suite, if it has one.
    ///
    /// Dropping the future ends the generator.
    ///
    /// # Errors
    ///
    /// Missing and invalid files, with the line, and a generator that fails.
    pub async fn load(path: &Path, machine: &Machine) -> Result<Self, Failure> {
        let path = absolute(path)?;
        let is_directory = machine.process_env().is_directory(&path);
        let file = if is_directory { path.join(SUITE_FILE) } else { path.clone() };
        let suite = match read_text_if_exists("suite", &file)? {
            Some(text) => file::load(&text, &file, machine).await?,
            None if is_directory => cases::load(&path, machine)?,
            None => return Err(Failure::usage(format!("the suite {} does not exist", path.display()))),
        };
        suite.check()?;
        Ok(suite)
    }

    /// Returns the instances whose names match a glob, or all of them.
    ///
    /// # Errors
    ///
    /// An invalid glob, and one that matches no instance.
    pub fn select(&self, pattern: Option<&str>) -> Result<Vec<&Instance>, Failure> {
        let Some(pattern) = pattern else { return Ok(self.instances.iter().collect()) };
        let matcher = Glob::new(pattern).or_usage("invalid glob of tasks")?.compile_matcher();
        let selected: Vec<&Instance> =
            self.instances.iter().filter(|instance| matcher.is_match(&instance.id)).collect();
        match selected.is_empty() {
            true => Err(Failure::usage(format!("no task of suite {} matches `{pattern}`", self.name))),
            false => Ok(selected),
        }
    }

    /// Returns whether the instances have scripts for the sessions of a task, so that no model is needed.
    #[must_use]
    pub fn is_scripted(&self) -> bool {
        self.instances.iter().all(|instance| instance.cheat.is_some())
    }

    fn check(&self) -> Result<(), Failure> {
        let refuse = |id: &str, problem: &str| {
            Err(Failure::usage(format!("suite {}: task `{id}`: {problem}", self.name)))
        };
        if self.instances.is_empty() {
            return Err(Failure::usage(format!("suite {}: expected at least one task", self.name)));
        }
        let mut ids = HashSet::new();
        for Instance { id, prompt, tests, .. } in &self.instances {
            if id.trim().is_empty() || id.contains(char::is_control) {
                return refuse(id, "id: expected a name of one line");
            }
            if !ids.insert(id) {
                return refuse(id, "id: expected a name that no other task has");
            }
            if prompt.trim().is_empty() {
                return refuse(id, "prompt: expected a text");
            }
            if tests.fail_to_pass.iter().all(|test| test.trim().is_empty()) {
                return refuse(id, "fail_to_pass: expected at least one test");
            }
        }
        Ok(())
    }
}

impl Instance {
    /// Creates an instance without tests.
    pub(crate) fn new(id: String, prompt: String, source: InstanceSource) -> Self {
        Self {
            id,
            prompt,
            tags: Vec::new(),
            source,
            prepare: None,
            network: false,
            timeout: Duration::from_secs(600),
            tests: HiddenTests::default(),
            gold: None,
            contract: None,
            cheat: None,
            needs: Vec::new(),
        }
    }

    /// Returns a hash of everything that decides about an attempt: the goal, the files and the tests.
    pub(crate) async fn hash(&self, machine: &Machine) -> Result<String, Failure> {
        let tests = &self.tests;
        let (directory, commit) = match &self.source {
            InstanceSource::Files(directory) => (Some(directory), None),
            InstanceSource::Commit { commit, .. } => (None, Some(commit)),
        };
        let mut trees = Vec::new();
        let scripted = self.cheat.as_ref().map(CheatCase::directories).unwrap_or_default();
        for directory in directory.into_iter().chain(&tests.files).chain(scripted) {
            trees.push(machine.hash_tree(directory).await?);
        }
        let case = match &self.cheat {
            Some(case) => Some(case.describe()?),
            None => None,
        };
        let runner = tests.runner.as_ref().map(|runner| (&runner.command, runner.results));
        let definition = json!({
            "id": self.id,
            "prompt": self.prompt,
            "commit": commit,
            "trees": trees,
            "prepare": self.prepare,
            "network": self.network,
            "timeout_s": self.timeout.as_secs(),
            "patch": tests.patch,
            "restore": tests.restore,
            "fail_to_pass": tests.fail_to_pass,
            "pass_to_pass": tests.pass_to_pass,
            "runner": runner,
            "contract": self.contract,
            "case": case,
        });
        Ok(blake3::hash(definition.to_string().as_bytes()).to_hex().to_string())
    }
}

impl CheatCase {
    /// Returns the changes of the candidates, in their order.
    pub(crate) fn changes(&self) -> impl Iterator<Item = &GoldChange> {
        self.rival.iter().chain([&self.change])
    }

    /// Returns the directories with files of the sessions.
    fn directories(&self) -> Vec<&PathBuf> {
        let changes = self.changes().filter_map(|change| change.files.as_ref());
        changes.chain(&self.anchor).chain(self.second_anchor.iter().map(|(files, _)| files)).collect()
    }

    /// Returns the parts that are not files of directories.
    fn describe(&self) -> Result<Value, Failure> {
        let scripts: Result<Vec<Option<String>>, Failure> = self
            .changes()
            .map(|change| change.script.as_ref().map(|script| read_text("script", script)).transpose())
            .collect();
        let second = self.second_anchor.as_ref().map(|(_, proposal)| proposal);
        Ok(json!({
            "cheat": self.is_cheat,
            "scripts": scripts?,
            "proposals": [Some(&self.proposal), second],
            "finds": self.review_finds,
            "class": self.class,
        }))
    }
}
