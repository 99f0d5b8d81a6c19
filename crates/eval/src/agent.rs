//! Agents that are measured: `pintle run`, `pintle task run`, a minimal loop, and any other program.

mod mini;
mod script;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use pintle_env::{ExecRequest, ExecResult, shell_word};
use pintle_host::failure::{Failure, FailureKind};
use pintle_host::model::Model;
use pintle_llm::Money;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[cfg(test)]
pub(crate) use self::script::script_of_case;
pub(crate) use self::script::seen;
use crate::machine::{Machine, tail};
use crate::workspace::Workspace;

/// Name of the clone in which the agent works.
pub(crate) const CLONE: &str = "repository";

/// Maximum size of the end of an output that is searched for the result, in bytes.
const MAX_RESULT: usize = 16 << 20;

/// Maximum size of a reason in a record, in bytes.
const MAX_REASON: usize = 2_000;

/// Exit code from which a shell reports that a program could not run, or was killed.
const NOT_RUN: i32 = 126;

/// Kind of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AgentKind {
    /// One session of `pintle run`.
    Session,
    /// One task of `pintle task run`.
    Task,
    /// A loop with one tool, which runs commands.
    Mini,
    /// A command of the shell, which gets the prompt and the directory as its last two arguments.
    Program(String),
}

/// An agent with its settings.
#[derive(Clone, Debug)]
pub struct AgentSetup {
    /// Kind.
    pub kind: AgentKind,
    /// Name of the model, for reports and predictions.
    pub model: Option<String>,
    /// Flags of `pintle run` or `pintle task run`.
    pub flags: Vec<String>,
    /// Whether the sessions of [`AgentKind::Task`] follow the scripts of the instances.
    pub uses_scripts: bool,
    /// The program `pintle`.
    pub program: PathBuf,
    /// Model of [`AgentKind::Mini`].
    pub client: Option<Arc<Model>>,
    /// Time limit of an attempt.
    pub time_limit: Duration,
}

/// End of an attempt, as its agent reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Claim {
    /// The goal is reached.
    Done,
    /// The goal is not reached.
    Blocked,
    /// A limit of the agent ended the attempt.
    Limit,
    /// The agent failed, for example because its provider did.
    Failed,
    /// The time limit of the attempt ended it.
    TimedOut,
    /// The task waits for the decision of a user.
    Waiting,
}

/// What an agent reports at its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AgentEnd {
    /// Whether the goal is reached, as the agent reports it.
    pub claim: Claim,
    /// Reason for an end other than [`Claim::Done`].
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Session or task, for other commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Cost; `None` if a price is unknown.
    #[serde(
        default,
        rename = "cost_usd",
        with = "pintle_llm::money::dollars::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub cost: Option<Money>,
    /// Input and output tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Model calls, or attempts of candidates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds: Option<u64>,
    /// Findings about the candidates and the anchor of a task.
    #[serde(skip)]
    pub(crate) findings: Vec<String>,
}

impl FromStr for AgentKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "session" => Ok(Self::Session),
            "task" => Ok(Self::Task),
            "mini" => Ok(Self::Mini),
            "" => Err("expected session, task, mini or a command".to_owned()),
            command => Ok(Self::Program(command.to_owned())),
        }
    }
}

impl AgentKind {
    /// Returns the name in reports.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Session => "session",
            Self::Task => "task",
            Self::Mini => "mini",
            Self::Program(command) => command,
        }
    }
}

impl Claim {
    /// Returns the name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Blocked => "blocked",
            Self::Limit => "at its limit",
            Self::Failed => "failed",
            Self::TimedOut => "timed out",
            Self::Waiting => "waits for a person",
        }
    }
}

impl AgentSetup {
    /// Checks that the program of a command exists, if the first word of the command names one. Relative paths are in the clone.
    pub(crate) async fn require_program(&self, machine: &Machine) -> Result<(), Failure> {
        let AgentKind::Program(command) = &self.kind else { return Ok(()) };
        let word = command.split_whitespace().next().unwrap_or_default().to_owned();
        let is_plain = |letter: char| letter.is_alphanumeric() || "/._+-".contains(letter);
        if !word.chars().all(is_plain) || (word.contains('/') && !word.starts_with('/')) {
            return Ok(());
        }
        match machine.missing_program(&[word]).await? {
            None => Ok(()),
            Some(word) => Err(Failure::usage(format!(
                "--agent: there is no program `{word}`; expected session, task, mini or a command"
            ))),
        }
    }

    /// Lets the agent work in the clone of a workspace. Its change is in the files of the clone afterwards.
    pub(crate) async fn work(&self, workspace: &Workspace<'_>) -> Result<AgentEnd, Failure> {
        match &self.kind {
            AgentKind::Session => self.run_session(workspace).await,
            AgentKind::Task => self.run_task(workspace).await,
            AgentKind::Mini => self.run_mini(workspace).await,
            AgentKind::Program(command) => self.run_program(command, workspace).await,
        }
    }

