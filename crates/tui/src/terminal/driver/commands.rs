//! Carries out the commands of the conversation.

use pintle_agent::{Turn, TurnKind};
use pintle_host::reports::{self, INIT, PLAN_FIRST};
use pintle_host::slash_commands::{COMMANDS, Command, CommandInvocation};

use super::{Driver, Request};
use crate::render::{Face, StyledLine, plural};
use crate::reports::labelled;
use crate::terminal::conversation_end::ConversationEnd;
use crate::terminal::images::OutgoingMessage;
use crate::terminal::keys::Background;
use crate::terminal::port::{Capabilities, Operation, PortCommand, Report, Switch};

/// Maximum size of a text that is copied to the clipboard, in bytes. Terminals ignore much longer texts.
const MAX_COPIED: usize = 64 << 10;

/// Keys, their meanings, and the operation that they need.
const KEYS: [(&str, &str, Option<Operation>); 17] = [
    ("Enter", "send; while a turn runs, steer it", None),
    ("Tab, Alt+Enter", "queue for the end of the turn", None),
    ("Esc", "interrupt the turn; the conversation stays", None),
    ("Ctrl+J, Shift+Enter", "begin another line", None),
    ("Up, Down, Ctrl+R", "input history, step by step or searched", None),
    ("@FILE", "name a file; an image goes with the message", Some(Operation::Files)),
    ("Ctrl+V", "paste the image on the clipboard; files that are dropped are taken as well", None),
    ("!COMMAND", "run a command; the model sees it with your next message", Some(Operation::Shell)),
    ("# LINE", "add a line to a file of instructions", Some(Operation::Instructions)),
    ("Ctrl+A, Ctrl+E, Alt+B, Alt+F", "move by lines and words", None),
    ("Ctrl+W, Ctrl+U, Ctrl+K, Ctrl+Y", "cut a word, to the beginning, to the end; put back", None),
    ("Ctrl+_", "undo", None),
    ("Ctrl+G", "write in your editor", None),
    ("Alt+A", "decide on pending calls, answer a server, or continue to write", None),
    ("Ctrl+T", "look through the whole conversation", Some(Operation::History)),
    ("Ctrl+L", "redraw the screen", None),
    ("Ctrl+Z", "back to the shell; `fg` returns", None),
];

/// Lines in plain mode, their meanings, and the operation that they need.
const LINES: [(&str, &str, Option<Operation>); 8] = [
    ("any line", "send it; while a turn runs, steer it", None),
    ("a line that ends with \\", "is continued by the next one", None),
    ("@FILE", "name a file; an image goes with the message", Some(Operation::NamedImages)),
    ("!COMMAND", "run a command; the model sees it with your next message", Some(Operation::Shell)),
    ("yes, session, no, no WORDS", "decide on a call that waits", None),
    ("answer VALUE", "answer the question of a server", Some(Operation::ServerQuestions)),
    ("Ctrl+C", "interrupt the turn; twice, leave", None),
    ("Ctrl+D", "leave", None),
];

/// Meaning of Ctrl+C in a session that ends with the conversation.
const LEAVE: &str = "clear the input; twice, leave";

/// Meaning of Ctrl+C in a session that continues without the terminal.
const LEAVE_IT_RUNNING: &str = "clear the input; twice, leave: the session continues on the server";

