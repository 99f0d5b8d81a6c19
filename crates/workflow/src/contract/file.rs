//! Contracts from files, and their validation.

use std::collections::HashSet;

use pintle_agent::Money;
use pintle_evidence::results::ResultsFormat;
use thiserror::Error;

use super::{
    AnchorPlan, BaseCommit, Contract, MAX_CANDIDATES, MAX_ROUNDS, PassCondition, PathRules, TaskCheck,
    TaskScope,
};

/// Longest goal, in bytes.
const MAX_GOAL: usize = 64 << 10;

/// Error of a contract.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ContractError {
    /// The file is not TOML, or has a field that no contract has.
    #[error("the contract cannot be read: {0}")]
    Syntax(String),
    /// The file with models is not TOML, or has a field that no such file has.
    #[error("the models cannot be read: {0}")]
    Models(String),
    /// It contradicts itself, or is incomplete. Each text contains the expectation.
    #[error("the contract is wrong: {}", .0.join("; "))]
    Wrong(Vec<String>),
}

impl Contract {
    /// Reads a contract in TOML, and checks it.
    ///
    /// # Errors
    ///
    /// [`ContractError`], with all problems.
    pub fn parse(text: &str) -> Result<Self, ContractError> {
        let contract: Self =
            toml::from_str(text).map_err(|error| ContractError::Syntax(describe_toml_error(&error, text)))?;
        contract.complete()
    }

    /// Reads a contract in one line of JSON, with the fields of the TOML file, and checks it.
    ///
    /// # Errors
    ///
    /// [`ContractError`], with all problems.
    pub fn parse_json(line: &str) -> Result<Self, ContractError> {
        let contract: Self = serde_json::from_str(line).map_err(|error| {
            // There is one line only.
            ContractError::Syntax(error.to_string().replace(" at line 1 column ", " at column "))
        })?;
        contract.complete()
    }

    /// Adds a candidate if there is none, and checks the contract.
    fn complete(mut self) -> Result<Self, ContractError> {
        if self.candidates.is_empty() {
            self.candidates.push(super::CandidatePlan::default());
        }
        self.check()?;
        Ok(self)
    }

    /// Checks that the contract is valid, and that its evidence would prove the goal.
    ///
    /// # Errors
    ///
    /// [`ContractError::Wrong`], with all problems.
    pub fn check(&self) -> Result<(), ContractError> {
        let mut problems = Vec::new();
        let mut expect = |is_right: bool, problem: &str| {
            if !is_right {
                problems.push(problem.to_owned());
            }
        };
        expect(!self.goal.trim().is_empty(), "goal: expected a text");
        expect(self.goal.len() <= MAX_GOAL, "goal: expected at most 64 KiB");
        expect(
            self.prepare.as_ref().is_none_or(|command| !command.trim().is_empty()),
            "prepare: expected a command",
        );
        let is_id = |commit: &str| {
            matches!(commit.len(), 40 | 64) && commit.bytes().all(|byte| byte.is_ascii_hexdigit())
        };
        let is_base = |base: &BaseCommit| {
            is_id(&base.commit) && !base.repository.is_empty() && !base.repository.starts_with('-')
        };
        expect(
            self.base.as_ref().is_none_or(is_base),
            "base: expected a repository, and the full id of a commit",
        );
        let is_below = |directory: &String| directory.split('/').all(|part| !matches!(part, "" | "." | ".."));
        let directory = self.base.as_ref().and_then(|base| base.directory.as_ref());
        expect(
            directory.is_none_or(is_below),
            "base.directory: expected a path below the root of the repository",
        );
        let count = self.candidates.len();
        expect((1..=MAX_CANDIDATES).contains(&count), "candidate: expected 1 to 16");
        expect((1..=5).contains(&self.attempts), "attempts: expected 1 to 5");
        expect(self.review.rounds <= 5, "review.rounds: expected 0 to 5");
        expect(self.plan_rounds() <= MAX_ROUNDS, "plan.rounds: expected `auto`, or 0 to 50");
        expect(self.scope.max_lines > 0, "scope.max_lines: expected 1 or more");
        let budget = &self.budget;
        expect(budget.cost.is_none_or(|cost| cost > Money::ZERO), "budget.usd: expected more than 0");
        expect(budget.tokens != Some(0), "budget.tokens: expected more than 0");
        expect(budget.minutes != Some(0), "budget.minutes: expected more than 0");
        self.models.check(self, &mut problems);
        self.check_proof(&mut problems);
        self.check_scope(&mut problems);
        let mut names = HashSet::new();
        for check in &self.checks {
            if !names.insert(check.name.as_str()) {
                problems.push(format!("check `{}`: expected a name that no other check has", check.name));
            }
            check_command(check, &mut problems);
        }
        if problems.is_empty() { Ok(()) } else { Err(ContractError::Wrong(problems)) }
    }

