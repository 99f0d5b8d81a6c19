//! Contracts: tasks, and the conditions under which they end.

mod draft;
mod file;
mod models;
mod plan;
#[cfg(test)]
mod tests;

use pintle_agent::Money;
pub use pintle_evidence::judging::{InvalidPattern, PathRules, TaskScope};
use pintle_evidence::results::ResultsFormat;
pub use pintle_evidence::task_check::{PassCondition, TaskCheck};
use serde::{Deserialize, Serialize};

pub(crate) use self::draft::{ContractDraft, notes_schema};
pub use self::file::{ContractError, describe_toml_error};
pub use self::models::{ModelPlan, ModelPlans, SessionRole};
pub use self::plan::{AUTO_ROUNDS, GoalSize, MAX_ROUNDS, PlanRounds, PlanSettings};
use crate::work_cost::WorkCost;

/// Maximum number of candidates of a task.
pub const MAX_CANDIDATES: usize = 16;

/// A task, and the conditions under which it ends. [`Contract::parse`] reads one from a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Contract {
    /// Goal, for the models that work on it.
    pub goal: String,
    /// State from which the task starts. A host fills it in when it records the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<BaseCommit>,
    /// Session that drafted the contract, and its costs. A host fills it in. The costs count towards the budget and the
    /// bill.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drafted: Option<DraftingSession>,
    /// Command that prepares each worktree, such as one that installs dependencies. It has the default time limit of a
    /// check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prepare: Option<String>,
    /// Commands that have to pass.
    #[serde(default, rename = "check")]
    pub checks: Vec<TaskCheck>,
    /// Evidence that the goal was not reached before.
    #[serde(default)]
    pub anchor: AnchorPlan,
    /// Files that may change.
    #[serde(default)]
    pub scope: TaskScope,
    /// Limits of the whole task.
    #[serde(default)]
    pub budget: TaskBudget,
    /// Candidates, each of which works on the goal independently. Default: one candidate with the settings of the session.
    #[serde(default, rename = "candidate")]
    pub candidates: Vec<CandidatePlan>,
    /// Attempts of each candidate, 1 to 5. Each attempt after the first one receives the missing evidence as feedback.
    /// Default 2.
    #[serde(default = "default_attempts")]
    pub attempts: u32,
    /// Review of the candidates that have their evidence.
    #[serde(default)]
    pub review: ReviewPlan,
    /// Additional evidence.
    #[serde(default, skip_serializing_if = "EvidencePlan::is_default")]
    pub evidence: EvidencePlan,
    /// Points at which the task waits for a user.
    #[serde(default)]
    pub gates: Vec<DecisionGate>,
    /// Models of its sessions, by their work.
    #[serde(default, skip_serializing_if = "ModelPlans::is_default")]
    pub models: ModelPlans,
    /// Plan, which carries the task out in steps.
    #[serde(default, skip_serializing_if = "PlanSettings::is_default")]
    pub plan: PlanSettings,
}

/// Additional evidence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct EvidencePlan {
    /// Action if tests miss changes of the changed lines.
    #[serde(default)]
    pub on_weak: OnWeakEvidence,
    /// Whether a separate session writes a second anchor that candidates never see. Default: with two or more candidates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hidden_anchor: Option<bool>,
}

/// Action for weak evidence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum OnWeakEvidence {
    /// The report names it.
    #[default]
    Report,
    /// A user decides about the result.
    Ask,
}

impl EvidencePlan {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// State from which a task starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct BaseCommit {
    /// Path or address of the repository, from which git can fetch.
    pub repository: String,
    /// Full id of the commit.
    pub commit: String,
    /// Directory below the root of the repository in which commands and sessions work, and to which patterns of the scope are
    /// relative. Default: the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Whether the commit has local changes of the user, which are in no branch.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_local_changes: bool,
}

