//! Commands of a conversation that is attached to a server.

use pintle_client::SettingsChange;

use super::driver::{Attached, Done};
use crate::render::{Face, Line, sanitize};
use crate::reports::{self, labelled};
use crate::terminal::commands::{COMMANDS, Called, Command};

/// Commands that a client can carry out. It refuses the other commands: they are about files, rules or settings of the
/// server's machine, or start another session.
const OFFERED: [Command; 9] = [
    Command::Compact,
    Command::Context,
    Command::Cost,
    Command::Effort,
    Command::Help,
    Command::Mode,
    Command::Model,
    Command::Quit,
    Command::Status,
];

/// Keys and their meanings.
const KEYS: [(&str, &str); 9] = [
    ("Enter", "send; while a turn runs, steer it"),
    ("Tab, Alt+Enter", "queue for the end of the turn"),
    ("Esc", "interrupt the turn; the conversation stays"),
    ("Ctrl+J, Shift+Enter", "begin another line"),
    ("Up, Down, Ctrl+R", "input history, step by step or searched"),
    ("Ctrl+V", "paste the image on the clipboard"),
    ("Ctrl+G", "write in your editor"),
    ("Alt+A", "decide on calls that wait, or write on"),
    ("Ctrl+C", "clear the input; twice, leave: the session continues on the server"),
];

impl Attached<'_> {
    /// Carries out a command.
    pub(super) fn call(&mut self, called: &Called) {
        let Called { command, arguments } = called;
        let status = &self.display.conversation.status;
        #[expect(clippy::wildcard_enum_match_arm, reason = "the others are not available from afar")]
        let lines = match command {
            Command::Compact => {
                let (client, id) = (self.client.clone(), self.id.clone());
                self.begin(async move {
                    Done::Called(
                        client.compact(&id).await.map(|()| Vec::new()).map_err(|error| error.to_string()),
                    )
                });
                return;
            }
            Command::Context => vec![reports::context(status.context)],
            Command::Cost => vec![reports::cost(status.cost)],
            Command::Effort if arguments.is_empty() => {
                vec![labelled(
                    "effort",
                    status.effort.clone().unwrap_or_else(|| "default of the model".to_owned()),
                )]
            }
            Command::Mode if arguments.is_empty() => vec![labelled("mode", status.mode.clone())],
            Command::Model if arguments.is_empty() => vec![labelled("model", status.model.clone())],
            Command::Effort => {
                return self
                    .set(SettingsChange { effort: Some(arguments.clone()), ..SettingsChange::default() });
            }
            Command::Mode => {
                return self
                    .set(SettingsChange { mode: Some(arguments.clone()), ..SettingsChange::default() });
            }
            Command::Model => {
                return self
                    .set(SettingsChange { model: Some(arguments.clone()), ..SettingsChange::default() });
            }
            Command::Help => help(),
            Command::Quit => return self.leave(),
            Command::Status => vec![
                labelled("session", self.id.to_string()),
                labelled("directory", sanitize(&self.directory)),
                labelled("model", status.model.clone()),
                labelled("mode", status.mode.clone()),
            ],
            _ => return self.refuse(&format!("/{}", name(*command))),
        };
        self.done(Done::Called(Ok(lines)));
    }

    /// Reports that something is not available while attached.
    pub(super) fn refuse(&mut self, what: &str) {
        let problem = format!("{what} is not available while attached to a server");
        self.done(Done::Called(Err(problem)));
    }

    fn set(&mut self, change: SettingsChange) {
        let (client, id) = (self.client.clone(), self.id.clone());
        self.begin(async move {
            match client.change_session(&id, &change).await {
                Ok(session) => Done::Seen(Box::new(session)),
                Err(error) => Done::Called(Err(error.to_string())),
            }
        });
    }
}

fn name(command: Command) -> &'static str {
    COMMANDS.iter().find(|(known, ..)| *known == command).map_or("", |(_, name, ..)| name)
}

fn help() -> Vec<Line> {
    let keys = KEYS.iter().map(|(keys, meaning)| (format!("  {keys}"), (*meaning).to_owned()));
    let offered = COMMANDS.iter().filter(|(command, ..)| OFFERED.contains(command));
    let commands = offered.map(|(_, name, arguments, meaning)| {
        (format!("  /{name} {arguments}").trim_end().to_owned(), (*meaning).to_owned())
    });
    let row = |(names, meaning): (String, String)| {
        Line::new(format!("{names:<34}"), Face::BOLD).and(meaning, Face::PLAIN)
    };
    keys.chain(commands).map(row).collect()
}
