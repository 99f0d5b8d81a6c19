//! Permissions that a fork inherits from its origin.

use pintle_agent::SessionId;
use pintle_governance::RecordedPolicy;
use pintle_store::StoreError;
use pintle_tools::gate::Permission;

use super::host::MODE;
use crate::args::RunArgs;
use crate::environment::{Confinement, SandboxName};

/// Returns the reason why a fork with these flags, and with the recorded policy of its origin, may do more without a decision
/// than a new session of the server; `None` if it may not.
pub(super) fn widening(fork: &RunArgs, recorded: &RecordedPolicy, new: &RunArgs) -> Option<String> {
    let mode = recorded.mode.or(fork.policy.mode).unwrap_or(MODE);
    let mode_of_new = new.policy.mode.unwrap_or(MODE);
    if mode.is_wider_than(mode_of_new) {
        return Some(format!("the fork inherits mode {mode}, and new sessions have mode {mode_of_new}"));
    }
    let given = fork.policy.allow.iter().filter(|rule| !new.policy.allow.contains(rule));
    let approved = recorded.rules.iter().filter(|rule| rule.permission == Permission::Allow);
    if let Some(rule) = given.chain(approved.map(|rule| &rule.rule)).next() {
        return Some(format!("the fork inherits the rule `{rule}`, which allows calls"));
    }
    let (environment, of_new) = (&fork.environment.env, &new.environment.env);
    if environment != of_new {
        return Some(format!(
            "the fork inherits the environment {environment}, and new sessions have {of_new}"
        ));
    }
    let (inherited, of_new) = (Confinement::from(&fork.confinement), Confinement::from(&new.confinement));
    if weakness(inherited.level) > weakness(of_new.level) {
        return Some("the fork inherits a weaker sandbox than new sessions have".to_owned());
    }
    let is_networked = inherited.has_network() && !of_new.has_network();
    is_networked.then(|| "the fork inherits a sandbox with network, and new sessions have none".to_owned())
}

/// Returns the reason why a fork of a damaged session may do more than its origin.
pub(super) fn unknown_policy(origin: &SessionId, damage: &StoreError) -> String {
    format!(
        "the record of session {origin} is damaged ({damage}), and the damaged part may contain a narrower mode or rules that deny calls"
    )
}

/// Orders the levels of the sandbox, the strictest first.
fn weakness(level: SandboxName) -> u8 {
    match level {
        SandboxName::Full => 0,
        SandboxName::Auto => 1,
        SandboxName::Writes => 2,
        SandboxName::Off => 3,
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use pintle_agent::PolicyRule;
    use pintle_governance::Mode;

    use super::*;
    use crate::args::{Arguments, Command};

    fn run(flags: &[&str]) -> RunArgs {
        let words = ["pintle", "run"].into_iter().chain(flags.iter().copied()).chain(["task"]);
        let Command::Run(run) = Arguments::try_parse_from(words).unwrap().command else {
            panic!("{flags:?}: not a run")
        };
        *run
    }

    #[test]
    fn each_flag_that_widens_a_fork_is_found() {
        for (fork, new, expected) in [
            (&["--mode", "auto"][..], &["--mode", "auto"][..], false),
            (&["--mode", "auto"], &[], true),
            (&[], &[], false),
            (&["--mode", "plan"], &[], false),
            (&["--allow", "shell"], &[], true),
            (&["--allow", "shell"], &["--allow", "shell"], false),
            (&["--allow", "shell"], &["--allow", "shell(ls)"], true),
            (&["--deny", "shell"], &[], false),
            (&["--env", "docker:c"], &[], true),
            (&["--env", "ssh:host"], &[], true),
            (&["--env", "docker:c"], &["--env", "docker:c"], false),
            (&[], &["--env", "docker:c"], true),
            (&["--no-sandbox"], &[], true),
            (&["--no-sandbox"], &["--sandbox", "off"], false),
            (&["--sandbox", "writes"], &[], true),
            (&["--sandbox", "full"], &["--sandbox", "writes"], false),
            (&["--network", "on"], &[], true),
            (&["--network", "on"], &["--network", "on"], false),
        ] {
            let found = widening(&run(fork), &RecordedPolicy::default(), &run(new));
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
            (&["--mode", "auto"][..], Some(Mode::Auto), None, None),
            (
                &[],
                Some(Mode::Auto),
                None,
                Some("the fork inherits mode auto, and new sessions have mode edit"),
            ),
            (&["--mode", "auto"], Some(Mode::Plan), None, None),
            (&[], Some(Mode::Ask), Some(Permission::Deny), None),
            (&[], None, Some(Permission::Allow), Some("the rule `shell(rm *)`")),
        ] {
            let recorded = RecordedPolicy { mode, rules: permission.map(rule).into_iter().collect() };
            let found = widening(&run(flags), &recorded, &run(flags));
            let is_expected = match (&found, expected) {
                (Some(reason), Some(expected)) => reason.contains(expected),
                (found, expected) => found.is_none() && expected.is_none(),
            };
            assert!(is_expected, "{flags:?} {recorded:?}: {found:?}");
        }
    }
}