/// Session that drafted a contract.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DraftingSession {
    /// Its id.
    pub session: String,
    /// Its costs.
    pub spent: WorkCost,
    /// Places that matter for the goal, as it noted them for later sessions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Evidence that the goal was not reached before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", deny_unknown_fields)]
#[non_exhaustive]
pub enum AnchorPlan {
    /// A test that a model writes first, and that fails until the goal is reached.
    #[default]
    Test,
    /// An existing command that fails until the goal is reached.
    Command {
        /// Command of the shell.
        command: String,
        /// Format of the results of its tests.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        results: Option<ResultsFormat>,
        /// File with the results, for formats that are files.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        report: Option<String>,
    },
    /// Nothing can fail first, as in refactoring and documentation: the checks alone are the evidence. The report contains
    /// the reason.
    None {
        /// Reason why nothing can fail first, for the report.
        because: String,
    },
}

/// Limits of a task, over all its candidates and reviews.
///
/// Not [`Limits`](pintle_agent::Limits): the time is the time of the steps without waits for users, and calls are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct TaskBudget {
    /// Cost.
    #[serde(
        default,
        rename = "usd",
        with = "pintle_agent::money::dollars::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub cost: Option<Money>,
    /// Input and output tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Minutes that the steps of the task take, without the time during which it waits for users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minutes: Option<u64>,
}

/// One candidate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct CandidatePlan {
    /// Model. Default: the model of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Reasoning effort.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// Instructions for this candidate, in addition to the goal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
}

/// Review by a separate session, which receives diffs and evidence, and compares several candidates. With rounds, an anchor
/// that a model proposes is reviewed as well.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ReviewPlan {
    /// Number of times that findings send a candidate back, 0 to 5. With 0, there is no review. Default 1.
    #[serde(default = "default_rounds")]
    pub rounds: u32,
    /// Model. Default: the model of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// Point at which a task waits for a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DecisionGate {
    /// After the anchor was found, and before any candidate works on the goal.
    Anchor,
    /// After a candidate was chosen and reviewed.
    Result,
}

impl AnchorPlan {
    /// Returns whether a model writes a test.
    pub(crate) fn is_test(&self) -> bool {
        *self == Self::Test
    }
}

impl Default for ReviewPlan {
    fn default() -> Self {
        Self { rounds: default_rounds(), model: None }
    }
}

impl Contract {
    /// Returns the directory below the root in which commands and sessions work. Empty for the root.
    pub(crate) fn directory(&self) -> &str {
        self.base.as_ref().and_then(|base| base.directory.as_deref()).unwrap_or_default()
    }

    /// Returns the first line of the goal with at most `max` characters. The last character of a truncated line is `…`.
    #[must_use]
    pub fn title(&self, max: usize) -> String {
        let line = self.goal.trim().lines().next().unwrap_or_default();
        if line.chars().count() <= max {
            return line.to_owned();
        }
        let shown: String = line.chars().take(max.saturating_sub(1)).collect();
        format!("{}…", shown.trim_end())
    }

    /// Returns the commands that prepare and judge, without an anchor that a model writes.
    pub(crate) fn commands(&self) -> Vec<&str> {
        let anchor = match &self.anchor {
            AnchorPlan::Command { command, .. } => Some(command.as_str()),
            AnchorPlan::Test | AnchorPlan::None { .. } => None,
        };
        let checks = self.checks.iter().map(|check| check.command.as_str());
        self.prepare.as_deref().into_iter().chain(anchor).chain(checks).collect()
    }

    /// Creates a contract with a goal, an anchor that a model writes, and nothing else. [`check`](Self::check) reports
    /// missing parts.
    #[must_use]
    pub fn new(goal: impl Into<String>) -> Self {
        Self {
            goal: goal.into(),
            base: None,
            drafted: None,
            prepare: None,
            checks: Vec::new(),
            anchor: AnchorPlan::default(),
            scope: TaskScope::default(),
            budget: TaskBudget::default(),
            candidates: vec![CandidatePlan::default()],
            attempts: default_attempts(),
            review: ReviewPlan::default(),
            evidence: EvidencePlan::default(),
            gates: Vec::new(),
            models: ModelPlans::default(),
            plan: PlanSettings::default(),
        }
    }

