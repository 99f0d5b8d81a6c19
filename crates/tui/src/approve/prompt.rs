//! Question about a call that needs approval: the choices and their decisions.
//!
//! A run asks on one line, a conversation by keys, and a conversation in plain mode by words.

use pintle_agent::{ApprovalRequest, Decision};
use pintle_tools::{OUTSIDE_SANDBOX, SandboxSide};
use serde_json::Value;

/// Choice of the user about a call. Its key is the first letter of its word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// The call runs.
    Yes,
    /// The call runs inside the sandbox instead.
    Inside,
    /// The call is denied.
    No,
    /// The call runs, and so do all calls of this session that the suggested rules match.
    Session,
}

/// Decision on a call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CallDecision {
    pub(crate) decision: Decision,
    /// Rules to add for this session.
    pub(crate) rules: Vec<String>,
}

impl Choice {
    const ALL: [Self; 4] = [Self::Yes, Self::Inside, Self::No, Self::Session];

    /// Returns the choices for a call.
    pub(crate) fn for_call(request: &ApprovalRequest) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(move |choice| choice.decide(request).is_ok())
    }

    /// Returns the choice with this word or key, in upper or lower case. `always` is another word for `session`.
    pub(crate) fn by_name(name: &str) -> Option<Self> {
        if ["a", "always"].iter().any(|other| other.eq_ignore_ascii_case(name)) {
            return Some(Self::Session);
        }
        let is_named =
            |choice: &Self| [choice.word(), choice.key()].iter().any(|own| own.eq_ignore_ascii_case(name));
        Self::ALL.into_iter().find(is_named)
    }

    /// Returns the word that makes the choice.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::Inside => "inside",
            Self::No => "no",
            Self::Session => "session",
        }
    }

    /// Returns the key that makes the choice.
    pub(crate) fn key(self) -> &'static str {
        self.word().get(..1).unwrap_or_default()
    }

    /// Returns the decision on a call.
    ///
    /// The error is the reason why the choice does not apply to the call, for the user.
    pub(crate) fn decide(self, request: &ApprovalRequest) -> Result<CallDecision, &'static str> {
        Ok(match self {
            Self::Yes => CallDecision::once(Decision::Approve),
            Self::Inside if request.sandbox == Some(SandboxSide::Outside) => {
                CallDecision::once(Decision::Change { arguments: inside(&request.arguments) })
            }
            Self::Inside => return Err("the call does not ask to leave the sandbox: answer yes or no"),
            Self::No => CallDecision::denied(""),
            Self::Session if request.suggested_rules.is_empty() => {
                return Err("no rule names such calls: answer yes or no");
            }
            Self::Session => CallDecision::allowed_by(request.suggested_rules.clone()),
        })
    }
}

impl CallDecision {
    /// Returns a decision on this call only.
    pub(crate) fn once(decision: Decision) -> Self {
        Self { decision, rules: Vec::new() }
    }

    /// Returns a denial, with the user's reason if there is one.
    pub(crate) fn denied(reason: &str) -> Self {
        let reason = match reason {
            "" => "the user denied the call".to_owned(),
            reason => format!("the user says: {reason}"),
        };
        Self::once(Decision::Deny { reason: Some(reason) })
    }

    /// Returns an approval that adds rules.
    pub(crate) fn allowed_by(rules: Vec<String>) -> Self {
        Self { decision: Decision::Approve, rules }
    }

    /// Parses a line that approves with an own rule, such as `session shell(make *)`.
    pub(crate) fn by_rule(line: &str) -> Option<Self> {
        let (word, rule) = line.split_once(char::is_whitespace)?;
        let rule = rule.trim();
        let (name, _) = rule.split_once('(')?;
        // The name of a tool is one word. Other text is a message, such as `a better name is load(path)`.
        let is_rule = rule.ends_with(')') && !name.trim_end().contains(char::is_whitespace);
        (Choice::by_name(word) == Some(Choice::Session) && is_rule)
            .then(|| Self::allowed_by(vec![rule.to_owned()]))
    }
}

/// Returns the side of the sandbox on which a command runs, after a blank. Empty for other calls.
pub(crate) fn side(request: &ApprovalRequest) -> String {
    request.sandbox.map_or_else(String::new, |side| format!(" {}", side.as_words()))
}

/// Returns the arguments without the field that requests a run outside the sandbox.
pub fn inside(arguments: &Value) -> Value {
    let mut arguments = arguments.clone();
    if let Some(fields) = arguments.as_object_mut() {
        fields.remove(OUTSIDE_SANDBOX);
    }
    arguments
}
