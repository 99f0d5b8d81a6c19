//! Search for the command of a pattern in a line.

use std::borrow::Cow;
use std::cell::Cell;

use super::computed::is_computed;
use super::pattern::CommandPattern;
use super::programs::{self, base_name};
use super::scanner::DATA;
use crate::gate::Permission;

/// Maximum number of bytes that a search in one line compares. Each word that may be the program of the pattern costs
/// the length of its command.
const MAX_COMPARED: usize = 4 << 20;

/// How a line contains the command of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CommandMention {
    /// The line runs the command.
    Command,
    /// An argument of a program contains the command, and the program may run it.
    Argument {
        /// Name of the program.
        program: String,
    },
    /// The input of a program contains the command, and the program may run it.
    Input {
        /// Name of the program.
        program: String,
    },
    /// A program reads the command as a text, and another program may run the output.
    Text {
        /// Name of the program that reads the text.
        program: String,
    },
    /// A variable contains the command.
    Variable,
    /// The shell computes the name of a program.
    ComputedProgram,
    /// The shell computes arguments of the program.
    ComputedWords,
    /// The line is nested too deeply or has too many words to be searched.
    TooComplex,
}

impl CommandMention {
    pub(super) fn of_argument(words: &[String]) -> Self {
        let program = programs::program_name(words);
        if program.is_empty() || program == DATA {
            Self::Variable
        } else if programs::has_text_arguments(words) {
            Self::Text { program }
        } else {
            Self::Argument { program }
        }
    }

    pub(super) fn of_input(words: &[String]) -> Self {
        let mention = Self::of_argument(words);
        if let Self::Argument { program } = mention { Self::Input { program } } else { mention }
    }

    /// Returns the reason why a rule with this permission may apply; `None` if the line runs the command.
    #[must_use]
    pub fn explanation(&self, permission: Permission) -> Option<String> {
        let command =
            if permission == Permission::Deny { "the denied command" } else { "the command of the rule" };
        Some(match self {
            Self::Command => return None,
            Self::Argument { program } => {
                format!("an argument of `{program}` contains {command}, and `{program}` may run it")
            }
            Self::Input { program } => {
                format!("the input of `{program}` contains {command}, and `{program}` may run it")
            }
            Self::Text { program } => format!(
                "an argument or the input of `{program}` contains {command}, and another command of the line may run the output"
            ),
            Self::Variable => format!("a variable contains {command}, and a later command may run it"),
            Self::ComputedProgram => format!(
                "the name of the program is computed by the shell, and may be {command}; write the name out, so that the rule is applied to it as written"
            ),
            Self::ComputedWords => format!(
                "the shell computes words, which may make it {command}; write the words out, or quote a value as in `git -C \"$dir\" log`"
            ),
            Self::TooComplex => {
                "the line is nested too deeply or has too many words to be searched; split it".to_owned()
            }
        })
    }
}

/// Number of bytes that a search may still compare.
#[derive(Debug)]
pub(super) struct SearchBudget(Cell<usize>);

impl SearchBudget {
    pub(super) fn new() -> Self {
        Self(Cell::new(MAX_COMPARED))
    }

    /// Subtracts a number of bytes. Returns whether as many were left.
    fn take(&self, bytes: usize) -> bool {
        let left = self.0.get().checked_sub(bytes);
        self.0.set(left.unwrap_or_default());
        left.is_some()
    }
}

/// Returns how the pattern matches, starting at any word of a command, or only at its program if the other words are
/// texts.
pub(super) fn mention_in(
    command: &[String],
    is_text: bool,
    pattern: &CommandPattern,
    is_aliased: bool,
    budget: &SearchBudget,
) -> Option<CommandMention> {
    let words = programs::with_inputs_marked(command);
    let size: usize = words.iter().map(|word| word.len() + 1).sum();
    let end = if is_text { programs::program_index(&words) + 1 } else { words.len() };
    let mut found = None;
    for (from, word) in words.iter().enumerate().take(end) {
        // Most words name other programs.
        if !programs::named_programs(word).any(|program| pattern.may_be_about(program)) {
            continue;
        }
        if !budget.take(size) {
            return Some(CommandMention::TooComplex);
        }
        let (before, rest) = words.split_at(from);
        let Some(is_literal) = match_at(before, rest, pattern, is_aliased) else { continue };
        let mention = mention_at(command, from, before, is_literal);
        if mention == CommandMention::Command {
            return Some(mention);
        }
        found = found.or(Some(mention));
    }
    found
}

/// Returns whether a match of `rest`, which follows the words `before`, needs no computed words; `None` without a
/// match.
fn match_at(before: &[String], rest: &[String], pattern: &CommandPattern, is_aliased: bool) -> Option<bool> {
    let rest = as_command(before, rest)?;
    if pattern.matches_anywhere(&rest) {
        return Some(pattern.matches_literally(&rest));
    }
    let rest = programs::without_global_options(&rest, before, is_aliased)?;
    pattern.matches_anywhere(&rest).then(|| pattern.matches_literally(&rest))
}

fn mention_at(command: &[String], from: usize, before: &[String], is_literal: bool) -> CommandMention {
    let matched = command.get(from..).unwrap_or_default();
    if !is_literal && matched.iter().any(|word| is_computed(word)) {
        let is_program = matched.first().is_some_and(|first| is_computed(base_name(first)));
        return if is_program { CommandMention::ComputedProgram } else { CommandMention::ComputedWords };
    }
    if programs::is_program_position(before) {
        CommandMention::Command
    } else {
        CommandMention::of_argument(command)
    }
}

/// Returns `words`, which follow the words `before`, as a command; `None` if the first word is computed and not a
/// program.
fn as_command<'a>(before: &[String], words: &'a [String]) -> Option<Cow<'a, [String]>> {
    let (first, rest) = words.split_first()?;
    let name = base_name(first);
    if !is_computed(first) {
        Some(Cow::Borrowed(words))
    } else if is_computed(name) {
        let is_program = !programs::is_assignment(first) && programs::is_program_position(before);
        is_program.then_some(Cow::Borrowed(words))
    } else {
        // As in `$HOME/bin/tool`.
        Some(std::iter::once(name.to_owned()).chain(rest.iter().cloned()).collect())
    }
}
