//! Words of a command line that are not options: the session to resume and the prompt.

use crate::command_line::{CommandWords, OptionError, unexpected};

/// Words in order that are neither options nor values of known options.
#[derive(Debug, Default)]
pub(super) struct Positionals {
    found: Vec<Positional>,
    is_resume: bool,
}

#[derive(Debug)]
struct Positional {
    text: String,
    /// Unknown option before the word, which may be its value.
    unknown: Option<String>,
}

/// Meaning of the words.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ResolvedPositionals {
    /// Id of the session to resume.
    pub(super) session: Option<String>,
    /// Prompt; `None` if it is on standard input.
    pub(super) prompt: Option<String>,
}

impl Positionals {
    /// Returns whether the command `resume` was read.
    pub(super) fn is_resume(&self) -> bool {
        self.is_resume
    }

    /// Adds a word that cannot be a value.
    pub(super) fn add(&mut self, text: String, words: &mut CommandWords) {
        if text == "resume" && !self.is_resume && self.find_argument().is_none() {
            self.is_resume = true;
            // The arguments of the command follow it.
            take_values(self.found.drain(..), words);
        } else {
            self.found.push(Positional { text, unknown: None });
        }
    }

    /// Adds the word after an unknown option.
    pub(super) fn add_after(&mut self, unknown: String, text: String) {
        self.found.push(Positional { text, unknown: Some(unknown) });
    }

    /// Returns the session, if the command needs one, and the prompt. A word after an unknown option is its value,
    /// unless there is no other session or prompt. Adds the warnings about these options.
    ///
    /// An error for a surplus word.
    pub(super) fn resolve(
        mut self,
        needs_session: bool,
        words: &mut CommandWords,
    ) -> Result<ResolvedPositionals, OptionError> {
        let mut meaning = ResolvedPositionals::default();
        if self.is_resume && needs_session && !self.found.is_empty() {
            let position = self.find_argument().unwrap_or_default();
            take_values(self.found.drain(..position), words);
            meaning.session = Some(take_argument(self.found.remove(0), words));
        }
        let prompt = self.find_argument().or_else(|| self.found.len().checked_sub(1));
        if let Some(position) = prompt {
            let text = take_argument(self.found.remove(position), words);
            meaning.prompt = Some(text).filter(|text| text != "-");
        }
        if let Some(position) = self.find_argument() {
            return Err(unexpected(&self.found.remove(position).text));
        }
        take_values(self.found.into_iter(), words);
        Ok(meaning)
    }

    /// Returns the position of the first word that cannot be a value.
    fn find_argument(&self) -> Option<usize> {
        self.found.iter().position(|positional| positional.unknown.is_none())
    }
}

/// Reads a word as an argument.
fn take_argument(positional: Positional, words: &mut CommandWords) -> String {
    let Positional { text, unknown } = positional;
    if let Some(option) = unknown {
        words.warn_without_value(&option, &text);
    }
    text
}

/// Reads words as values of the unknown options before them.
fn take_values(positionals: impl Iterator<Item = Positional>, words: &mut CommandWords) {
    for Positional { text, unknown } in positionals {
        if let Some(option) = unknown {
            words.warn_unknown(&option, Some(&text));
        }
    }
}