    async fn run_session(&self, workspace: &Workspace<'_>) -> Result<AgentEnd, Failure> {
        let prompt = self.write_prompt(workspace)?;
        let words = ["run", "--output", "json", "--prompt-file", &prompt];
        let ended = self.run_pintle(workspace, &words, &[]).await?;
        let (result, claim) = read_end(&ended)?;
        Ok(AgentEnd::from_outcome(claim, &result).with_reason(&result, &ended))
    }

    async fn run_task(&self, workspace: &Workspace<'_>) -> Result<AgentEnd, Failure> {
        let file = workspace.path("contract.toml").display().to_string();
        let prompt = self.write_prompt(workspace)?;
        let mut words = vec!["task", "run", "--output=json", "--no-wait"];
        match &workspace.instance.contract {
            Some(contract) => {
                let text = contract.to_toml().map_err(|error| Failure::usage(error.to_string()))?;
                workspace.machine.process_env().write_private(Path::new(&file), &text)?;
                words.extend(["--contract", &file]);
            }
            None => words.extend(["--yes", "--prompt-file", &prompt]),
        }
        let script = self.write_script(workspace).await?;
        let ended = self.run_pintle(workspace, &words, &script).await?;
        let (report, claim) = read_end(&ended)?;
        let claim = match (claim, text_of(&report, "state")) {
            (Claim::Failed, Some("blocked")) => Claim::Blocked,
            (Claim::Failed, Some("waits for a person")) => Claim::Waiting,
            (claim, _) => claim,
        };
        let mut end = AgentEnd::from_outcome(claim, &report).with_reason(&report, &ended);
        if let Some(id) = &end.session {
            self.apply_task(workspace, id, &report, claim).await?;
            if claim == Claim::Waiting {
                // This removes the files of the task.
                let request = ExecRequest::new(self.line(&["task", "cancel", id], &[]));
                workspace.machine.run_as_user(&workspace.path(CLONE), request).await?;
            }
        }
        if claim == Claim::Blocked && !end.findings.is_empty() {
            end.reason = end.findings.join("; ");
        }
        Ok(end)
    }

    /// Applies the change of a task to the clone: the result, or else the change of the first candidate with one.
    async fn apply_task(
        &self,
        workspace: &Workspace<'_>,
        id: &str,
        report: &Value,
        claim: Claim,
    ) -> Result<(), Failure> {
        let candidates = report.get("candidates").and_then(Value::as_array).map_or(0, Vec::len);
        let choices: Vec<Option<usize>> = match claim {
            Claim::Done => vec![None],
            Claim::Blocked | Claim::Limit | Claim::Failed | Claim::TimedOut | Claim::Waiting => {
                (0..candidates).map(Some).collect()
            }
        };
        let file = workspace.path("task.patch");
        for choice in choices {
            let number = choice.map(|number| number.to_string());
            let mut words = vec!["task", "apply", id, "--patch"];
            words.extend(number.iter().flat_map(|number| ["--candidate", number.as_str()]));
            let line = format!("{} >{}", self.line(&words, &[]), shell_word(&file.display().to_string()));
            let request = ExecRequest::new(line).with_timeout(self.time_limit);
            let applied = workspace.machine.run_as_user(&workspace.path(CLONE), request).await?;
            if applied.success() {
                return workspace.apply_patch(CLONE, &file).await;
            }
            if claim == Claim::Done {
                let message = tail(&applied.stderr, MAX_REASON);
                return Err(Failure::failed(format!("the change of task {id} cannot be read: {message}")));
            }
        }
        Ok(())
    }

    async fn run_mini(&self, workspace: &Workspace<'_>) -> Result<AgentEnd, Failure> {
        let model = self.client.as_ref().ok_or_else(|| Failure::usage("the agent `mini` needs a model"))?;
        let instance = workspace.instance;
        let session = workspace.machine.confine(&workspace.path(CLONE), instance.network).await?;
        let environment = session.environment();
        let working = mini::work(model, &instance.prompt, environment.as_ref());
        let ended = match tokio::time::timeout(self.time_limit, working).await {
            Ok(end) => end,
            Err(_) => {
                let reason = format!("no end within {} s", self.time_limit.as_secs());
                AgentEnd::new(Claim::TimedOut, reason)
            }
        };
        session.close().await?;
        Ok(ended)
    }

