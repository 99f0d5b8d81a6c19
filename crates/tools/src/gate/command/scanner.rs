//! A scanner that splits shell lines into commands, with the precision that rules need.

mod braces;
mod escapes;
mod groups;
mod redirections;
mod state;

use std::iter::Peekable;
use std::str::Chars;

pub(super) use self::state::Connections;
use self::state::{Command, Frame, Input};
use super::computed::{EACH, PART, SPLIT};
use super::programs;

/// Characters that the shell does not take literally, besides separators and quotes.
const EXPANDED: &[char] = &['$', '`', '(', ')', '{', '}', '<', '>', '*', '?', '[', ']'];

/// Redirections that change no file.
const HARMLESS: [&str; 3] = ["2>&1", "2>/dev/null", ">/dev/null"];

/// Maximum number of open braces, brackets and substitutions that are distinguished.
const MAX_FRAMES: usize = 200;

/// Maximum number of characters after `${` that are searched for its end.
const MAX_PARAMETER: usize = 256;

/// Words of compound commands.
const COMPOUND: [&str; 13] =
    ["case", "do", "done", "elif", "else", "esac", "fi", "for", "if", "select", "then", "until", "while"];

/// Words that start the definition of a function or a process with a pipe.
const DEFINING: [&str; 2] = ["coproc", "function"];

/// Word before words that are not a command, so that none of them counts as a program that the shell computes.
pub(super) const DATA: &str = ":";

/// A line, split into commands.
#[derive(Debug)]
pub(super) struct ScannedLine {
    pub(super) commands: Vec<ScannedCommand>,
    /// Whether exactly these words will run.
    pub(super) is_plain: bool,
    /// Here-documents and here-strings.
    pub(super) inputs: Vec<ScannedInput>,
    /// Whether the connections of its commands are known.
    pub(super) has_known_connections: bool,
    /// Whether it is nested too deeply, so that commands of inner substitutions are words of outer ones.
    pub(super) is_cut: bool,
}

/// Command of a line.
#[derive(Debug)]
pub(super) struct ScannedCommand {
    /// The words without quotes. Computed parts are represented as in the module `computed`.
    pub(super) words: Vec<String>,
    /// The words of a shell that expands no braces, such as dash, if they differ.
    pub(super) unexpanded: Option<Vec<String>>,
    pub(super) connections: Connections,
}

impl ScannedCommand {
    /// Returns the words as each kind of shell reads them.
    pub(super) fn readings(&self) -> impl Iterator<Item = &[String]> {
        std::iter::once(self.words.as_slice()).chain(self.unexpanded.as_deref())
    }
}

/// Input of a command.
#[derive(Debug)]
pub(super) struct ScannedInput {
    pub(super) text: String,
    pub(super) content: Content,
    /// Number of the command.
    pub(super) owner: usize,
    /// Whether the shell may run commands in it.
    pub(super) may_compute: bool,
}

/// Meaning of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    Commands,
    /// Arithmetic, parameters, elements of arrays, or a text that no known shell runs.
    Data,
    /// Patterns of `case`, up to a parenthesis.
    Patterns,
    /// A test in `[[`.
    Test,
}

/// Splits a line. This never fails.
pub(super) fn scan(line: &str, content: Content) -> ScannedLine {
    let mut scanner = Scanner {
        rest: line.chars().peekable(),
        commands: Vec::new(),
        current: Command::new(content, Connections::new(0, None)),
        frames: Vec::new(),
        is_quoted: false,
        is_plain: true,
        pending: Vec::new(),
        inputs: Vec::new(),
        line_start: 0,
        last_id: 0,
        is_compound: false,
        defines_functions: false,
        is_cut: false,
        has_connections: false,
    };
    while scanner.skip_harmless() || scanner.step() {}
    scanner.finish()
}

#[derive(Debug)]
struct Scanner<'a> {
    rest: Peekable<Chars<'a>>,
    commands: Vec<ScannedCommand>,
    current: Command,
    frames: Vec<Frame>,
    /// Whether the position is within double quotes.
    is_quoted: bool,
    is_plain: bool,
    pending: Vec<Input>,
    inputs: Vec<ScannedInput>,
    /// Number of commands before the current line.
    line_start: usize,
    /// Highest number of a command.
    last_id: usize,
    /// Whether a command consists of other commands.
    is_compound: bool,
    defines_functions: bool,
    /// Whether the line is nested too deeply.
    is_cut: bool,
    /// Whether the output of a command may be the input of another one.
    has_connections: bool,
}

