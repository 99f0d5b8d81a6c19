//! The definition of the command line: of all subcommands, or of the one that a command line names.
//!
//! The derived definition of all subcommands has hundreds of arguments, and a command line uses the arguments of one
//! subcommand.

#[cfg(test)]
use std::cell::Cell;
use std::ffi::OsString;

use clap::{Args as _, CommandFactory as _};

#[cfg(feature = "client")]
use crate::arguments::AttachArgs;
#[cfg(feature = "eval")]
use crate::arguments::EvalArgs;
#[cfg(feature = "mcp")]
use crate::arguments::McpArgs;
use crate::arguments::{
    ApprovalsArgs, Arguments, AskArgs, AuditArgs, CompletionsArgs, ConfigArgs, DemoArgs, DoctorArgs,
    GrantsArgs, LoginArgs, LogoutArgs, ManArgs, MockArgs, ModelsArgs, PatchArgs, RulesArgs, RunArgs,
    SessionsArgs, ShowPromptArgs, ToolsArgs, TrustArgs, WorktreeArgs,
};
#[cfg(feature = "server")]
use crate::arguments::{ServeSessionsArgs, TokensArgs};
#[cfg(feature = "task")]
use crate::arguments::{TaskArgs, WorkerArgs};

/// Function that adds the arguments of a subcommand to a definition.
type AddArguments = fn(clap::Command) -> clap::Command;

/// Names and arguments of the subcommands, in the order of [`Command`](crate::arguments::Command).
const SUBCOMMANDS: &[(&str, AddArguments)] = &[
    ("chat", RunArgs::augment_args),
    ("run", RunArgs::augment_args),
    ("ask", AskArgs::augment_args),
    ("demo", DemoArgs::augment_args),
    ("sessions", SessionsArgs::augment_args),
    ("audit", AuditArgs::augment_args),
    ("worktree", WorktreeArgs::augment_args),
    ("approvals", ApprovalsArgs::augment_args),
    ("rules", RulesArgs::augment_args),
    ("grants", GrantsArgs::augment_args),
    ("trust", TrustArgs::augment_args),
    ("login", LoginArgs::augment_args),
    ("logout", LogoutArgs::augment_args),
    ("config", ConfigArgs::augment_args),
    ("tools", ToolsArgs::augment_args),
    ("models", ModelsArgs::augment_args),
    ("prompt", ShowPromptArgs::augment_args),
    ("patch", PatchArgs::augment_args),
    ("mock", MockArgs::augment_args),
    ("completions", CompletionsArgs::augment_args),
    ("man", ManArgs::augment_args),
    ("doctor", DoctorArgs::augment_args),
    #[cfg(feature = "acp")]
    ("acp", RunArgs::augment_args),
    #[cfg(feature = "server")]
    ("serve", ServeSessionsArgs::augment_args),
    #[cfg(feature = "client")]
    ("attach", AttachArgs::augment_args),
    #[cfg(feature = "server")]
    ("tokens", TokensArgs::augment_args),
    #[cfg(feature = "mcp")]
    ("mcp", McpArgs::augment_args),
    #[cfg(feature = "task")]
    ("task", TaskArgs::augment_args),
    #[cfg(feature = "task")]
    ("worker", WorkerArgs::augment_args),
    #[cfg(feature = "eval")]
    ("eval", EvalArgs::augment_args),
];

#[cfg(test)]
thread_local! {
    /// Number of definitions of all subcommands that this thread has built.
    static BUILT: Cell<usize> = const { Cell::new(0) };
}

/// Returns the names of the subcommands.
pub(super) fn subcommand_names() -> impl Iterator<Item = &'static str> {
    SUBCOMMANDS.iter().map(|(name, _)| *name)
}

/// Returns the definition of all subcommands.
pub(super) fn complete() -> clap::Command {
    #[cfg(test)]
    BUILT.set(BUILT.get() + 1);
    Arguments::command()
}

/// Returns a definition of the subcommand that is the first argument; `None` if the argument is not the name of one.
///
/// It matches the same command lines as the definition of all subcommands. Its errors and its help differ.
pub(super) fn for_first_argument(args: &[OsString]) -> Option<clap::Command> {
    let first = args.get(1)?.to_str()?;
    let (name, add_arguments) = SUBCOMMANDS.iter().copied().find(|(name, _)| *name == first)?;
    Some(clap::Command::new("pintle").subcommand(add_arguments(clap::Command::new(name))))
}

#[cfg(test)]
mod tests {
    use super::super::{arguments, parse_with};
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    /// Returns the arguments and subcommands of a definition, without their visibility in the help.
    fn description(command: &clap::Command) -> String {
        let mut lines = vec![format!(
            "{} {} {}",
            command.get_name(),
            command.is_subcommand_required_set(),
            command.is_arg_required_else_help_set()
        )];
        lines.extend(command.get_arguments().map(|argument| format!("{:?}", argument.clone().hide(false))));
        lines.extend(command.get_groups().map(|group| format!("{group:?}")));
        lines.extend(command.get_subcommands().map(description));
        lines.join("\n")
    }

    #[test]
    fn each_subcommand_is_defined_as_by_the_complete_definition() {
        let complete = complete();
        let names: Vec<&str> = complete.get_subcommands().map(clap::Command::get_name).collect();
        assert_eq!(subcommand_names().collect::<Vec<_>>(), names);
        for subcommand in complete.get_subcommands() {
            let name = subcommand.get_name();
            let alone = for_first_argument(&["pintle".into(), name.into()]).unwrap();
            assert_eq!(description(alone.find_subcommand(name).unwrap()), description(subcommand), "{name}");
        }
        for other in ["pintle", "pintle --help", "pintle help run", "pintle rnu"] {
            assert!(for_first_argument(&words(other)).is_none(), "{other}");
        }
    }

    #[test]
    fn a_command_line_without_errors_needs_one_subcommand() {
        for line in [
            "pintle chat",
            "pintle run --no-sandbox --max-turns=3 --deny shell x",
            "pintle ask --model m why",
            "pintle sessions list --output json",
            "pintle mock serve --script s.toml",
            "pintle patch check --dir d -",
            "pintle completions bash",
        ] {
            let line = words(line);
            let before = BUILT.get();
            let parsed = arguments(&line).unwrap();
            assert_eq!(BUILT.get(), before, "{line:?}");
            let expected = parse_with(complete(), &line).unwrap();
            assert_eq!(format!("{parsed:?}"), format!("{expected:?}"), "{line:?}");
        }
        let before = BUILT.get();
        super::super::parse(words("pintle explain-the-failing-test")).unwrap();
        assert_eq!(BUILT.get(), before, "a conversation");
    }

    #[test]
    fn errors_and_help_are_those_of_the_complete_definition() {
        for line in [
            "pintle run --help",
            "pintle run -h",
            "pintle run --version",
            "pintle run --modell m x",
            "pintle run --provider acme x",
            "pintle run --quiet --verbose x",
            "pintle run --listen x",
            "pintle sessions",
            "pintle sessions help list",
            "pintle sessions lst",
            "pintle mock serve",
            "pintle help run",
            "pintle rnu",
            "pintle --version",
        ] {
            let line = words(line);
            let error = arguments(&line).unwrap_err();
            let expected = parse_with(complete(), &line).unwrap_err();
            assert_eq!(error.kind(), expected.kind(), "{line:?}");
            assert_eq!(error.render().to_string(), expected.render().to_string(), "{line:?}");
        }
    }
}
