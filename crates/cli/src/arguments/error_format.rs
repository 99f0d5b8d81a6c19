//! The shape in which JSON output reports a failure.

use std::ffi::OsString;

use super::{Command, OutputFormat};

/// Shape of the JSON object that reports a failure on standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ErrorFormat {
    /// The object's `type`.
    pub(crate) error_type: &'static str,
}

impl ErrorFormat {
    const DEFAULT: Self = Self { error_type: "error" };

    /// For `ask --output stream-json`, whose events are named as in the client specification.
    const ASK_STREAM: Self = Self { error_type: "ERROR" };

    /// Returns the format that an invalid command line requests.
    pub(crate) fn from_args(args: &[OsString]) -> Option<Self> {
        let mut args = args.iter().skip(1).map(|argument| argument.to_str().unwrap_or_default());
        let command = args.next()?;
        let args: Vec<&str> = args.take_while(|argument| *argument != "--").collect();
        let is_task_run = command == "task" && args.first() == Some(&"run");
        let separate = args.windows(2).filter_map(|pair| match pair {
            ["--output", value] => Some(*value),
            _ => None,
        });
        let joined = args.iter().filter_map(|argument| argument.strip_prefix("--output="));
        let value = separate.chain(joined).next()?;
        match (command, value) {
            ("ask", "stream-json") => Some(Self::ASK_STREAM),
            ("run" | "demo", "json" | "stream-json") | ("ask", "json") => Some(Self::DEFAULT),
            (_, "json" | "stream-json") if is_task_run => Some(Self::DEFAULT),
            _ => None,
        }
    }
}

impl Command {
    /// Returns the format for failures, or `None` if the output is text.
    pub(crate) fn error_format(&self) -> Option<ErrorFormat> {
        let output = match self {
            Self::Ask(args) if args.output == OutputFormat::StreamJson => {
                return Some(ErrorFormat::ASK_STREAM);
            }
            Self::Ask(args) => args.output,
            Self::Run(args) => args.output,
            #[cfg(feature = "task")]
            Self::Task(args) => args.command.session().map_or(OutputFormat::Text, |args| args.output),
            Self::Demo(args) => args.output,
            // These write either their complete output or nothing.
            Self::Chat(_)
            | Self::Tools(_)
            | Self::Models(_)
            | Self::Prompt(_)
            | Self::Sessions(_)
            | Self::Audit(_)
            | Self::Worktree(_)
            | Self::Approvals(_)
            | Self::Rules(_)
            | Self::Grants(_)
            | Self::Trust(_)
            | Self::Login(_)
            | Self::Logout(_)
            | Self::Config(_)
            | Self::Patch(_)
            | Self::Mock(_)
            | Self::Completions(_)
            | Self::Man(_)
            | Self::Doctor(_) => OutputFormat::Text,
            #[cfg(feature = "acp")]
            Self::Acp(_) => OutputFormat::Text,
            #[cfg(feature = "client")]
            Self::Attach(_) => OutputFormat::Text,
            #[cfg(feature = "server")]
            Self::Serve(_) | Self::Tokens(_) => OutputFormat::Text,
            #[cfg(feature = "mcp")]
            Self::Mcp(_) => OutputFormat::Text,
            #[cfg(feature = "task")]
            Self::Worker(_) => OutputFormat::Text,
            #[cfg(feature = "eval")]
            Self::Eval(_) => OutputFormat::Text,
        };
        (output != OutputFormat::Text).then_some(ErrorFormat::DEFAULT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_format_is_found_in_an_invalid_command_line() {
        let cases: [(&str, Option<ErrorFormat>); 11] = [
            ("run --output json --nonsense x", Some(ErrorFormat::DEFAULT)),
            ("run --max-turns many --output=stream-json x", Some(ErrorFormat::DEFAULT)),
            ("ask --output stream-json --nonsense", Some(ErrorFormat::ASK_STREAM)),
            ("ask --output json --nonsense", Some(ErrorFormat::DEFAULT)),
            ("task run --output json --nonsense x", Some(ErrorFormat::DEFAULT)),
            ("task report --output json", None),
            ("patch apply --output stream-json", None),
            ("run --output yaml", None),
            ("run --nonsense -- --output json", None),
            ("fly --output json", None),
            ("", None),
        ];
        for (line, expected) in cases {
            let args: Vec<OsString> =
                ["pintle"].into_iter().chain(line.split_whitespace()).map(OsString::from).collect();
            assert_eq!(ErrorFormat::from_args(&args), expected, "{line}");
        }
    }
}
