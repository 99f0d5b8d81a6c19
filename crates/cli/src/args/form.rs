//! How programs that read the output learn of a failure.

use std::ffi::OsString;

use super::{Command, OutputFormat};

/// Objects on standard output, of which a failure is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    /// The `type` of the object that tells of a failure.
    pub(crate) error_type: &'static str,
}

impl Form {
    /// The form of all streams but one.
    const USUAL: Self = Self { error_type: "error" };

    /// The form of a stream of `ask`, whose events have the names of the client specification.
    const OF_ANSWER: Self = Self { error_type: "ERROR" };

    /// Returns the form that a refused command line asks for.
    pub(super) fn of_refused(given: &[OsString]) -> Option<Self> {
        let mut given = given.iter().skip(1).map(|argument| argument.to_str().unwrap_or_default());
        let command = given.next()?;
        let given: Vec<&str> = given.take_while(|argument| *argument != "--").collect();
        let separate = given.windows(2).filter_map(|pair| match pair {
            ["--output", value] => Some(*value),
            _ => None,
        });
        let joined = given.iter().filter_map(|argument| argument.strip_prefix("--output="));
        let value = separate.chain(joined).next()?;
        match (command, value) {
            ("ask", "stream-json") => Some(Self::OF_ANSWER),
            ("run" | "demo", "json" | "stream-json") | ("ask", "json") => Some(Self::USUAL),
            _ => None,
        }
    }
}

impl Command {
    /// Returns the form in which it reports a failure to programs; `None` if a person reads its output.
    pub(crate) fn form(&self) -> Option<Form> {
        let output = match self {
            Self::Ask(args) if args.output == OutputFormat::StreamJson => return Some(Form::OF_ANSWER),
            Self::Ask(args) => args.output,
            Self::Run(args) => args.output,
            Self::Demo(args) => args.output,
            // They tell of no run and of no answer: nothing is written unless all of it can be.
            Self::Tools(_)
            | Self::Models(_)
            | Self::Prompt(_)
            | Self::Patch(_)
            | Self::Mock(_)
            | Self::Completions(_) => OutputFormat::Text,
        };
        (output != OutputFormat::Text).then_some(Form::USUAL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_command_line_may_still_say_its_form() {
        let rows: [(&str, Option<Form>); 9] = [
            ("run --output json --nonsense x", Some(Form::USUAL)),
            ("run --max-turns many --output=stream-json x", Some(Form::USUAL)),
            ("ask --output stream-json --nonsense", Some(Form::OF_ANSWER)),
            ("ask --output json --nonsense", Some(Form::USUAL)),
            ("patch apply --output stream-json", None),
            ("run --output yaml", None),
            ("run --nonsense -- --output json", None),
            ("fly --output json", None),
            ("", None),
        ];
        for (line, expected) in rows {
            let given: Vec<OsString> =
                ["pintle"].into_iter().chain(line.split_whitespace()).map(OsString::from).collect();
            assert_eq!(Form::of_refused(&given), expected, "{line}");
        }
    }
}
