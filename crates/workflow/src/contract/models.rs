//! Models of the sessions of a task.

use serde::{Deserialize, Serialize};

use super::{CandidatePlan, Contract, ContractError, describe_toml_error};

/// Work of a session of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum SessionRole {
    /// It drafts the contract.
    Draft,
    /// It plans the next step.
    Plan,
    /// It writes the anchor or the hidden anchor.
    Anchor,
    /// It works on the goal.
    Work,
    /// It reviews an anchor or changes.
    Review,
}

/// Models of the sessions of a task, by their work. The catalog decides the provider of a model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ModelPlans {
    /// Session that drafts the contract.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draft: Option<ModelPlan>,
    /// Session that plans the next step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<ModelPlan>,
    /// Sessions that write the anchor and the hidden anchor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anchor: Option<ModelPlan>,
    /// Sessions of candidates, unless a candidate names its own model or effort.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<ModelPlan>,
    /// Sessions that review, unless the review names its own model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<ModelPlan>,
}

/// Model of the sessions with one role.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ModelPlan {
    /// Model. Default: the model of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Reasoning effort. Default: the effort of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// Part of the budget of the task, above 0 and up to 1. Other sessions do not use it. Sessions without a share use the
    /// rest of the budget together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
}

/// File with models alone.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelsFile {
    models: ModelPlans,
}

impl SessionRole {
    /// All roles.
    pub const ALL: [Self; 5] = [Self::Draft, Self::Plan, Self::Anchor, Self::Work, Self::Review];

    /// Returns the name of the role in a contract.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Plan => "plan",
            Self::Anchor => "anchor",
            Self::Work => "work",
            Self::Review => "review",
        }
    }
}

impl ModelPlan {
    /// Sets the model.
    #[must_use]
    pub fn with_model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Sets the reasoning effort.
    #[must_use]
    pub fn with_effort(mut self, effort: impl Into<String>) -> Self {
        self.effort = Some(effort.into());
        self
    }

    /// Sets the part of the budget.
    #[must_use]
    pub fn with_share(mut self, share: f64) -> Self {
        self.share = Some(share);
        self
    }
}

impl ModelPlans {
    /// Reads models from a TOML file with a table `[models]` alone. [`Contract::check`] compares their shares with the rest of
    /// a contract.
    ///
    /// # Errors
    ///
    /// [`ContractError::Models`] for another file.
    pub fn parse(text: &str) -> Result<Self, ContractError> {
        let file: Result<ModelsFile, _> = toml::from_str(text);
        file.map(|file| file.models).map_err(|error| ContractError::Models(describe_toml_error(&error, text)))
    }

    /// Returns the plan of a role.
    #[must_use]
    pub fn get(&self, role: SessionRole) -> Option<&ModelPlan> {
        match role {
            SessionRole::Draft => self.draft.as_ref(),
            SessionRole::Plan => self.plan.as_ref(),
            SessionRole::Anchor => self.anchor.as_ref(),
            SessionRole::Work => self.work.as_ref(),
            SessionRole::Review => self.review.as_ref(),
        }
    }

    /// Sets the plan of a role.
    #[must_use]
    pub fn with_plan(mut self, role: SessionRole, plan: ModelPlan) -> Self {
        match role {
            SessionRole::Draft => self.draft = Some(plan),
            SessionRole::Plan => self.plan = Some(plan),
            SessionRole::Anchor => self.anchor = Some(plan),
            SessionRole::Work => self.work = Some(plan),
            SessionRole::Review => self.review = Some(plan),
        }
        self
    }

    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Returns whether a role has a share of the budget.
    pub(crate) fn has_shares(&self) -> bool {
        self.shares().next().is_some()
    }

    /// Returns the part of the budget that no role has as its share.
    pub(crate) fn unshared(&self) -> f64 {
        (1.0 - self.shares().sum::<f64>()).max(0.0)
    }

    fn shares(&self) -> impl Iterator<Item = f64> {
        SessionRole::ALL.into_iter().filter_map(move |role| self.get(role)?.share)
    }

    /// Adds the problems of the models of a contract.
    pub(super) fn check(&self, contract: &Contract, problems: &mut Vec<String>) {
        for role in SessionRole::ALL {
            let Some(ModelPlan { model, effort, share }) = self.get(role) else { continue };
            let name = role.name();
            let is_blank = |text: &Option<String>| text.as_ref().is_some_and(|text| text.trim().is_empty());
            if is_blank(model) {
                problems.push(format!("models.{name}.model: expected the name of a model"));
            }
            if is_blank(effort) {
                problems.push(format!("models.{name}.effort: expected an effort, such as `low` or `high`"));
            }
            if share.is_some_and(|share| !(f64::MIN_POSITIVE..=1.0).contains(&share)) {
                problems.push(format!("models.{name}.share: expected more than 0, and at most 1"));
            }
        }
        if !self.has_shares() {
            return;
        }
        let budget = &contract.budget;
        if budget.cost.is_none() && budget.tokens.is_none() && budget.minutes.is_none() {
            problems.push("models: expected a `[budget]`, which the shares are parts of".to_owned());
        }
        // Decimal fractions such as 0.1 have no exact value.
        let rest = 1.0 - self.shares().sum::<f64>();
        if rest < -1e-9 {
            problems.push("models: expected shares with a sum of at most 1".to_owned());
        } else if rest < 1e-9 {
            let unpaid =
                needed_roles(contract).filter(|role| self.get(*role).is_none_or(|plan| plan.share.is_none()));
            for role in unpaid {
                let name = role.name();
                problems.push(format!("models.{name}.share: expected a share, as the others leave nothing"));
            }
        }
    }
}

