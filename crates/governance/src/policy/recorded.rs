//! The policy at the end of a record.

use pintle_agent::protocol::InputKind;
use pintle_agent::{PolicyChange, PolicyRule, Record};

use super::{Policy, PolicyError};
use crate::mode::Mode;

/// Start of the source of rules that were added in an approval. They apply for the rest of the session.
pub const APPROVAL_SOURCE: &str = "approval of ";

/// Policy at the end of the record of a session. The session resumes with it, and a fork inherits it.
///
/// It has the last mode and the rules that were added while the session ran. Each process that opens a session records
/// its complete policy first. Of that policy, only rules of approvals count: rules of files and flags are loaded again
/// instead, so a rule that was removed since does not come back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedPolicy {
    /// Mode; `None` if the record contains no known mode.
    pub mode: Option<Mode>,
    /// Whether the mode was set while the session ran. Otherwise a process started with it.
    pub is_mode_chosen: bool,
    /// Rules that were added, the oldest first.
    pub rules: Vec<PolicyRule>,
}

impl RecordedPolicy {
    /// Reads the policy from a record, which may end at damage.
    #[must_use]
    pub fn from_record(record: &Record) -> Self {
        let mut recorded = Self::default();
        for entry in &record.entries {
            if let InputKind::PolicyChanged { change } = &entry.input.kind {
                recorded.apply(change);
            }
        }
        recorded
    }

    fn apply(&mut self, change: &PolicyChange) {
        let mode: Option<Mode> = change.mode.as_deref().and_then(|mode| mode.parse().ok());
        // A process that resumes a session records its mode again.
        if let Some(mode) = mode.filter(|mode| self.mode != Some(*mode)) {
            let is_marked = change.sandbox.is_some() || change.grant.is_some();
            self.is_mode_chosen = self.mode.is_some() && !is_marked;
            self.mode = Some(mode);
        }
        let is_beginning = change.mode.is_some() || change.sandbox.is_some() || change.grant.is_some();
        for rule in &change.rules {
            // A process that resumes a session records all rules again.
            let is_added = !is_beginning || rule.source.starts_with(APPROVAL_SOURCE);
            if is_added && !self.rules.contains(rule) {
                self.rules.push(rule.clone());
            }
        }
    }

    /// Applies the recorded rules to a policy, and the mode unless `keeps_mode`.
    ///
    /// # Errors
    ///
    /// [`PolicyError::Rule`] for a rule that asks or denies and that this version cannot parse.
    pub fn restore(&self, policy: &Policy, keeps_mode: bool) -> Result<(), PolicyError> {
        let mut change = PolicyChange::default();
        change.mode = self.mode.filter(|_| !keeps_mode).map(|mode| mode.to_string());
        change.rules.clone_from(&self.rules);
        policy.apply_recorded(&change)
    }
}

#[cfg(test)]
mod tests {
    use pintle_tools::gate::Permission;

    use super::*;
    use crate::rules::Rules;

    #[test]
    fn the_newest_mode_and_the_rules_that_were_added_are_restored() {
        let rule = |permission, rule: &str, source: &str| PolicyRule {
            permission,
            rule: rule.to_owned(),
            source: source.to_owned(),
        };
        let approved = rule(Permission::Deny, "shell(rm *)", "approval of ann");
        let mut first = PolicyChange::mode("auto");
        first.rules = vec![rule(Permission::Deny, "shell", "--deny"), approved.clone()];
        let mut again = PolicyChange::mode("plan");
        again.rules = vec![approved.clone()];
        let unknown = PolicyChange::mode("no such mode");
        let added = rule(Permission::Deny, "@write", "the application");
        let mut recorded = RecordedPolicy::default();
        for change in [first, again, unknown, PolicyChange::rule(added.clone())] {
            recorded.apply(&change);
        }
        let expected =
            RecordedPolicy { mode: Some(Mode::Plan), is_mode_chosen: true, rules: vec![approved, added] };
        assert_eq!(recorded, expected);
        for (keeps_mode, mode) in [(false, Mode::Plan), (true, Mode::Ask)] {
            let policy = Policy::new(Mode::Ask, Rules::new(), "/project");
            recorded.restore(&policy, keeps_mode).unwrap();
            assert_eq!((policy.mode(), policy.rules().len()), (mode, 2), "{keeps_mode}");
        }
    }

    #[test]
    fn a_mode_is_chosen_if_it_was_set_while_the_session_ran() {
        let start = |mode: Mode| {
            let mut change = PolicyChange::mode(mode.as_str());
            change.sandbox = Some("full".to_owned());
            change
        };
        let set = |mode: Mode| PolicyChange::mode(mode.as_str());
        for (changes, mode, is_chosen) in [
            (vec![], None, false),
            (vec![start(Mode::Auto)], Some(Mode::Auto), false),
            // Versions without a sandbox on record.
            (vec![set(Mode::Auto), set(Mode::Auto)], Some(Mode::Auto), false),
            (vec![start(Mode::Edit), set(Mode::Auto)], Some(Mode::Auto), true),
            (vec![start(Mode::Edit), set(Mode::Auto), start(Mode::Auto)], Some(Mode::Auto), true),
            (vec![start(Mode::Edit), set(Mode::Auto), start(Mode::Ask)], Some(Mode::Ask), false),
            (vec![start(Mode::Auto), start(Mode::Ask), set(Mode::Auto)], Some(Mode::Auto), true),
        ] {
            let mut recorded = RecordedPolicy::default();
            changes.iter().for_each(|change| recorded.apply(change));
            assert_eq!((recorded.mode, recorded.is_mode_chosen), (mode, is_chosen), "{changes:?}");
        }
    }

    #[test]
    fn rules_of_an_earlier_beginning_do_not_come_back() {
        let allowed = PolicyRule {
            permission: Permission::Allow,
            rule: "shell".to_owned(),
            source: "--allow".to_owned(),
        };
        type Mark = fn(&mut PolicyChange);
        let marks: [Mark; 3] = [
            |change| change.mode = Some("auto".to_owned()),
            |change| change.sandbox = Some("off".to_owned()),
            |change| change.grant = Some(serde_json::json!({})),
        ];
        for (number, mark) in marks.into_iter().enumerate() {
            let mut change = PolicyChange::rule(allowed.clone());
            mark(&mut change);
            let mut recorded = RecordedPolicy::default();
            recorded.apply(&change);
            assert_eq!(recorded.rules, [], "{number}");
        }
    }
}
