//! Commands that start with a slash, in a terminal or an editor.

/// Command of the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// List the subagents.
    Agents,
    /// Summarize the older part of the conversation.
    Compact,
    /// Show the configuration and its sources.
    Config,
    /// Show how full the context window is.
    Context,
    /// Copy the last response to the clipboard.
    Copy,
    /// Show tokens and cost.
    Cost,
    /// Show the changes of the session.
    Diff,
    /// Show or set the reasoning effort.
    Effort,
    /// Write the conversation to a file.
    Export,
    /// Continue in a new session with this history.
    Fork,
    /// List keys and commands.
    Help,
    /// Have the instructions of the project written.
    Init,
    /// List the commands that run in the background.
    Jobs,
    /// Explain how a key is stored.
    Login,
    /// Show the files of instructions.
    Memory,
    /// Show or set the mode.
    Mode,
    /// Show or set the model.
    Model,
    /// Start a new session.
    New,
    /// List the rules of the session.
    Permissions,
    /// Request a plan.
    Plan,
    /// Leave the conversation.
    Quit,
    /// Resume another session.
    Resume,
    /// Rewind conversation and files.
    Rewind,
    /// List the sessions of the directory.
    Sessions,
    /// Show the session, its directory and its sandbox.
    Status,
    /// Choose colours for a background.
    Theme,
    /// List the tools of the model.
    Tools,
    /// Rewind to before the newest input.
    Undo,
}

/// Command with its arguments, as typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandInvocation {
    /// The command.
    pub command: Command,
    /// Its arguments. Empty without arguments.
    pub arguments: String,
}

/// Names, arguments and meanings of all commands, by name.
pub const COMMANDS: [(Command, &str, &str, &str); 28] = [
    (Command::Agents, "agents", "", "list the subagents of the session"),
    (Command::Compact, "compact", "", "summarize the older part of the conversation"),
    (Command::Config, "config", "", "show the configuration and its sources"),
    (Command::Context, "context", "", "show how full the context window is"),
    (Command::Copy, "copy", "", "copy the last response to the clipboard"),
    (Command::Cost, "cost", "", "show tokens and cost"),
    (Command::Diff, "diff", "", "show the session's changes in its directory"),
    (Command::Effort, "effort", "[LEVEL]", "show or set the reasoning effort"),
    (Command::Export, "export", "[FILE]", "write the conversation to a file: .md, .html or .jsonl"),
    (Command::Fork, "fork", "[N]", "continue in a new session with this history, or its first N entries"),
    (Command::Help, "help", "", "list keys and commands"),
    (Command::Init, "init", "", "have the instructions of the project written, in AGENTS.md"),
    (Command::Jobs, "jobs", "", "list the commands that run in the background"),
    (Command::Login, "login", "", "say how a key is stored"),
    (Command::Memory, "memory", "", "show the files of instructions; a line with # adds to one"),
    (Command::Mode, "mode", "[plan|ask|edit|auto]", "show or set what needs approval"),
    (Command::Model, "model", "[NAME]", "show or set the model"),
    (Command::New, "new", "", "begin a new session; this one is kept"),
    (Command::Permissions, "permissions", "", "list the rules of this session"),
    (Command::Plan, "plan", "[TASK]", "have a plan made and accept it before anything changes"),
    (Command::Quit, "quit", "", "leave; the session is kept"),
    (Command::Resume, "resume", "[ID]", "resume another session of this directory"),
    (Command::Rewind, "rewind", "[N [now]]", "go back to before an input: conversation and files"),
    (Command::Sessions, "sessions", "", "list the sessions of this directory"),
    (Command::Status, "status", "", "show the session, its directory and its sandbox"),
    (Command::Theme, "theme", "light|dark", "choose colours for the background of the terminal"),
    (Command::Tools, "tools", "", "list the tools that the model has"),
    (Command::Undo, "undo", "", "go back to before the newest input, which can be edited"),
];

impl CommandInvocation {
    /// Parses a line that starts with a slash.
    ///
    /// The error is a message with the nearest name, or with all names that start with the given name.
    pub fn parse(line: &str) -> Result<Self, String> {
        let (name, arguments) = split(line);
        let arguments = arguments.to_owned();
        let known = COMMANDS.iter().find(|(_, known, ..)| *known == name);
        if let Some((command, _, expected, _)) = known {
            if expected.is_empty() && !arguments.is_empty() {
                return Err(format!("/{name} takes no arguments"));
            }
            return Ok(Self { command: *command, arguments });
        }
        let beginning: Vec<String> =
            by_prefix(name).filter(|_| !name.is_empty()).map(|(name, _)| format!("/{name}")).collect();
        if beginning.len() > 1 {
            let choices = beginning.join(", ");
            return Err(format!("more than one command begins with /{name}: {choices}"));
        }
        let distance =
            |(_, known, ..): &&(Command, &'static str, &str, &str)| strsim::levenshtein(known, name);
        let nearest = COMMANDS.iter().min_by_key(distance).map_or("help", |(_, known, ..)| *known);
        Err(match strsim::levenshtein(nearest, name) {
            0..=2 => format!("there is no command /{name}: did you mean /{nearest}?"),
            _ => format!("there is no command /{name}: /help lists them"),
        })
    }
}

/// Returns whether a command has this name.
pub fn is_known(name: &str) -> bool {
    COMMANDS.iter().any(|(_, known, ..)| *known == name)
}

/// Splits a line that starts with a slash into the name of a command and its arguments.
pub fn split(line: &str) -> (&str, &str) {
    let line = line.trim().trim_start_matches('/');
    let (name, arguments) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    (name, arguments.trim())
}

/// Returns the names of the commands that start with a prefix, with their meanings.
pub fn by_prefix(prefix: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let matching = COMMANDS.iter().filter(move |(_, name, ..)| name.starts_with(prefix));
    matching.map(|(_, name, _, meaning)| (*name, *meaning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_parsed() {
        let parsed =
            |line: &str| CommandInvocation::parse(line).map(|called| (called.command, called.arguments));
        let cases = [
            ("/help", Ok((Command::Help, String::new()))),
            ("/mode  edit ", Ok((Command::Mode, "edit".to_owned()))),
            ("/help me", Err("/help takes no arguments".to_owned())),
            ("/hepl", Err("there is no command /hepl: did you mean /help?".to_owned())),
            ("/r", Err("more than one command begins with /r: /resume, /rewind".to_owned())),
            ("/con now", Err("more than one command begins with /con: /config, /context".to_owned())),
            ("/", Err("there is no command /: /help lists them".to_owned())),
            ("/frobnicate", Err("there is no command /frobnicate: /help lists them".to_owned())),
        ];
        for (line, expected) in cases {
            assert_eq!(parsed(line), expected, "{line}");
        }
        assert!(COMMANDS.is_sorted_by_key(|(_, name, ..)| *name));
    }
}