/// Returns the roles without whose sessions a task cannot reach its goal.
fn needed_roles(contract: &Contract) -> impl Iterator<Item = SessionRole> {
    let anchor = contract.anchor.is_test().then_some(SessionRole::Anchor);
    let review = (contract.review.rounds > 0).then_some(SessionRole::Review);
    anchor.into_iter().chain([SessionRole::Work]).chain(review)
}

impl Contract {
    /// Returns the model and the effort of the sessions with a role, without a candidate's own ones.
    pub(crate) fn session_plan(&self, role: SessionRole) -> CandidatePlan {
        let plan = self.models.get(role).cloned().unwrap_or_default();
        let own = if role == SessionRole::Review { self.review.model.clone() } else { None };
        CandidatePlan { model: own.or(plan.model), effort: plan.effort, prompt: None }
    }

    /// Returns the plan of a candidate, with the model and the effort of its role where the candidate names none.
    #[must_use]
    pub fn candidate_plan(&self, candidate: usize) -> CandidatePlan {
        let own = self.candidates.get(candidate).cloned().unwrap_or_default();
        let shared = self.session_plan(SessionRole::Work);
        CandidatePlan { model: own.model.or(shared.model), effort: own.effort.or(shared.effort), ..own }
    }

    /// Returns the model and the effort of all sessions of the contract.
    pub(crate) fn session_plans(&self) -> Vec<CandidatePlan> {
        let roles = SessionRole::ALL.into_iter().map(|role| self.session_plan(role));
        roles.chain((0..self.candidates.len()).map(|candidate| self.candidate_plan(candidate))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> String {
        match Contract::parse(text) {
            Ok(_) => String::new(),
            Err(ContractError::Wrong(problems)) => problems.join("\n"),
            Err(ContractError::Syntax(error) | ContractError::Models(error)) => error,
        }
    }

    #[test]
    fn a_table_names_the_model_of_each_role() {
        let text = "goal = \"Do it.\"\n[budget]\nusd = 2.0\n[models]\nplan = { effort = \"high\" }\n\
                    anchor = { model = \"small\", share = 0.1 }\nwork = { model = \"large\", effort = \"low\" }\n\
                    review = { model = \"other\", effort = \"high\", share = 0.2 }\n\
                    [[candidate]]\n[[candidate]]\nmodel = \"own\"\n";
        let contract = Contract::parse(text).unwrap();
        let plan = |role| {
            let CandidatePlan { model, effort, .. } = contract.session_plan(role);
            [model, effort].into_iter().flatten().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(SessionRole::ALL.map(plan), ["", "high", "small", "large low", "other high"]);
        let own = contract.candidate_plan(1);
        assert_eq!((own.model.as_deref(), own.effort.as_deref()), (Some("own"), Some("low")));
        assert!((contract.models.unshared() - 0.7).abs() < 1e-9);
        // The draft is shown as such a file.
        assert_eq!(Contract::parse(&contract.to_toml().unwrap()).unwrap(), contract);
        let own =
            contract.with_review(super::super::ReviewPlan { rounds: 1, model: Some("mine".to_owned()) });
        assert_eq!(own.session_plan(SessionRole::Review).model.as_deref(), Some("mine"));
        assert!(!Contract::new("Do it.").to_toml().unwrap().contains("models"));
    }

    #[test]
    fn wrong_models_are_refused_with_what_is_expected() {
        let blank = "models.work.model: expected the name of a model\n\
                     models.work.effort: expected an effort, such as `low` or `high`";
        for (models, expected) in [
            ("work = { model = \" \", effort = \"\" }", blank),
            ("work = { share = 0.0 }", "models.work.share: expected more than 0, and at most 1"),
            ("work = { share = nan }", "models.work.share: expected more than 0, and at most 1"),
            (
                "work = { share = 0.7 }\nreview = { share = 0.4 }",
                "models: expected shares with a sum of at most 1",
            ),
            (
                "work = { share = 0.9 }\nreview = { share = 0.1 }",
                "models.anchor.share: expected a share, as the others leave nothing",
            ),
            ("work = { share = 0.6 }\nreview = { share = 0.3 }\nanchor = { share = 0.1 }", ""),
        ] {
            let text = format!("goal = \"Do it.\"\n[budget]\nusd = 1.0\n[models]\n{models}\n");
            assert_eq!(problems(&text), expected, "{models}");
        }
        let without = problems("goal = \"Do it.\"\n[models]\nwork = { share = 0.5 }\n");
        assert_eq!(without, "models: expected a `[budget]`, which the shares are parts of");
        for unknown in ["writer = {}", "work = { provider = \"openai\" }"] {
            let found = problems(&format!("goal = \"Do it.\"\n[models]\n{unknown}\n"));
            assert!(found.contains("unknown field") && found.contains("expected"), "{found}");
        }
        let file = ModelPlans::parse("[models]\ndraft = { model = \"small\" }\n").unwrap();
        assert_eq!(file.get(SessionRole::Draft).unwrap().model.as_deref(), Some("small"));
        let other = ModelPlans::parse("goal = \"Do it.\"\n[models]\n").unwrap_err().to_string();
        assert!(
            other.starts_with("the models cannot be read: line 1, column 1: unknown field `goal`"),
            "{other}"
        );
    }
}
