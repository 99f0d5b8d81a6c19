//! Redirections, here-documents and here-strings.

use super::state::{Input, Redirection};
use super::{Content, HARMLESS, ScannedInput, Scanner};
use crate::gate::command::computed::PART;
use crate::gate::command::programs::{self, base_name};

/// Files whose content other commands cannot read.
const OUTPUTS: [&str; 4] = ["/dev/null", "/dev/stderr", "/dev/stdout", "/dev/tty"];

/// Numbers of standard output and standard error, and the sign that closes a file.
const STREAMS: [&str; 3] = ["1", "2", "-"];

impl Scanner<'_> {
    /// Skips a redirection that changes no file, if it is a separate word.
    pub(super) fn skip_harmless(&mut self) -> bool {
        if self.current.word.is_some() || self.is_quoted {
            return false;
        }
        for harmless in HARMLESS {
            let before = self.rest.clone();
            if self.skip(harmless) {
                if self.rest.peek().is_none_or(|next| " \t\n;|&".contains(*next)) {
                    return true;
                }
                self.rest = before;
            }
        }
        false
    }

    pub(super) fn redirection(&mut self, character: char) {
        self.is_plain = false;
        if self.rest.next_if_eq(&'(').is_some() {
            return self.open(')', PART, Content::Commands);
        }
        let is_number = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
        if self.current.word.as_deref().is_some_and(is_number) {
            self.current.word = None;
        }
        self.end_word();
        let is_input = character == '<';
        let redirection = if is_input && self.skip("<<") {
            Redirection::HereString
        } else if is_input && self.skip("<-") {
            Redirection::HereDocument { strips_tabs: true }
        } else if is_input && self.skip("<") {
            Redirection::HereDocument { strips_tabs: false }
        } else {
            let operator = self.rest.next_if(|next| matches!(next, '>' | '&' | '|'));
            if is_input && operator != Some('>') {
                Redirection::Input
            } else {
                Redirection::Output { is_duplicate: operator == Some('&') }
            }
        };
        self.current.redirection = Some(redirection);
    }

    /// Uses a word as the target of a redirection.
    pub(super) fn redirect(&mut self, redirection: Redirection, word: String, has_quotes: bool) {
        let owner = self.current.connections.id;
        match redirection {
            Redirection::Input => {}
            Redirection::Output { is_duplicate } => {
                let harmless: &[&str] = if is_duplicate { &STREAMS } else { &OUTPUTS };
                let writes_file = !harmless.contains(&word.as_str());
                self.current.connections.writes_file |= writes_file;
                self.has_connections |= writes_file;
            }
            Redirection::HereString => self.pending.push(Input::Text { text: word, owner }),
            Redirection::HereDocument { strips_tabs } => {
                let is_literal = has_quotes;
                self.pending.push(Input::Document { end: word, strips_tabs, is_literal, owner });
            }
        }
    }

    /// Reads the documents that start here, and adds the inputs of the line that ends.
    pub(super) fn take_inputs(&mut self) {
        let commands = self.commands.get(self.line_start..).unwrap_or_default();
        let mut words = commands.iter().flat_map(|command| &command.words);
        let content = if words.any(|word| programs::is_shell(base_name(word))) {
            Content::Commands
        } else {
            Content::Data
        };
        for input in std::mem::take(&mut self.pending) {
            let (text, owner, is_literal) = match input {
                // Its substitutions have been read as commands.
                Input::Text { text, owner } => (text, owner, true),
                Input::Document { end, strips_tabs, is_literal, owner } => {
                    (self.document(&end, strips_tabs), owner, is_literal)
                }
            };
            let may_compute = !is_literal && ["$(", "${", "`"].iter().any(|start| text.contains(start));
            self.inputs.push(ScannedInput { text, content, owner, may_compute });
        }
        self.line_start = self.commands.len();
    }

    fn document(&mut self, end: &str, strips_tabs: bool) -> String {
        let mut text = String::new();
        while self.rest.peek().is_some() {
            let line: String = self.rest.by_ref().take_while(|character| *character != '\n').collect();
            let compared = if strips_tabs { line.trim_start_matches('\t') } else { &line };
            if compared == end {
                break;
            }
            text.push_str(&line);
            text.push('\n');
        }
        text
    }
}
