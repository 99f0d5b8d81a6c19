//! Permissions that a fork inherits from its origin.

use pintle_agent::SessionId;
use pintle_governance::{NetworkScope, RecordedPolicy};
use pintle_host::SessionSpec;
use pintle_host::env_spec::EnvSpec;
use pintle_store::StoreError;
use pintle_tools::gate::Permission;

/// Returns the reason why a fork with these settings may do more without a decision than a new session of the server; `None` if
/// it may not. `recorded` is the policy that the fork inherits, with a mode within the limits of the user.
pub(super) fn widening(fork: &SessionSpec, recorded: &RecordedPolicy, new: &SessionSpec) -> Option<String> {
    let (mode, mode_of_new) = (recorded.mode.unwrap_or(fork.policy.mode), new.policy.mode);
    if mode.is_wider_than(mode_of_new) {
        return Some(format!("the fork inherits mode {mode}, and new sessions have mode {mode_of_new}"));
    }
    let given = fork.policy.allow.iter().filter(|rule| !new.policy.allow.contains(rule));
    let approved = recorded.rules.iter().filter(|rule| rule.permission == Permission::Allow);
    if let Some(rule) = given.chain(approved.map(|rule| &rule.rule)).next() {
        return Some(format!("the fork inherits the rule `{rule}`, which allows calls"));
    }
    let (environment, of_new) = (kind(fork), kind(new));
    if environment != of_new {
        return Some(format!(
            "the fork inherits the environment {environment}, and new sessions have {of_new}"
        ));
    }
    // The levels are in the order of their strictness.
    if fork.environment.sandbox > new.environment.sandbox {
        return Some("the fork inherits a weaker sandbox than new sessions have".to_owned());
    }
    let is_networked = !network(fork).is_within(&network(new));
    is_networked.then(|| "the fork inherits a sandbox with more network than new sessions have".to_owned())
}

/// Returns the name of the environment in its usual form.
fn kind(spec: &SessionSpec) -> String {
    let kind = &spec.environment.kind;
    kind.parse::<EnvSpec>().map_or_else(|_| kind.clone(), |kind| kind.to_string())
}

fn network(spec: &SessionSpec) -> NetworkScope {
    match spec.environment.hosts() {
        Some(hosts) => NetworkScope::Hosts(hosts.clone()),
        None if spec.environment.has_network() => NetworkScope::All,
        None => NetworkScope::None,
    }
}

/// Returns the reason why a fork of a damaged session may do more than its origin.
pub(super) fn unknown_policy(origin: &SessionId, damage: &StoreError) -> String {
    format!(
        "the record of session {origin} is damaged ({damage}), and the damaged part may contain a narrower mode or rules that deny calls"
    )
}

#[cfg(test)]
mod tests {
    use pintle_agent::PolicyRule;
    use pintle_governance::Mode;
    use pintle_host::sessions::RememberedFlags;
    use pintle_host::{Layer, LayerSpec, PartialSpec, ValueOrigin, merge};

    use super::super::defaults;
    use super::*;

    /// Returns the settings of a session with flags, each as `NAME` or `NAME=VALUE`.
    fn spec(flags: &[&str]) -> SessionSpec {
        let split = |flag: &&str| match flag.split_once('=') {
            Some((name, value)) => (name.to_owned(), vec![value.to_owned()]),
            None => ((*flag).to_owned(), Vec::new()),
        };
        let flags: RememberedFlags = flags.iter().map(split).collect();
        let given = PartialSpec::from_remembered_flags(&flags, None).unwrap();
        let layer = |kind, spec| LayerSpec::new(kind, spec, ValueOrigin::Default);
        merge([layer(Layer::Default, defaults()), layer(Layer::CommandLine, given)]).unwrap().spec
    }

    #[test]
    fn each_flag_that_widens_a_fork_is_found() {
        for (fork, new, expected) in [
            (&["mode=auto"][..], &["mode=auto"][..], false),
            (&["mode=auto"], &[], true),
            (&[], &[], false),
            (&["mode=plan"], &[], false),
            (&["allow=shell"], &[], true),
            (&["allow=shell"], &["allow=shell"], false),
            (&["allow=shell"], &["allow=shell(ls)"], true),
            (&["deny=shell"], &[], false),
            (&["env=docker:c"], &[], true),
            (&["env=ssh:host"], &[], true),
            (&["env=docker:c"], &["env=docker:c"], false),
            (&[], &["env=docker:c"], true),
            (&["no-sandbox"], &[], true),
            (&["no-sandbox"], &["sandbox=off"], false),
            (&["sandbox=writes"], &[], true),
            (&["sandbox=full"], &["sandbox=writes"], false),
            (&["network=on"], &[], true),
            (&["network=on"], &["network=on"], false),
        ] {
            let found = widening(&spec(fork), &RecordedPolicy::default(), &spec(new));
            assert_eq!(found.is_some(), expected, "{fork:?} of {new:?}: {found:?}");
        }
    }

    #[test]
    fn each_recorded_permission_that_widens_a_fork_is_found() {
        let rule = |permission| PolicyRule {
            permission,
            rule: "shell(rm *)".to_owned(),
            source: "approval of ann".to_owned(),
        };
        for (flags, mode, permission, expected) in [
            (&["mode=auto"][..], Some(Mode::Auto), None, None),
            (
                &[],
                Some(Mode::Auto),
                None,
                Some("the fork inherits mode auto, and new sessions have mode edit"),
            ),
            (&["mode=auto"], Some(Mode::Plan), None, None),
            (&[], Some(Mode::Ask), Some(Permission::Deny), None),
            (&[], None, Some(Permission::Allow), Some("the rule `shell(rm *)`")),
        ] {
            let rules = permission.map(rule).into_iter().collect();
            let recorded = RecordedPolicy { mode, rules, ..RecordedPolicy::default() };
            let found = widening(&spec(flags), &recorded, &spec(flags));
            let is_expected = match (&found, expected) {
                (Some(reason), Some(expected)) => reason.contains(expected),
                (found, expected) => found.is_none() && expected.is_none(),
            };
            assert!(is_expected, "{flags:?} {recorded:?}: {found:?}");
        }
    }
}