    /// Sets the state from which the task starts.
    #[must_use]
    pub fn with_base(mut self, base: BaseCommit) -> Self {
        self.base = Some(base);
        self
    }

    /// Sets the command that prepares each worktree.
    #[must_use]
    pub fn with_prepare(mut self, command: impl Into<String>) -> Self {
        self.prepare = Some(command.into());
        self
    }

    /// Adds a check.
    #[must_use]
    pub fn with_check(mut self, check: TaskCheck) -> Self {
        self.checks.push(check);
        self
    }

    /// Sets the anchor.
    #[must_use]
    pub fn with_anchor(mut self, anchor: AnchorPlan) -> Self {
        self.anchor = anchor;
        self
    }

    /// Sets the files that may change.
    #[must_use]
    pub fn with_scope(mut self, scope: TaskScope) -> Self {
        self.scope = scope;
        self
    }

    /// Sets the limits of the task.
    #[must_use]
    pub fn with_budget(mut self, budget: TaskBudget) -> Self {
        self.budget = budget;
        self
    }

    /// Sets the candidates.
    #[must_use]
    pub fn with_candidates(mut self, candidates: impl IntoIterator<Item = CandidatePlan>) -> Self {
        self.candidates = candidates.into_iter().collect();
        self
    }

    /// Sets the models of the sessions.
    #[must_use]
    pub fn with_models(mut self, models: ModelPlans) -> Self {
        self.models = models;
        self
    }

    /// Sets the additional evidence.
    #[must_use]
    pub fn with_evidence(mut self, evidence: EvidencePlan) -> Self {
        self.evidence = evidence;
        self
    }

    /// Returns whether a second anchor is written that candidates never see.
    #[must_use]
    pub fn has_hidden_anchor(&self) -> bool {
        let is_default = self.candidates.len() > 1;
        let has_anchor = !matches!(self.anchor, AnchorPlan::None { .. });
        has_anchor && self.evidence.hidden_anchor.unwrap_or(is_default)
    }

    /// Sets the number of attempts of each candidate.
    #[must_use]
    pub fn with_attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts;
        self
    }

    /// Sets the review.
    #[must_use]
    pub fn with_review(mut self, review: ReviewPlan) -> Self {
        self.review = review;
        self
    }

    /// Adds a point at which the task waits for a user.
    #[must_use]
    pub fn with_gate(mut self, gate: DecisionGate) -> Self {
        self.gates.push(gate);
        self
    }
}

impl BaseCommit {
    /// Creates a base from a repository and the full id of a commit in it.
    #[must_use]
    pub fn new(repository: impl Into<String>, commit: impl Into<String>) -> Self {
        let (repository, commit) = (repository.into(), commit.into());
        Self { repository, commit, directory: None, has_local_changes: false }
    }

    /// Sets whether the commit has local changes of the user, which are in no branch.
    #[must_use]
    pub fn with_local_changes(mut self, has_local_changes: bool) -> Self {
        self.has_local_changes = has_local_changes;
        self
    }

    /// Sets the directory below the root, with `/` and without a final one. An empty text is the root.
    #[must_use]
    pub fn with_directory(mut self, directory: impl Into<String>) -> Self {
        self.directory = Some(directory.into()).filter(|directory| !directory.is_empty());
        self
    }
}

impl DraftingSession {
    /// Creates a session without costs.
    #[must_use]
    pub fn new(session: impl Into<String>) -> Self {
        Self { session: session.into(), spent: WorkCost::default(), notes: Vec::new() }
    }
}

fn default_attempts() -> u32 {
    2
}

fn default_rounds() -> u32 {
    1
}
