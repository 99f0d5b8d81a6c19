//! Hidden tests, in clones that the agent never saw.

use std::path::Path;

use pintle_env::{ExecRequest, ExecResult, ExecutionEnvironment};
use pintle_host::failure::{Failure, OrFailure as _};
use pintle_workflow::results::TestStatus;
use serde::{Deserialize, Serialize};

use crate::machine::tail;
use crate::suite::TestRunner;
use crate::workspace::Workspace;

/// Maximum size of the output of a failed test in a record, in bytes.
const MAX_OUTPUT: usize = 2_000;

/// Maximum size of an output with results of single tests, in bytes.
const MAX_RESULTS: usize = 64 << 20;

/// Name of the clones of tests.
const CLONE: &str = "judge";

/// Results of the hidden tests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judgement {
    /// Reason why the change could not be judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Tests, in the order of the suite.
    pub tests: Vec<TestVerdict>,
}

/// Result of one test, or of one command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TestVerdict {
    /// Name of the test, or the command.
    pub name: String,
    /// Whether it passes before the change as well.
    pub passes_before: bool,
    /// Whether it passed.
    pub passed: bool,
    /// End of the output of a test that failed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
}

impl Judgement {
    /// Returns whether all tests passed.
    #[must_use]
    pub fn is_solved(&self) -> bool {
        self.problem.is_none() && !self.tests.is_empty() && self.tests.iter().all(|test| test.passed)
    }

    /// Returns the tests that failed.
    pub fn failures(&self) -> impl Iterator<Item = &TestVerdict> {
        self.tests.iter().filter(|test| !test.passed)
    }
}

/// Runs the hidden tests on the base with a patch.
pub(crate) async fn judge(workspace: &Workspace<'_>, patch: &Path) -> Result<Judgement, Failure> {
    let tests = &workspace.instance.tests;
    workspace.clone_to(CLONE).await?;
    if let Err(failure) = workspace.apply_patch(CLONE, patch).await {
        return Ok(Judgement { problem: Some(failure.message()), tests: Vec::new() });
    }
    if let Some(runner) = &tests.runner {
        return judge_by_results(workspace, patch, runner).await;
    }
    let mut verdicts = Vec::new();
    let failing = tests.fail_to_pass.iter().map(|command| (command, false));
    for (command, passes_before) in failing.chain(tests.pass_to_pass.iter().map(|command| (command, true))) {
        let ended = run_test(workspace, patch, command, !passes_before).await?;
        let passed = ended.passed();
        verdicts.push(TestVerdict {
            name: command.clone(),
            passes_before,
            passed,
            output: if passed { String::new() } else { ended.describe() },
        });
    }
    workspace.machine.remove(&workspace.path(CLONE))?;
    Ok(Judgement { problem: None, tests: verdicts })
}

/// Runs one command that reports all tests.
async fn judge_by_results(
    workspace: &Workspace<'_>,
    patch: &Path,
    runner: &TestRunner,
) -> Result<Judgement, Failure> {
    let tests = &workspace.instance.tests;
    // Both streams, since a runner may write headings to one of them.
    let command = format!("exec 2>&1\n{}", runner.command);
    let ended = run_test(workspace, patch, &command, true).await?;
    let text = ended.result.output.head_text_lossy(MAX_RESULTS).unwrap_or_default();
    let run = runner.results.parse(&text);
    let problem = ended.problem().or_else(|| run.problems.first().cloned());
    let verdict = |name: &String, passes_before: bool| {
        let status = run.tests.get(name);
        let output = match status {
            Some(TestStatus::Passed) => String::new(),
            Some(TestStatus::Failed | TestStatus::Broken) => "it failed".to_owned(),
            Some(TestStatus::Skipped) => "it was skipped".to_owned(),
            None => "it did not run".to_owned(),
        };
        TestVerdict { name: name.clone(), passes_before, passed: status == Some(&TestStatus::Passed), output }
    };
    let failing = tests.fail_to_pass.iter().map(|name| verdict(name, false));
    let passing = tests.pass_to_pass.iter().map(|name| verdict(name, true));
    let tests = failing.chain(passing).collect();
    workspace.machine.remove(&workspace.path(CLONE))?;
    Ok(Judgement { problem, tests })
}

/// End of a test command.
struct TestEnd {
    result: ExecResult,
    /// Damage that the command caused, such as a removed git history.
    damage: Option<String>,
}

impl TestEnd {
    fn passed(&self) -> bool {
        self.result.success() && self.damage.is_none()
    }

    /// Returns why the results do not count.
    fn problem(&self) -> Option<String> {
        let timed_out = self.result.timed_out.then(|| "the command exceeded its time limit".to_owned());
        self.damage.clone().or(timed_out)
    }

    fn describe(&self) -> String {
        let end = self.problem().unwrap_or_else(|| format!("exit code {}", self.result.exit_code));
        format!("{end}\n{}", tail(&self.result.output, MAX_OUTPUT)).trim_end().to_owned()
    }
}

/// Runs a command in a new clone with the patch.
async fn run_test(
    workspace: &Workspace<'_>,
    patch: &Path,
    command: &str,
    with_hidden_files: bool,
) -> Result<TestEnd, Failure> {
    let instance = workspace.instance;
    let clone = workspace.clone_to(CLONE).await?;
    workspace.apply_patch(CLONE, patch).await?;
    workspace.restore(CLONE, &instance.tests.restore).await?;
    if with_hidden_files {
        for files in &instance.tests.files {
            workspace.copy_hidden(CLONE, files).await?;
        }
        if let Some(patch) = &instance.tests.patch {
            workspace.apply_hidden(CLONE, patch).await?;
        }
    }
    let session = workspace.machine.confine(&clone, instance.network).await?;
    let environment = session.environment();
    let ended = run_prepared(workspace, environment.as_ref(), command).await;
    let closed = session.close().await;
    Ok(TestEnd { result: ended?, damage: closed.err().map(|failure| failure.message()) })
}

async fn run_prepared(
    workspace: &Workspace<'_>,
    environment: &dyn ExecutionEnvironment,
    command: &str,
) -> Result<ExecResult, Failure> {
    let limit = workspace.instance.timeout;
    if let Some(prepare) = &workspace.instance.prepare {
        let prepared = environment.exec_command(ExecRequest::new(prepare).with_timeout(limit)).await;
        let prepared = prepared.or_failed("the command that prepares a clone cannot be run")?;
        if !prepared.success() {
            return Ok(prepared);
        }
    }
    let ended = environment.exec_command(ExecRequest::new(command).with_timeout(limit)).await;
    ended.or_failed("a test cannot be run")
}
