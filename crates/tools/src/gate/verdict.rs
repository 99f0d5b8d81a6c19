//! Verdicts of gates, and the judgement of a chain of them.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The action of a rule on the calls that it matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Permission {
    /// The calls may run.
    Allow,
    /// A person decides on each call.
    Ask,
    /// The calls must not run.
    Deny,
}

impl Permission {
    pub(crate) fn verdict(self, reason: impl FnOnce() -> String) -> Verdict {
        match self {
            Self::Allow => Verdict::ALLOW,
            Self::Ask => Verdict::ask(reason()),
            Self::Deny => Verdict::deny(reason()),
        }
    }

    /// Returns the name, such as `ask`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The decision of a gate about one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    permission: Permission,
    reason: String,
    rule: Option<String>,
    by_default: bool,
    binds: bool,
    answers: bool,
    suggested_rules: Vec<String>,
}

impl Verdict {
    /// The call may run, unless another gate objects.
    pub const ALLOW: Self = Self {
        permission: Permission::Allow,
        reason: String::new(),
        rule: None,
        by_default: false,
        binds: false,
        answers: false,
        suggested_rules: Vec::new(),
    };

    /// Creates a denial, regardless of the other gates. The model reads the reason.
    #[must_use]
    pub fn deny(reason: impl Into<String>) -> Self {
        Self { permission: Permission::Deny, reason: reason.into(), ..Self::ALLOW }
    }

    /// Creates a question. A user decides, unless another gate denies the call, and reads the reason.
    #[must_use]
    pub fn ask(reason: impl Into<String>) -> Self {
        Self { permission: Permission::Ask, reason: reason.into(), ..Self::ALLOW }
    }

    /// Sets the rule, grant or mode that decided, for the record of the call.
    #[must_use]
    pub fn with_rule(mut self, rule: impl Into<String>) -> Self {
        self.rule = Some(rule.into());
        self
    }

    /// Marks the verdict as a default: no rule named the call.
    #[must_use]
    pub fn by_default(mut self) -> Self {
        self.by_default = true;
        self
    }

    /// Binds decisions on the call to its rule. They do not apply under another rule, such as another grant.
    #[must_use]
    pub fn binding(mut self) -> Self {
        self.binds = true;
        self
    }

    /// Makes the verdict answer questions that were asked only because no rule named the call.
    #[must_use]
    pub fn answering(mut self) -> Self {
        self.answers = true;
        self
    }

    /// Sets rules that together name exactly calls like this one. A user who is asked may accept them permanently.
    #[must_use]
    pub fn with_suggested_rules(mut self, rules: Vec<String>) -> Self {
        self.suggested_rules = rules;
        self
    }

    /// Returns the permission of the call.
    #[must_use]
    pub fn permission(&self) -> Permission {
        self.permission
    }

    /// Returns the reason; empty if the call may run.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Returns the rule, grant or mode that decided.
    #[must_use]
    pub fn rule(&self) -> Option<&str> {
        self.rule.as_deref()
    }
}

/// One step of a judgement, for the record: the verdict of one gate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct JudgementStep {
    /// Name of the gate, such as `grant` or `rules`.
    pub gate: String,
    /// Its verdict.
    pub permission: Permission,
    /// What decided: a rule, a grant, a mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Reason of a question or a denial.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Whether nothing named the call, so that this is only what happens to all others.
    #[serde(default, skip_serializing_if = "is_false")]
    pub by_default: bool,
    /// Whether decisions on the call are bound to the rule.
    #[serde(default, skip_serializing_if = "is_false")]
    pub binds: bool,
    /// Whether it answers questions that were asked only because nothing named the call.
    #[serde(default, skip_serializing_if = "is_false")]
    pub answers: bool,
    /// Rules that together name exactly calls like this one, if a person is asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suggested_rules: Vec<String>,
}

impl JudgementStep {
    /// Creates the step of a gate.
    #[must_use]
    pub fn new(gate: impl Into<String>, verdict: Verdict) -> Self {
        let Verdict { permission, reason, rule, by_default, binds, answers, suggested_rules } = verdict;
        Self { gate: gate.into(), permission, rule, reason, by_default, binds, answers, suggested_rules }
    }
}

/// The judgement of a chain of gates about one call, with the verdict of each gate that was asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Judgement {
    steps: Vec<JudgementStep>,
}

impl Judgement {
    /// Creates the judgement of a chain without gates, which allows the call.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next step.
    pub fn push(&mut self, step: JudgementStep) {
        self.steps.push(step);
    }

    /// Returns the steps, in the order of the chain. It ends at the first denial.
    #[must_use]
    pub fn steps(&self) -> &[JudgementStep] {
        &self.steps
    }

    /// Returns the steps, so that their texts can be changed.
    pub fn steps_mut(&mut self) -> &mut [JudgementStep] {
        &mut self.steps
    }

    /// Returns whether the chain has no steps.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Returns the permission of the call: the strictest verdict, except for questions that were answered.
    #[must_use]
    pub fn permission(&self) -> Permission {
        if self.steps.iter().any(|step| step.permission == Permission::Deny) {
            Permission::Deny
        } else if self.questions().next().is_some() {
            Permission::Ask
        } else {
            Permission::Allow
        }
    }

    /// Returns rules that together name exactly calls like this one, if a user is asked.
    #[must_use]
    pub fn suggested_rules(&self) -> Vec<String> {
        self.questions().flat_map(|step| step.suggested_rules.iter().cloned()).collect()
    }

    /// Returns the questions that were not answered.
    fn questions(&self) -> impl Iterator<Item = &JudgementStep> {
        let is_answered = self.steps.iter().any(|step| step.permission == Permission::Allow && step.answers);
        let asks = move |step: &&JudgementStep| {
            step.permission == Permission::Ask && !(step.by_default && is_answered)
        };
        self.steps.iter().filter(asks)
    }

    /// Returns the reason of the denial, or the reasons of all questions; empty if the call may run.
    #[must_use]
    pub fn reason(&self) -> String {
        let decisive = self.permission();
        let mut reasons: Vec<&str> = Vec::new();
        for step in self.steps.iter().filter(|step| step.permission == decisive) {
            if !step.reason.is_empty() && !reasons.contains(&step.reason.as_str()) {
                reasons.push(&step.reason);
            }
        }
        reasons.join("; ")
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}
