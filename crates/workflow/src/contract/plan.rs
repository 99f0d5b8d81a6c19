//! The plan of a contract: whether a task is carried out in steps.

use serde::{Deserialize, Serialize};

use super::Contract;

/// Maximum number of rounds of a plan.
pub const MAX_ROUNDS: u32 = 50;

/// Number of rounds of a large goal without a number of its contract.
pub const AUTO_ROUNDS: u32 = 12;

/// Whether a task is carried out in steps, each of which is planned, executed and judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct PlanSettings {
    /// Maximum number of steps. Default `auto`.
    #[serde(default)]
    pub rounds: PlanRounds,
    /// Size of the goal, as the draft of the contract estimates it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<GoalSize>,
}

/// Maximum number of steps of a plan: `auto`, or a number. With 0, there is no plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "RoundsText", into = "RoundsText")]
pub enum PlanRounds {
    /// A large goal has [`AUTO_ROUNDS`], and any other goal has no plan.
    #[default]
    Auto,
    /// This number.
    AtMost(u32),
}

/// Size of a goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum GoalSize {
    /// One session reaches it.
    Small,
    /// It takes several steps, each of which can be judged.
    Large,
}

/// The form of [`PlanRounds`] in files.
#[derive(Serialize, Deserialize)]
#[serde(untagged, expecting = "expected `auto`, or 0 to 50")]
enum RoundsText {
    Number(u32),
    Word(String),
}

impl TryFrom<RoundsText> for PlanRounds {
    type Error = String;

    fn try_from(text: RoundsText) -> Result<Self, String> {
        match text {
            RoundsText::Number(rounds) => Ok(Self::AtMost(rounds)),
            RoundsText::Word(word) if word == "auto" => Ok(Self::Auto),
            RoundsText::Word(word) => Err(format!("expected `auto`, or 0 to 50, found `{word}`")),
        }
    }
}

impl From<PlanRounds> for RoundsText {
    fn from(rounds: PlanRounds) -> Self {
        match rounds {
            PlanRounds::Auto => Self::Word("auto".to_owned()),
            PlanRounds::AtMost(rounds) => Self::Number(rounds),
        }
    }
}

impl PlanSettings {
    /// Creates a plan with at most this number of steps.
    #[must_use]
    pub fn at_most(rounds: u32) -> Self {
        Self { rounds: PlanRounds::AtMost(rounds), size: None }
    }

    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Contract {
    /// Sets the plan.
    #[must_use]
    pub fn with_plan(mut self, plan: PlanSettings) -> Self {
        self.plan = plan;
        self
    }

    /// Returns the maximum number of steps of the plan. 0 if the task has no plan.
    #[must_use]
    pub fn plan_rounds(&self) -> u32 {
        match (self.plan.rounds, self.plan.size) {
            (PlanRounds::AtMost(rounds), _) => rounds,
            (PlanRounds::Auto, Some(GoalSize::Large)) => AUTO_ROUNDS,
            (PlanRounds::Auto, Some(GoalSize::Small) | None) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_the_draft_decides_without_a_number() {
        for (plan, expected) in [
            ("", Some(0)),
            ("[plan]\nrounds = \"auto\"\n", Some(0)),
            ("[plan]\nsize = \"small\"\n", Some(0)),
            ("[plan]\nsize = \"large\"\n", Some(AUTO_ROUNDS)),
            ("[plan]\nrounds = 3\n", Some(3)),
            ("[plan]\nrounds = 0\nsize = \"large\"\n", Some(0)),
            ("[plan]\nrounds = 51\n", None),
            ("[plan]\nrounds = \"many\"\n", None),
            ("[plan]\nrounds = -1\n", None),
        ] {
            let contract = Contract::parse(&format!("goal = \"a\"\n{plan}"));
            assert_eq!(contract.as_ref().ok().map(Contract::plan_rounds), expected, "{plan}: {contract:?}");
        }
    }

    #[test]
    fn other_rounds_are_refused_with_the_expectation() {
        for rounds in ["-3", "1.5", "true", "\"many\""] {
            let text = format!("goal = \"a\"\n[plan]\nrounds = {rounds}\n");
            let problem = Contract::parse(&text).unwrap_err().to_string();
            let place = "the contract cannot be read: line 3, column 10: expected `auto`, or 0 to 50";
            assert!(problem.starts_with(place), "{problem}");
            assert!(!problem.contains('\n'), "{problem}");
        }
    }

    #[test]
    fn a_plan_is_written_as_it_is_read() {
        for plan in
            [PlanSettings::at_most(4), PlanSettings { rounds: PlanRounds::Auto, size: Some(GoalSize::Large) }]
        {
            let contract = Contract::new("a").with_plan(plan);
            let text = contract.to_toml().unwrap();
            assert_eq!(Contract::parse(&text).unwrap().plan, plan, "{text}");
        }
        assert!(!Contract::new("a").to_toml().unwrap().contains("plan"));
    }
}
