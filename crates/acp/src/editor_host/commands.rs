//! Slash commands of an editor: terminal commands about the session itself, user commands, and prompts of MCP servers.

use pintle_agent::{CompactionReport, Count, EventKind, UserMessage};
use pintle_governance::Mode;
use pintle_host::prompt_commands::{PromptCommand, PromptText, words};
use pintle_host::reports::{self, INIT, PLAN_FIRST, ReportLine, StatusReport};
use pintle_host::sanitize::sanitize;
use pintle_host::slash_commands::{COMMANDS, Command, CommandInvocation};
use pintle_host::user_commands::UserCommand;

use super::controls::EditorSessionControls;
use crate::error::HostError;
use crate::host::CommandResult;
use crate::settings::SlashCommand;

/// Terminal commands without another equivalent in an editor.
const OFFERED: [Command; 11] = [
    Command::Compact,
    Command::Context,
    Command::Cost,
    Command::Diff,
    Command::Init,
    Command::Login,
    Command::Mode,
    Command::Permissions,
    Command::Plan,
    Command::Status,
    Command::Tools,
];

/// Rows of a diff that are shown. The rest is in the files.
const DIFF_ROWS: usize = 400;

/// Returns the commands that an editor can offer.
pub(super) fn slash_commands(of_user: &[UserCommand], prompts: &[PromptCommand]) -> Vec<SlashCommand> {
    let built_in = COMMANDS.iter().filter(|(command, ..)| OFFERED.contains(command));
    let built_in = built_in.map(|(_, name, arguments, meaning)| {
        let command = SlashCommand::new(*name, *meaning);
        if arguments.is_empty() { command } else { command.with_input(*arguments) }
    });
    let of_user = of_user
        .iter()
        .map(|command| SlashCommand::new(&command.name, &command.meaning).with_input("arguments"));
    let prompts = prompts.iter().map(|prompt| {
        let command = SlashCommand::new(&prompt.command, prompt.meaning());
        let usage = prompt.usage();
        if usage.is_empty() { command } else { command.with_input(usage) }
    });
    built_in.chain(of_user).chain(prompts).collect()
}