impl Driver<'_> {
    /// Carries out a command.
    pub(super) fn call(&mut self, called: &CommandInvocation) {
        let CommandInvocation { command, arguments } = called;
        if let Some(needed) = operation(*command)
            && self.refuses(needed, &format!("/{}", name(*command)))
        {
            return;
        }
        let status = self.display.conversation.status.clone();
        let command = match command {
            Command::Agents => PortCommand::Report(Report::Agents),
            Command::Compact => PortCommand::Compact,
            Command::Config => PortCommand::Report(Report::Configuration),
            Command::Context => return self.answer(vec![reports::context(status.context)]),
            Command::Copy => PortCommand::ReadHistory,
            Command::Cost => return self.answer(vec![reports::cost(status.cost)]),
            Command::Diff => PortCommand::Report(Report::Changes),
            Command::Effort if arguments.is_empty() => {
                let effort = status.effort.unwrap_or_else(|| "the model's own".to_owned());
                return self.answer(vec![labelled("effort", effort)]);
            }
            Command::Effort => PortCommand::SetEffort(arguments.clone()),
            Command::Export => PortCommand::Export(arguments.clone()),
            Command::Fork => PortCommand::Switch(Switch::Fork(arguments.clone())),
            Command::Help => {
                let is_plain = self.display.conversation.is_plain();
                return self.answer(help(is_plain, self.port.capabilities()));
            }
            Command::Init => return self.submit(OutgoingMessage::text(INIT)),
            Command::Jobs => PortCommand::Report(Report::Jobs),
            Command::Login => return self.answer(reports::login()),
            Command::Memory => {
                let project = self.display.conversation.instructions().to_vec();
                PortCommand::Report(Report::Instructions { project })
            }
            Command::Mode if arguments.is_empty() => {
                return self.answer(vec![labelled("mode", status.mode)]);
            }
            Command::Mode => PortCommand::SetMode(arguments.clone()),
            Command::Model if arguments.is_empty() => {
                return self.answer(vec![labelled("model", status.model)]);
            }
            Command::Model => PortCommand::SetModel(arguments.clone()),
            Command::New => PortCommand::Switch(Switch::New),
            Command::Permissions => PortCommand::Report(Report::Rules),
            Command::Plan => return self.plan(arguments),
            Command::Quit => {
                self.next = Some(ConversationEnd::Leave);
                return;
            }
            Command::Resume if arguments.is_empty() => PortCommand::Report(Report::Sessions),
            Command::Resume => return self.resume(arguments),
            Command::Rewind => PortCommand::Switch(Switch::Rewind(arguments.clone())),
            Command::Sessions => PortCommand::Report(Report::Sessions),
            Command::Status => PortCommand::Report(Report::Status),
            Command::Theme => return self.set_theme(arguments),
            Command::Tools => PortCommand::Report(Report::Tools),
            Command::Undo => PortCommand::Switch(Switch::Undo),
        };
        self.request(Request::Other, command);
    }

    fn answer(&mut self, lines: impl IntoIterator<Item: Into<StyledLine>>) {
        self.display.conversation.answer(lines.into_iter().map(Into::into));
        self.display.draw_soon();
    }

    /// Switches to a session whose id starts with this prefix, if there is one.
    fn resume(&mut self, prefix: &str) {
        self.is_finding = true;
        self.request(Request::Find, PortCommand::Switch(Switch::Resume(prefix.to_owned())));
    }

    /// Requests a plan. Nothing changes until the user has accepted it.
    fn plan(&mut self, task: &str) {
        if task.is_empty() {
            return self.request(Request::Other, PortCommand::Plan(None));
        }
        let said = OutgoingMessage {
            instruction: Some(PLAN_FIRST),
            ..self.display.conversation.compose_message(task)
        };
        self.request(Request::Message(said.text.clone()), PortCommand::Plan(Some(said)));
    }

    fn set_theme(&mut self, theme: &str) {
        let background = match theme {
            "light" => Background::Light,
            "dark" => Background::Dark,
            _ => return self.display.hint("expected light or dark"),
        };
        self.display.set_background(background);
        self.answer(vec![labelled("theme", theme)]);
    }

    /// Copies the newest response to the clipboard, through the terminal.
    pub(super) fn copy(&mut self, history: &[Turn]) {
        let responses = history.iter().rev().filter(|turn| turn.kind == TurnKind::Assistant);
        let newest = responses.map(|turn| turn.item.text()).find(|text| !text.trim().is_empty());
        match newest {
            _ if self.display.conversation.is_plain() => {
                self.display.hint("a conversation in lines cannot copy");
            }
            Some(text) if text.len() > MAX_COPIED => self.display.hint(format!(
                "the last response has {}, and terminals take no more than {MAX_COPIED}: /export writes it to a file",
                plural(text.len() as u64, "byte")
            )),
            Some(text) => {
                self.display.copy(text);
                self.answer(vec![labelled("copy", "the last response was sent to the clipboard")]);
            }
            None => self.display.hint("there is no response to copy"),
        }
    }
}

/// Returns the operation that a command needs, or `None` if the terminal can carry it out alone.
fn operation(command: Command) -> Option<Operation> {
    Some(match command {
        Command::Agents | Command::Jobs => Operation::Background,
        Command::Compact => Operation::Compact,
        Command::Config | Command::Login | Command::Memory | Command::Permissions | Command::Tools => {
            Operation::Settings
        }
        Command::Context | Command::Cost | Command::Help | Command::Quit | Command::Theme => return None,
        Command::Copy => Operation::History,
        Command::Diff => Operation::Changes,
        Command::Effort => Operation::Effort,
        Command::Export => Operation::Export,
        Command::Fork | Command::New | Command::Resume | Command::Sessions => Operation::Switch,
        Command::Init => Operation::Submit,
        Command::Mode => Operation::Mode,
        Command::Model => Operation::Model,
        Command::Plan => Operation::Plan,
        Command::Rewind | Command::Undo => Operation::Rewind,
        Command::Status => Operation::Status,
    })
}

fn name(command: Command) -> &'static str {
    COMMANDS.iter().find(|(known, ..)| *known == command).map_or("", |(_, name, ..)| name)
}

fn help(is_plain: bool, capabilities: &Capabilities) -> Vec<StyledLine> {
    let is_offered =
        |needed: Option<Operation>| needed.is_none_or(|operation| capabilities.supports(operation));
    let keys: &[(&str, &str, Option<Operation>)] = if is_plain { &LINES } else { &KEYS };
    let leave = if capabilities.outlives_terminal { LEAVE_IT_RUNNING } else { LEAVE };
    let keys = keys.iter().filter(|(_, _, needed)| is_offered(*needed));
    let keys = keys.map(|(keys, meaning, _)| (format!("  {keys}"), (*meaning).to_owned()));
    let leave = (!is_plain).then(|| ("  Ctrl+C".to_owned(), leave.to_owned()));
    let commands = COMMANDS.iter().filter(|(command, ..)| is_offered(operation(*command)));
    let commands = commands.map(|(_, name, arguments, meaning)| {
        (format!("  /{name} {arguments}").trim_end().to_owned(), (*meaning).to_owned())
    });
    let row = |(names, meaning): (String, String)| {
        StyledLine::new(format!("{names:<34}"), Face::BOLD).and(meaning, Face::PLAIN)
    };
    keys.chain(leave).chain(commands).map(row).collect()
}
