//! One attempt: an agent works in a fresh clone, and hidden tests judge its change in another one.

use std::path::Path;
use std::time::Instant;

use pintle_host::failure::Failure;
use serde::{Deserialize, Serialize};

use crate::agent::{AgentEnd, AgentSetup, CLONE, Claim};
use crate::case_verdict::CaseVerdict;
use crate::judge::{Judgement, judge};
use crate::machine::Machine;
use crate::run_files::VERSION;
use crate::suite::Instance;
use crate::workspace::Workspace;

/// Record of a finished attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AttemptRecord {
    /// Version of this format.
    pub version: u32,
    /// Hash of instance, configuration and number.
    pub id: String,
    /// Hash of the instance, whose attempts in two runs are compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_hash: Option<String>,
    /// Name of the instance.
    pub instance: String,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// Words that group instances.
    pub tags: Vec<String>,
    /// What the agent reports at its end.
    #[serde(flatten)]
    pub end: AgentEnd,
    /// Results of the hidden tests.
    pub judgement: Judgement,
    /// Comparison with the expected end, if a script played the sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case: Option<CaseVerdict>,
    /// Milliseconds that the agent worked.
    pub wall_ms: u64,
}

impl AttemptRecord {
    /// Returns whether the hidden tests pass.
    #[must_use]
    pub fn is_solved(&self) -> bool {
        self.judgement.is_solved()
    }

    /// Returns whether the agent reported success although hidden tests fail.
    #[must_use]
    pub fn is_false_done(&self) -> bool {
        self.end.claim == Claim::Done && !self.is_solved()
    }

    /// Returns whether the agent reported a failure although the hidden tests pass.
    #[must_use]
    pub fn is_missed(&self) -> bool {
        self.end.claim == Claim::Blocked && self.is_solved()
    }

    /// Returns whether a script played a cheat, whose hidden tests may pass although the goal is not reached.
    #[must_use]
    pub fn is_cheat(&self) -> bool {
        self.case.as_ref().is_some_and(|case| case.is_cheat)
    }

    /// Returns whether the hidden tests pass, or whether the end is the expected one if a script played the sessions.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.case.as_ref().map_or_else(|| self.is_solved(), |case| case.is_expected)
    }

    /// Returns how the attempt ended, such as `done, hidden tests fail`.
    #[must_use]
    pub fn describe_end(&self) -> String {
        let result = match (&self.case, &self.judgement.problem) {
            (Some(case), _) => case.describe(),
            (None, _) if self.is_solved() => "hidden tests pass",
            (None, Some(_)) => "change cannot be judged",
            (None, None) => "hidden tests fail",
        };
        format!("{}, {result}", self.end.claim.name())
    }
}

/// Returns the name of an attempt in reports.
pub(crate) fn attempt_name(instance: &str, number: u32) -> String {
    match number {
        1 => instance.to_owned(),
        number => format!("{instance} (attempt {number})"),
    }
}

/// Identity of an attempt.
#[derive(Clone, Debug)]
pub(crate) struct AttemptKey<'a> {
    pub(crate) id: &'a str,
    pub(crate) instance: &'a Instance,
    pub(crate) instance_hash: &'a str,
    pub(crate) number: u32,
}

/// Performs an attempt below `root`, and writes its change to `patch`.
pub(crate) async fn perform(
    key: &AttemptKey<'_>,
    agent: &AgentSetup,
    machine: &Machine,
    root: &Path,
    patch: &Path,
) -> Result<AttemptRecord, Failure> {
    let instance = key.instance;
    let workspace = Workspace::create(machine, instance, root).await?;
    let clone = workspace.clone_to(CLONE).await?;
    let prepared = match &instance.prepare {
        Some(prepare) => machine.run_trusted_within(instance.timeout, &clone, prepare, &[]).await,
        None => Ok(()),
    };
    let (end, wall_ms, judgement) = match prepared {
        Ok(()) => {
            let before = workspace.record_tree(CLONE).await?;
            let started = Instant::now();
            let end = agent.work(&workspace).await?;
            let wall_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
            (end, wall_ms, judge_change(&workspace, &before, patch).await?)
        }
        // The other attempts of the run do not need this one.
        Err(failure) => {
            machine.process_env().write_private(patch, "")?;
            let problem = format!("the clone cannot be prepared: {}", failure.message());
            (AgentEnd::unstarted(&problem), 0, Judgement { problem: Some(problem), tests: Vec::new() })
        }
    };
    let case = instance.cheat.as_ref().filter(|_| agent.uses_scripts);
    let case = case.map(|case| CaseVerdict::new(case, &end, judgement.is_solved()));
    Ok(AttemptRecord {
        version: VERSION,
        id: key.id.to_owned(),
        instance_hash: Some(key.instance_hash.to_owned()),
        instance: instance.id.clone(),
        attempt: key.number,
        tags: instance.tags.clone(),
        end: AgentEnd { model: end.model.or_else(|| agent.model.clone()), ..end },
        judgement,
        case,
        wall_ms,
    })
}

async fn judge_change(workspace: &Workspace<'_>, before: &str, patch: &Path) -> Result<Judgement, Failure> {
    // Files that git cannot record, such as a repository without a commit, are the agent's fault.
    let after = match workspace.record_tree(CLONE).await {
        Ok(tree) => tree,
        Err(failure) => {
            workspace.write_patch(before, before, patch).await?;
            return Ok(Judgement { problem: Some(failure.message()), tests: Vec::new() });
        }
    };
    workspace.write_patch(before, &after, patch).await?;
    judge(workspace, patch).await
}
