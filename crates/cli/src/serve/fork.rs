//! Flags that a fork inherits from its origin.

use super::host::MODE;
use crate::args::{RunArgs, SandboxName};

/// Returns whether a fork with these flags may do more without a decision than a new session of the server.
pub(super) fn is_wider(fork: &RunArgs, new: &RunArgs) -> bool {
    let mode = |args: &RunArgs| args.policy.mode.unwrap_or(MODE);
    let level = |args: &RunArgs| weakness(args.confinement.level());
    mode(fork).is_wider_than(mode(new))
        || fork.policy.allow.iter().any(|rule| !new.policy.allow.contains(rule))
        || fork.environment.env != new.environment.env
        || level(fork) > level(new)
        || (fork.confinement.has_network() && !new.confinement.has_network())
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
            assert_eq!(is_wider(&run(fork), &run(new)), expected, "{fork:?} of {new:?}");
        }
    }
}