    async fn run_program(&self, command: &str, workspace: &Workspace<'_>) -> Result<AgentEnd, Failure> {
        let clone = workspace.path(CLONE);
        let prompt = shell_word(&workspace.instance.prompt.replace('\0', ""));
        let line = format!("{command} {prompt} {}", shell_word(&clone.display().to_string()));
        let request = ExecRequest::new(line).with_timeout(self.time_limit);
        let request = match &self.model {
            Some(model) => request.with_env("PINTLE_EVAL_MODEL", model),
            None => request,
        };
        let ended = workspace.machine.run_as_user(&clone, request).await?;
        let result = last_object(&ended).unwrap_or_default();
        let claim = match ended.exit_code {
            _ if ended.timed_out => Claim::TimedOut,
            0 => Claim::Done,
            code if code >= NOT_RUN => Claim::Failed,
            _ => Claim::Blocked,
        };
        Ok(AgentEnd::from_outcome(claim, &result).with_reason(&result, &ended))
    }

    fn write_prompt(&self, workspace: &Workspace<'_>) -> Result<String, Failure> {
        let file = workspace.path("prompt.md");
        workspace.machine.process_env().write_private(&file, &workspace.instance.prompt)?;
        Ok(file.display().to_string())
    }

    /// Writes the script of an instance. Returns the flags with which the sessions of a task follow it.
    async fn write_script(&self, workspace: &Workspace<'_>) -> Result<Vec<String>, Failure> {
        let Some(case) = workspace.instance.cheat.as_ref().filter(|_| self.uses_scripts) else {
            return Ok(Vec::new());
        };
        let file = workspace.path("script.toml");
        let text = script::script_of_case(case, workspace.machine).await?;
        workspace.machine.process_env().write_private(&file, &text)?;
        Ok(["--provider", "scripted", "--script", &file.display().to_string()].map(str::to_owned).into())
    }

    async fn run_pintle(
        &self,
        workspace: &Workspace<'_>,
        words: &[&str],
        script: &[String],
    ) -> Result<ExecResult, Failure> {
        let mut flags = [&self.flags[..], script].concat();
        if !workspace.machine.has_sandbox() {
            flags.push("--no-sandbox".to_owned());
        }
        let request = ExecRequest::new(self.line(words, &flags)).with_timeout(self.time_limit);
        workspace.machine.run_as_user(&workspace.path(CLONE), request).await
    }

    /// Returns the command line of `pintle` with these arguments.
    fn line(&self, words: &[&str], flags: &[String]) -> String {
        let program = self.program.display().to_string();
        let words = std::iter::once(program.as_str()).chain(words.iter().copied());
        let words: Vec<String> = words.chain(flags.iter().map(String::as_str)).map(shell_word).collect();
        words.join(" ")
    }
}

impl AgentEnd {
    /// Creates an end without costs.
    pub(crate) fn new(claim: Claim, reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), ..Self::from_outcome(claim, &Value::Null) }
    }

    /// Creates the end of an agent that could not start, for this reason.
    pub(crate) fn unstarted(reason: &str) -> Self {
        Self { cost: Some(Money::ZERO), tokens: Some(0), rounds: Some(0), ..Self::new(Claim::Failed, reason) }
    }

    /// Reads the object of `pintle run` or `pintle task run`, whose fields another program may print as well.
    pub(crate) fn from_outcome(claim: Claim, outcome: &Value) -> Self {
        let find = |paths: &[&str]| paths.iter().find_map(|path| outcome.pointer(path));
        let number = |paths: &[&str]| find(paths).and_then(Value::as_u64);
        let dollars = find(&["/cost_usd", "/spent/usd"]).and_then(Value::as_f64);
        let spent = outcome.get("spent");
        let is_unknown =
            spent.is_some_and(|spent| spent.get("is_price_unknown") != Some(&Value::Bool(false)));
        let candidates = outcome.get("candidates").and_then(Value::as_array);
        let attempts = candidates.map(|candidates| {
            let attempts = candidates.iter().filter_map(|candidate| candidate.get("attempts")?.as_array());
            attempts.map(|attempts| attempts.len() as u64).sum()
        });
        Self {
            claim,
            reason: String::new(),
            cost: dollars.filter(|_| !is_unknown).map(Money::from_dollars),
            tokens: number(&["/usage/total_tokens", "/tokens", "/spent/tokens"]),
            rounds: number(&["/model_calls", "/rounds"]).or(attempts),
            model: text_of(outcome, "model").map(str::to_owned),
            session: find(&["/session_id", "/id"]).and_then(Value::as_str).map(str::to_owned),
            findings: findings_of(outcome),
        }
    }

    /// Adds the reason of an end without success: the error of the result, or the end of the messages.
    fn with_reason(mut self, result: &Value, ended: &ExecResult) -> Self {
        if self.claim != Claim::Done {
            let error = result.get("error").and_then(|error| text_of(error, "message"));
            let message = error.or_else(|| text_of(result, "reason")).map(str::to_owned);
            self.reason = message.unwrap_or_else(|| tail(&ended.stderr, MAX_REASON));
        }
        self
    }
}

