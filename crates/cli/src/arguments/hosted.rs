//! Flags of commands whose tasks come from clients.

use clap::Arg;
use pintle_host::failure::Failure;
#[cfg(any(feature = "restate", feature = "server", test))]
use pintle_host::sessions::RememberedFlags;

use super::RunArgs;

/// Ids of the arguments that [`RunArgs::refuse_hosted`] refuses.
const REFUSED: [&str; 13] = [
    "prompt",
    "prompt_file",
    "continues",
    "resume",
    "fork",
    "no_session",
    "worktree",
    "output_schema",
    "image",
    "plain",
    "notify",
    "title",
    "theme",
];

/// Returns a function that hides arguments from the help: those that [`RunArgs::refuse_hosted`] refuses, and those in `also`.
pub(super) fn hide_refused(also: &'static [&'static str]) -> impl FnMut(Arg) -> Arg {
    move |argument: Arg| {
        let id = argument.get_id().as_str();
        let is_refused = REFUSED.contains(&id) || also.contains(&id);
        if is_refused { argument.hide(true) } else { argument }
    }
}

/// As [`hide_refused`], for a command with a prompt.
#[cfg(feature = "task")]
pub(super) fn hide_refused_beside_prompt(also: &'static [&'static str]) -> impl FnMut(Arg) -> Arg {
    let mut hide = hide_refused(also);
    move |argument: Arg| {
        let is_prompt = matches!(argument.get_id().as_str(), "prompt" | "prompt_file");
        if is_prompt { argument } else { hide(argument) }
    }
}

/// Returns the hint for turning on a disabled sandbox, based on the flags of the command line.
#[cfg(any(feature = "restate", feature = "server", test))]
pub(crate) fn sandbox_remedy(given: &RememberedFlags) -> &'static str {
    if given.contains_key("no-sandbox") {
        "leave out --no-sandbox"
    } else if given.contains_key("sandbox") {
        "leave out --sandbox off"
    } else {
        "give --sandbox auto, since the configuration turns the sandbox off"
    }
}

impl RunArgs {
    /// Checks that no flag for a single task is given, nor one of `also`. `message` receives the flag.
    pub(crate) fn refuse_hosted(
        &self,
        also: &[(&str, bool)],
        message: impl FnOnce(&str) -> String,
    ) -> Result<(), Failure> {
        self.conversation.refuse()?;
        let session = &self.session;
        let flags = [
            ("prompt", !self.prompt.is_absent()),
            ("--continue, --resume and --fork", session.is_continuation() || session.fork.is_some()),
            ("--no-session", session.no_session),
            ("--worktree", session.worktree.is_some()),
            ("--output-schema", self.output_schema.is_some()),
            ("--image", !self.image.is_empty()),
        ];
        let given = flags.iter().chain(also).find(|(_, is_given)| *is_given);
        given.map_or(Ok(()), |(flag, _)| Err(Failure::usage(message(flag))))
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::arguments::Arguments;

    #[test]
    fn the_help_of_hosted_commands_has_no_refused_argument() {
        let mut commands = Arguments::command();
        let mut help =
            |name: &str| commands.find_subcommand_mut(name).map(|found| found.render_long_help().to_string());
        let run = help("run").unwrap();
        for refused in [
            "[PROMPT]",
            "--prompt-file",
            "--continue",
            "--fork",
            "--no-session",
            "--worktree",
            "--image",
            "--theme",
        ] {
            assert!(run.contains(refused), "{refused}");
            for name in ["serve", "worker", "acp"] {
                let Some(help) = help(name) else { continue };
                assert!(!help.contains(refused) && help.contains("--model"), "{name} {refused}: {help}");
            }
        }
        for (name, refused) in [("acp", "--dir "), ("worker", "--wait-approval")] {
            assert!(help(name).is_none_or(|help| !help.contains(refused)), "{name} {refused}");
        }
    }

    #[cfg(feature = "task")]
    #[test]
    fn the_help_of_a_task_has_a_prompt_and_no_refused_argument() {
        let mut commands = Arguments::command();
        let task = commands.find_subcommand_mut("task").unwrap().find_subcommand_mut("run").unwrap();
        let help = task.render_long_help().to_string();
        for refused in ["--theme", "--title", "--plain", "--notify", "--fork", "--image", "--wait-approval"] {
            assert!(!help.contains(refused), "{refused}: {help}");
        }
        assert!(
            help.contains("[PROMPT]") && help.contains("--prompt-file") && help.contains("--model"),
            "{help}"
        );
    }

    #[test]
    fn the_remedy_names_what_turned_the_sandbox_off() {
        for (flag, expected) in [
            (Some("no-sandbox"), "leave out --no-sandbox"),
            (Some("sandbox"), "leave out --sandbox off"),
            (None, "give --sandbox auto, since the configuration turns the sandbox off"),
        ] {
            let given: RememberedFlags = flag.map(|flag| (flag.to_owned(), Vec::new())).into_iter().collect();
            assert_eq!(sandbox_remedy(&given), expected, "{flag:?}");
        }
    }
}
