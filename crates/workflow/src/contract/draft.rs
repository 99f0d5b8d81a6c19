//! Contracts that a model drafts from a text, for a user to accept.

use pintle_evidence::results::ResultsFormat;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{AnchorPlan, Contract, ContractError, GoalSize, PassCondition, TaskCheck, TaskScope};

/// Answer of a session that drafts a contract. It contains the evidence for the goal, and no budgets or gates.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ContractDraft {
    goal: String,
    checks: Vec<DraftCheck>,
    nothing_fails_first: Option<String>,
    paths: Vec<String>,
    /// Notes for later sessions.
    #[serde(default)]
    pub(crate) notes: Vec<String>,
    #[serde(default)]
    size: Option<GoalSize>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DraftCheck {
    name: String,
    command: String,
    results: Option<ResultsFormat>,
}

impl ContractDraft {
    /// Returns the JSON Schema of a draft.
    pub(crate) fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "goal": {
                    "type": "string",
                    "description": "What is to be reached, complete and without how to reach it, for somebody who has not read the text",
                },
                "checks": {
                    "type": "array",
                    "description": "Commands that the project has already and that have to pass afterwards: its tests, its linter, its build",
                    "items": {
                        "type": "object",
                        "properties": {
                            "name": { "type": "string", "description": "A word or two" },
                            "command": { "type": "string", "description": "Command of the shell, from the directory in which you started" },
                            "results": {
                                "enum": ["cargo", "pytest", "tap", null],
                                "description": "Format of its output: `cargo test`, `pytest -rA`, TAP; null if it is none of them",
                            },
                        },
                        "required": ["name", "command", "results"],
                        "additionalProperties": false,
                    },
                },
                "nothing_fails_first": {
                    "type": ["string", "null"],
                    "description": "Null if a test can be written that fails until the goal is reached; otherwise the reason why none can, as for documents and refactoring",
                },
                "paths": {
                    "type": "array",
                    "items": { "type": "string" },
                    "description": "Globs of the files that may have to change, such as `src/**`; none if any may",
                },
                "notes": notes_schema(),
                "size": {
                    "enum": ["small", "large", null],
                    "description": "`large` if the goal takes several steps over several files, each of which leaves the project working; otherwise `small`",
                },
            },
            "required": ["goal", "checks", "nothing_fails_first", "paths"],
            "additionalProperties": false,
        })
    }

    /// Returns the contract of a draft.
    ///
    /// # Errors
    ///
    /// [`ContractError`], with all problems.
    pub(crate) fn contract(self) -> Result<Contract, ContractError> {
        let mut contract = Contract::new(self.goal);
        contract.checks = self.checks.into_iter().map(DraftCheck::check).collect();
        contract.scope = TaskScope::default().with_paths(self.paths);
        // A small goal needs no entry in the file that the user sees.
        contract.plan.size = self.size.filter(|size| *size == GoalSize::Large);
        if let Some(because) = self.nothing_fails_first {
            contract.anchor = AnchorPlan::None { because };
        }
        contract.check()?;
        Ok(contract)
    }
}

/// Returns the JSON Schema of notes for later sessions.
pub(crate) fn notes_schema() -> Value {
    json!({
        "type": "array",
        "items": { "type": "string" },
        "description": "Places of the repository that matter for the goal, each with its path, line and one sentence, for sessions that have not read them",
    })
}

impl DraftCheck {
    fn check(self) -> TaskCheck {
        let check = TaskCheck::new(self.name, self.command);
        match self.results {
            // Tests that failed before may still fail.
            Some(results) => check.with_results(results).with_pass(PassCondition::NoWorse),
            None => check,
        }
    }
}

impl Contract {
    /// Returns the contract as a TOML file, without the base and the drafting session.
    ///
    /// # Errors
    ///
    /// The reason, for a number that TOML cannot represent.
    pub fn to_toml(&self) -> Result<String, ContractError> {
        let file = Self { base: None, drafted: None, ..self.clone() };
        toml::to_string_pretty(&file).map_err(|error| ContractError::Syntax(error.to_string()))
    }
}