    /// Compares the scope with the files of the commit from which the task starts, relative to the directory of the task.
    /// Returns the patterns of `scope.paths` that match none of them, and so allow only new files.
    ///
    /// # Errors
    ///
    /// [`ContractError::Wrong`] if `scope.judges` lists a file that does not exist.
    pub fn check_files(&self, files: &[String]) -> Result<Vec<String>, ContractError> {
        let is_missing = |pattern: &&String| {
            let scope = TaskScope::default().with_paths([pattern.as_str()]);
            // Invalid patterns are reported by the check of the contract.
            PathRules::new(&scope).is_ok_and(|rules| !files.iter().any(|file| rules.is_in_scope(file)))
        };
        let missing = |patterns: &[String]| patterns.iter().filter(is_missing).cloned().collect::<Vec<_>>();
        let judges = missing(self.scope.judges.as_deref().unwrap_or_default());
        if !judges.is_empty() {
            let problem = format!("scope.judges: the commit has no {}", judges.join(", "));
            return Err(ContractError::Wrong(vec![problem]));
        }
        Ok(missing(&self.scope.paths))
    }

    /// Requires evidence that proves the goal.
    fn check_proof(&self, problems: &mut Vec<String>) {
        match &self.anchor {
            AnchorPlan::Test => {}
            AnchorPlan::Command { command, results, report } => {
                if command.trim().is_empty() {
                    problems.push("anchor.command: expected a command".to_owned());
                }
                check_results("anchor", *results, report.as_deref(), problems);
            }
            AnchorPlan::None { because } => {
                if because.trim().is_empty() {
                    problems.push("anchor.because: expected why nothing can fail first".to_owned());
                }
                if self.checks.is_empty() {
                    problems.push(
                        "check: expected at least one, since without an anchor nothing else proves anything"
                            .to_owned(),
                    );
                }
            }
        }
    }

    fn check_scope(&self, problems: &mut Vec<String>) {
        let rules = match PathRules::new(&self.scope) {
            Ok(rules) => rules,
            Err(error) => return problems.push(format!("scope: {error}")),
        };
        // A file that is named explicitly must be allowed to change.
        let is_file = |path: &&String| !path.contains(['*', '?', '[', '{']) && !path.ends_with('/');
        for path in self.scope.paths.iter().filter(is_file) {
            if rules.is_protected(path) {
                problems.push(format!(
                    "scope: `{path}` may change and is protected; expected it in `unprotected`, or not at all"
                ));
            } else if !rules.is_in_scope(path) {
                problems.push(format!("scope: `{path}` is in `paths` and in `except`"));
            }
        }
        for pattern in &self.scope.unprotected {
            if self.scope.protected.contains(pattern) {
                problems.push(format!("scope: `{pattern}` is in `protected` and in `unprotected`"));
            }
        }
        if !self.scope.paths.is_empty()
            && self.scope.paths.iter().all(|path| self.scope.except.contains(path))
        {
            problems
                .push("scope: everything in `paths` is in `except`, so that nothing may change".to_owned());
        }
    }
}

/// Returns a mistake in a text of TOML as one line, with its place.
#[must_use]
pub fn describe_toml_error(error: &toml::de::Error, text: &str) -> String {
    let problem = error.message().trim_end().replace('\n', "; ");
    let Some(span) = error.span() else { return problem };
    let before = text.get(..span.start).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |line| line.chars().count()) + 1;
    format!("line {line}, column {column}: {problem}")
}

/// Adds the problems of a check.
fn check_command(check: &TaskCheck, problems: &mut Vec<String>) {
    let name = format!("check `{}`", check.name);
    let mut expect = |is_right: bool, problem: &str| {
        if !is_right {
            problems.push(format!("{name}: {problem}"));
        }
    };
    expect(!check.name.trim().is_empty(), "expected a name");
    expect(!check.command.trim().is_empty(), "command: expected a command");
    expect((1..=86_400).contains(&check.timeout_s), "timeout_s: expected 1 to 86,400");
    expect((1..=10).contains(&check.runs), "runs: expected 1 to 10");
    let is_compared = check.pass == PassCondition::NoWorse;
    expect(!is_compared || check.results.is_some(), "pass: `no-worse` needs `results`, to tell tests apart");
    expect(
        !check.exit_code_only || check.results.is_none(),
        "exit_code_only: expected no `results`, which would not count",
    );
    check_results(&name, check.results, check.report.as_deref(), problems);
}

fn check_results(of: &str, results: Option<ResultsFormat>, report: Option<&str>, problems: &mut Vec<String>) {
    let needs_file = results.is_some_and(ResultsFormat::is_file);
    match report {
        None if needs_file => {
            problems.push(format!("{of}: report: expected the file that the results are written to"))
        }
        Some(_) if !needs_file => {
            problems.push(format!("{of}: report: expected none, since the results are in the output"))
        }
        Some(path)
            if path.is_empty() || path.starts_with('/') || path.split('/').any(|part| part == "..") =>
        {
            problems.push(format!(
                "{of}: report: expected a path from the root of the repository, found `{path}`"
            ));
        }
        _ => {}
    }
}