/// Returns the findings about the candidates and the anchor of a task, each once.
fn findings_of(report: &Value) -> Vec<String> {
    let list =
        |value: &Value, key: &str| value.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut findings = Vec::new();
    for problems in list(report, "proposals") {
        let problems = problems.as_array().cloned().unwrap_or_default();
        findings.extend(problems.iter().map(|problem| format!("anchor refused: {}", text(problem))));
    }
    for candidate in list(report, "candidates") {
        for attempt in list(&candidate, "attempts") {
            for finding in list(&attempt, "findings") {
                let step = finding.get("step").cloned().unwrap_or_default();
                let check = step.get("check").map(|name| format!("check {}", text(name)));
                let step = check.unwrap_or_else(|| text(&step));
                let what = finding.get("what").map(text).unwrap_or_default();
                findings.push(format!("{step}: {what}"));
            }
            let review = attempt.get("review").map(|review| list(review, "findings")).unwrap_or_default();
            findings.extend(review.iter().map(|finding| format!("review: {}", text(finding))));
        }
    }
    let mut seen = BTreeSet::new();
    findings.retain(|finding| seen.insert(finding.clone()));
    findings
}

/// Returns the result of `pintle`, and its claim by the exit code.
///
/// Settings with which no attempt can succeed are a failure.
fn read_end(ended: &ExecResult) -> Result<(Value, Claim), Failure> {
    let result = last_object(ended).unwrap_or_default();
    let claim = match ended.exit_code {
        _ if ended.timed_out => Claim::TimedOut,
        0 | 5 => Claim::Done,
        3 => Claim::Limit,
        2 | 4 => {
            let kind = if ended.exit_code == 2 { FailureKind::Usage } else { FailureKind::Credentials };
            let message = tail(&ended.stderr, MAX_REASON);
            return Err(Failure::new(kind, format!("the agent cannot start: {message}")));
        }
        130 => return Err(Failure::new(FailureKind::Interrupted, "the agent was interrupted")),
        _ => Claim::Failed,
    };
    Ok((result, claim))
}

/// Returns the JSON object in the last line of standard output.
fn last_object(ended: &ExecResult) -> Option<Value> {
    let text = ended.stdout.tail_text_lossy(MAX_RESULT).ok()?;
    let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
    serde_json::from_str(line).ok().filter(Value::is_object)
}

fn text_of<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value.get(key).and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_outcome_of_a_session_has_costs_and_rounds() {
        let outcome = json!({
            "type": "outcome", "session_id": "s-1", "usage": {"total_tokens": 12}, "model_calls": 3,
            "cost_usd": 0.5,
        });
        let end = AgentEnd::from_outcome(Claim::Done, &outcome);
        assert_eq!((end.cost, end.tokens, end.rounds), (Some(Money::from_dollars(0.5)), Some(12), Some(3)));
        assert_eq!(end.session.as_deref(), Some("s-1"));
        let other = AgentEnd::from_outcome(Claim::Done, &json!({"tokens": 7, "rounds": 2, "model": "m"}));
        assert_eq!((other.tokens, other.rounds, other.model.as_deref()), (Some(7), Some(2), Some("m")));
    }

    #[test]
    fn the_report_of_a_task_has_its_bill() {
        let mut report = json!({
            "id": "t-1", "state": "blocked", "candidates": [{"attempts": [{}, {}]}, {"attempts": [{}]}],
            "spent": {"usd": 0.25, "is_price_unknown": false, "tokens": 9, "millis": 1},
        });
        let end = AgentEnd::from_outcome(Claim::Blocked, &report);
        assert_eq!((end.cost, end.tokens, end.rounds), (Some(Money::from_dollars(0.25)), Some(9), Some(3)));
        report["spent"]["is_price_unknown"] = true.into();
        assert_eq!(AgentEnd::from_outcome(Claim::Blocked, &report).cost, None);
    }

    #[test]
    fn the_findings_of_a_task_name_their_steps() {
        let report = json!({
            "proposals": [["it passes"]],
            "candidates": [{"attempts": [
                {"findings": [
                    {"step": "anchor", "what": "it fails"}, {"step": {"check": "tests"}, "what": "a fails"},
                ], "review": null},
                {"findings": [{"step": "anchor", "what": "it fails"}], "review": {"findings": ["it cheats"]}},
            ]}],
        });
        let expected =
            ["anchor refused: it passes", "anchor: it fails", "check tests: a fails", "review: it cheats"];
        assert_eq!(AgentEnd::from_outcome(Claim::Blocked, &report).findings, expected);
    }

    #[test]
    fn agents_are_named_or_commands() {
        assert_eq!("task".parse(), Ok(AgentKind::Task));
        assert_eq!("./agent.sh -x".parse(), Ok(AgentKind::Program("./agent.sh -x".to_owned())));
        "".parse::<AgentKind>().unwrap_err();
    }
}