impl EditorSessionControls {
    /// Runs a command. A user command expands to its text with the arguments, a prompt to the server's text for it.
    pub(super) async fn call(&self, name: &str, arguments: &str) -> Result<CommandResult, HostError> {
        let of_user = self.context.user_commands.iter().find(|command| command.name == name);
        if let Some(command) = of_user {
            return Ok(CommandResult::Prompt(command.say(arguments).into()));
        }
        let line = format!("/{name} {arguments}");
        let servers = &self.context.servers;
        if let Some(prompt) = servers.prompts().iter().find(|prompt| prompt.command == name) {
            let called = prompt.call(&line, words(arguments)).map_err(HostError::Invalid)?;
            let PromptText { text, images } = servers
                .prompt(&called)
                .await
                .map_err(|reason| HostError::failed("cannot get the prompt", reason))?;
            let message = UserMessage::from(text);
            return Ok(CommandResult::Prompt(images.into_iter().fold(message, UserMessage::with_image)));
        }
        let called = CommandInvocation::parse(&line).map_err(HostError::Invalid)?;
        self.carry_out(&called).await
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "the other commands need a terminal")]
    async fn carry_out(&self, called: &CommandInvocation) -> Result<CommandResult, HostError> {
        let arguments = called.arguments.as_str();
        let lines = match called.command {
            Command::Compact => {
                let report = self.context.handle.compact_and_wait().await;
                let report =
                    report.map_err(|error| HostError::failed("cannot compact the conversation", error))?;
                return Ok(CommandResult::Text(compaction_text(&report)));
            }
            Command::Context => vec![reports::context(self.observed().context)],
            Command::Cost => vec![reports::cost(self.observed().costs.total())],
            Command::Diff => return self.diff().await,
            Command::Init => return Ok(CommandResult::Prompt(INIT.into())),
            Command::Login => reports::login(),
            Command::Mode if arguments.is_empty() => {
                vec![ReportLine::labelled("mode", self.context.policy.mode().to_string())]
            }
            Command::Mode => {
                self.set_mode_to(arguments).await?;
                vec![ReportLine::labelled("mode", arguments)]
            }
            Command::Permissions => reports::permissions(&self.context.policy),
            Command::Plan => {
                self.set_mode_to(Mode::Plan.as_str()).await?;
                if !arguments.is_empty() {
                    return Ok(CommandResult::Prompt(format!("{arguments}\n\n{PLAN_FIRST}").into()));
                }
                vec![ReportLine::labelled("mode", "plan: say what to plan")]
            }
            Command::Status => self.status(),
            Command::Tools => reports::tools(&self.context.offered),
            _ => return Err(HostError::Unsupported(format!("the command {:?}", called.command))),
        };
        let text: Vec<String> = lines.iter().map(ToString::to_string).collect();
        Ok(verbatim("", &text.join("\n")))
    }

    fn status(&self) -> Vec<ReportLine> {
        let context = &self.context;
        let model = self.model_and_effort().0;
        let environment = format!("local, {}", context.env_session.sandbox().recorded_name());
        let status = StatusReport {
            session: &context.id,
            model: &model,
            directory: &context.directory,
            environment: &environment,
            policy: &context.policy,
        };
        status.lines()
    }

    async fn diff(&self) -> Result<CommandResult, HostError> {
        let Some(files) = &self.context.files else {
            return Err(HostError::Invalid("this session is not kept".to_owned()));
        };
        let diff = files.diff().await;
        let diff =
            diff.map_err(|failure| HostError::failed("cannot compare the files", failure.message()))?;
        if diff.is_empty() {
            return Ok(CommandResult::Text("No changes since the session started.".to_owned()));
        }
        let mut rows: Vec<String> = diff.lines().map(sanitize).map(Into::into).collect();
        let more = rows.len().saturating_sub(DIFF_ROWS);
        rows.truncate(DIFF_ROWS);
        if more > 0 {
            rows.push(format!("… {}; `pintle sessions diff` shows all", Count(more as u64, "more line")));
        }
        Ok(verbatim("diff", &rows.join("\n")))
    }
}

/// Returns the outcome of a compaction.
fn compaction_text(report: &CompactionReport) -> String {
    let outcomes: Vec<String> = report.events.iter().filter_map(compaction_outcome).collect();
    match (outcomes.is_empty(), report.is_deferred) {
        (false, _) => outcomes.join("\n\n"),
        (true, true) => {
            "The older part of the conversation is summarized before the next request, or after this turn."
                .to_owned()
        }
        (true, false) => "The compaction was interrupted.".to_owned(),
    }
}

/// Returns the text of a compaction's summary or warning.
fn compaction_outcome(event: &EventKind) -> Option<String> {
    match event {
        EventKind::CompactionEnd { through, from, tokens_before, tokens_after, .. } => {
            Some(reports::compaction(through.saturating_sub(*from), *tokens_before, *tokens_after))
        }
        EventKind::Warning { message } => Some(message.clone()),
        // A report has no other events.
        EventKind::SessionStart { .. } | _ => None,
    }
}

/// Shows a text verbatim: editors render Markdown, which would join its lines.
fn verbatim(language: &str, text: &str) -> CommandResult {
    let longest = text.split(|character| character != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    CommandResult::Text(format!("{fence}{language}\n{text}\n{fence}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_are_longer_than_what_they_hold() {
        for (text, expected) in [("one\ntwo", "```\none\ntwo\n```"), ("a ```` b", "`````\na ```` b\n`````")] {
            assert_eq!(verbatim("", text), CommandResult::Text(expected.to_owned()));
        }
    }

    #[test]
    fn commands_have_their_names_once() {
        let commands = slash_commands(&[], &[]);
        assert_eq!(commands.len(), OFFERED.len());
        let mode = commands.iter().find(|command| command.name == "mode").unwrap();
        assert_eq!(mode.input.as_deref(), Some("[plan|ask|edit|auto]"));
    }
}