impl Scanner<'_> {
    fn step(&mut self) -> bool {
        let Some(character) = self.rest.next() else { return false };
        if self.is_quoted {
            self.quoted(character);
            return true;
        }
        match character {
            ' ' | '\t' => self.end_word(),
            '\n' => {
                self.end_command();
                self.take_inputs();
            }
            ';' => self.semicolon(),
            '|' if self.rest.next_if_eq(&'|').is_some() => self.end_command(),
            '|' => self.pipe(),
            '&' if self.rest.next_if_eq(&'>').is_some() => self.redirection('>'),
            '&' => {
                self.is_plain &= self.rest.next_if_eq(&'&').is_some();
                self.end_command();
            }
            '\'' => self.single_quoted(),
            '"' => self.open_quotes(),
            '\\' => self.escaped(),
            '$' => self.dollar(),
            '`' => self.backtick(),
            '(' => self.open_parenthesis(),
            ')' => self.close_parenthesis(),
            '{' => self.open_brace(),
            '}' => self.close_brace(),
            '[' => self.open_group('['),
            ']' => self.close_bracket(),
            '<' | '>' => self.redirection(character),
            '#' if self.current.word.is_none() && !self.is_in_parameter() => self.comment(),
            '~' if self.current.word.is_none() => {
                self.is_plain = false;
                self.push(character);
            }
            '*' | '?' => {
                self.is_plain = false;
                self.push(EACH);
            }
            other => {
                self.is_plain &= !EXPANDED.contains(&other) && !other.is_control();
                self.push(other);
            }
        }
        true
    }

    /// Skips a text if it is next.
    fn skip(&mut self, text: &str) -> bool {
        let mut ahead = self.rest.clone();
        let is_there = text.chars().all(|expected| ahead.next() == Some(expected));
        if is_there {
            self.rest = ahead;
        }
        is_there
    }

    /// Skips to the end of the line. Quotes have no meaning in a comment.
    fn comment(&mut self) {
        while self.rest.next_if(|character| *character != '\n').is_some() {}
    }

    fn semicolon(&mut self) {
        self.end_command();
        if self.rest.next_if(|next| matches!(next, ';' | '&')).is_some() {
            self.is_plain = false;
            if self.current.content == Content::Commands {
                self.current.content = Content::Patterns;
            }
        }
    }

    fn single_quoted(&mut self) {
        self.start_quotes();
        loop {
            match self.rest.next() {
                Some('\'') => return,
                Some(character) => self.push(character),
                None => break,
            }
        }
        self.is_plain = false;
    }

    fn open_quotes(&mut self) {
        self.start_quotes();
        self.is_quoted = true;
    }

    fn start_quotes(&mut self) {
        self.current.word.get_or_insert_default();
        self.current.has_quotes = true;
    }

    fn quoted(&mut self, character: char) {
        match character {
            '"' => self.is_quoted = false,
            '\\' => match self.rest.next() {
                Some('\n') => {}
                Some(character @ ('"' | '\\' | '$' | '`')) => self.push(character),
                Some(character) => {
                    self.push('\\');
                    self.push(character);
                }
                None => self.is_plain = false,
            },
            '$' => {
                self.is_plain = false;
                self.expansion();
            }
            '`' => self.backtick(),
            other => self.push(other),
        }
    }

    fn escaped(&mut self) {
        match self.rest.next() {
            // The line continues.
            Some('\n') => {}
            Some(character) => {
                self.start_quotes();
                self.push(character);
            }
            None => self.is_plain = false,
        }
    }

    /// Reads the text after a `$` outside of quotes.
    fn dollar(&mut self) {
        self.is_plain = false;
        if self.rest.next_if_eq(&'\'').is_some() {
            let text = escapes::decode(&mut self.rest);
            self.start_quotes();
            self.current.word.get_or_insert_default().push_str(&text);
        } else if self.rest.next_if_eq(&'"').is_some() {
            self.open_quotes();
        } else if self.skip("{IFS}") || self.skip_variable("IFS") {
            self.end_word();
        } else {
            self.expansion();
        }
    }

    /// Skips the name of a variable if it is next.
    fn skip_variable(&mut self, name: &str) -> bool {
        let before = self.rest.clone();
        let is_there = self.skip(name) && !self.rest.peek().is_some_and(|next| is_name_character(*next));
        if !is_there {
            self.rest = before;
        }
        is_there
    }

    /// Reads the text after a `$`.
    fn expansion(&mut self) {
        let computed = if self.is_quoted { PART } else { SPLIT };
        match self.rest.peek().copied() {
            Some('(') => {
                self.rest.next();
                let is_arithmetic = self.rest.peek() == Some(&'(');
                self.open(')', computed, if is_arithmetic { Content::Data } else { Content::Commands });
            }
            Some('{') => {
                self.rest.next();
                let is_list = self.may_be_list();
                self.open('}', if is_list { SPLIT } else { computed }, Content::Data);
            }
            Some('@') => {
                self.rest.next();
                self.push(SPLIT);
            }
            Some(next) if next.is_ascii_digit() || "*#?$!-".contains(next) => {
                self.rest.next();
                self.push(computed);
            }
            Some(next) if is_name_character(next) => {
                while self.rest.next_if(|next| is_name_character(*next)).is_some() {}
                self.push(computed);
            }
            Some(_) | None => self.push('$'),
        }
    }

    /// Returns whether a parameter may be several words, as in `"${words[@]}"`. True if its end is too far away.
    fn may_be_list(&self) -> bool {
        let mut ahead = self.rest.clone().take(MAX_PARAMETER);
        ahead.find(|next| matches!(next, '}' | '@')) != Some('}')
    }

    /// Starts a substitution, whose result is part of the current word.
    fn open(&mut self, end: char, computed: char, content: Content) {
        self.has_connections |= content == Content::Commands;
        if self.frames.len() >= MAX_FRAMES {
            // Its commands become words of the command around it.
            self.is_cut = true;
            return self.push(SPLIT);
        }
        let connections = Connections::new(self.next_id(), Some(self.current.connections.id));
        let outer = std::mem::replace(&mut self.current, Command::new(content, connections));
        let is_quoted = std::mem::take(&mut self.is_quoted);
        self.frames.push(Frame::Substitution { outer, is_quoted, end, computed });
    }

    /// Returns to the word of a substitution.
    fn resume(&mut self, outer: Command, is_quoted: bool, computed: char) {
        self.current = outer;
        self.is_quoted = is_quoted;
        self.push(computed);
    }

    fn backtick(&mut self) {
        self.is_plain = false;
        let is_end = |frame: &Frame| matches!(frame, Frame::Substitution { end: '`', .. });
        if self.frames.iter().any(is_end) {
            self.close_to(Some('`'));
        } else {
            self.open('`', if self.is_quoted { PART } else { SPLIT }, Content::Commands);
        }
    }

    /// Ends all constructs up to the substitution with this end, or all if it is `None`.
    fn close_to(&mut self, last: Option<char>) {
        loop {
            self.end_command();
            match self.frames.pop() {
                Some(Frame::Substitution { outer, is_quoted, end, computed }) => {
                    self.resume(outer, is_quoted, computed);
                    if last == Some(end) {
                        return;
                    }
                }
                Some(Frame::Subshell { content }) => self.current.content = content,
                // The end of a word ends its groups.
                Some(Frame::Group { .. }) => {}
                None => return,
            }
        }
    }

    fn open_parenthesis(&mut self) {
        self.is_plain = false;
        let is_pattern =
            self.current.word.as_deref().is_some_and(|word| word.ends_with(['@', '+', '!', EACH]));
        if !is_pattern && self.rest.next_if_eq(&')').is_some() {
            self.defines_functions = true;
            return self.end_command();
        }
        if let Some(word) = &mut self.current.word {
            // A pattern as in `@(a|b)`, or an array.
            if is_pattern {
                word.pop();
                self.current.braces.clear();
            }
            return self.open(')', EACH, Content::Data);
        }
        let content = self.current.content;
        if content == Content::Patterns && self.current.words.is_empty() {
            return;
        }
        self.end_command();
        self.is_compound = true;
        if self.frames.len() >= MAX_FRAMES {
            return;
        }
        self.frames.push(Frame::Subshell { content });
        if self.rest.peek() == Some(&'(') {
            self.current.content = Content::Data;
        }
    }

    fn close_parenthesis(&mut self) {
        self.is_plain = false;
        self.end_command();
        if self.current.content == Content::Patterns {
            self.current.content = Content::Commands;
            return;
        }
        match self.frames.pop() {
            Some(Frame::Subshell { content }) => self.current.content = content,
            Some(Frame::Substitution { outer, is_quoted, end: ')', computed }) => {
                self.resume(outer, is_quoted, computed);
            }
            // The parenthesis has no partner.
            Some(other) => self.frames.push(other),
            None => {}
        }
    }

    fn push(&mut self, character: char) {
        self.current.word.get_or_insert_default().push(character);
    }

    fn end_word(&mut self) {
        self.end_groups();
        let Some(word) = self.current.word.take() else { return };
        let has_quotes = std::mem::take(&mut self.current.has_quotes);
        let braces = std::mem::take(&mut self.current.braces);
        match self.current.redirection.take() {
            Some(redirection) => self.redirect(redirection, word, has_quotes),
            None => match braces::expand(&word, &braces) {
                Some(words) => self.add_expanded(words, braces::source(&word, &braces), has_quotes),
                None => self.add_word(word),
            },
        }
    }

    fn add_word(&mut self, word: String) {
        let current = &mut self.current;
        // A variable set before a command may change which program runs.
        self.is_plain &= !(current.words.is_empty() && word.contains('='));
        let (content, is_first) = (current.content, !current.has_program);
        let next = match (content, word.as_str()) {
            (Content::Commands, "[[") if is_first => Content::Test,
            (Content::Commands, "in") if current.is_case => Content::Patterns,
            (Content::Test, "]]") => Content::Commands,
            (Content::Patterns, "esac") if current.words.is_empty() => Content::Commands,
            (content, _) => content,
        };
        if is_first && content == Content::Commands {
            self.is_compound |= COMPOUND.contains(&word.as_str());
            self.defines_functions |= DEFINING.contains(&word.as_str());
        }
        if current.words.is_empty() && content != Content::Commands {
            current.words.push(DATA.to_owned());
            current.has_program = true;
        }
        if !current.has_program && !programs::is_reserved(&word) {
            current.has_program = true;
            current.is_case = word == "case";
        }
        if let Some(unexpanded) = &mut current.unexpanded {
            unexpanded.push(word.clone());
        }
        current.words.push(word);
        if content == Content::Commands && next == Content::Patterns {
            self.end_command();
        }
        self.current.content = next;
    }

    /// Adds the words that a word with braces expands to. They are no words of the shell's grammar.
    fn add_expanded(&mut self, words: Vec<String>, source: String, has_quotes: bool) {
        let current = &mut self.current;
        current.unexpanded.get_or_insert_with(|| current.words.clone()).push(source);
        // The shell removes empty words without quotes.
        let words = words.into_iter().filter(|word| has_quotes || !word.is_empty());
        for word in words {
            current.has_program = true;
            current.words.push(word);
        }
    }

    /// Ends a command whose output is the input of the next one.
    fn pipe(&mut self) {
        self.has_connections = true;
        self.is_plain &= self.rest.next_if_eq(&'&').is_none();
        let pipeline = self.current.connections.pipeline;
        self.end_command();
        self.current.connections.pipeline = pipeline;
    }

    fn end_command(&mut self) {
        self.end_word();
        self.current.redirection = None;
        let unexpanded = self.current.unexpanded.take();
        if self.current.words.is_empty() {
            return;
        }
        let id = self.next_id();
        let current = &mut self.current;
        let connections = Connections::new(id, current.connections.captured_by);
        let connections = std::mem::replace(&mut current.connections, connections);
        (current.has_program, current.is_case) = (false, false);
        let words = std::mem::take(&mut current.words);
        self.commands.push(ScannedCommand { words, unexpanded, connections });
    }

    fn next_id(&mut self) -> usize {
        self.last_id += 1;
        self.last_id
    }

    fn finish(mut self) -> ScannedLine {
        self.is_plain &= !self.is_quoted;
        self.close_to(None);
        self.take_inputs();
        let has_known_connections = !(self.defines_functions || self.is_compound && self.has_connections);
        let Self { commands, is_plain, inputs, is_cut, .. } = self;
        ScannedLine { commands, is_plain, inputs, has_known_connections, is_cut }
    }
}

fn is_name_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}
