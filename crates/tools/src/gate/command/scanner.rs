//! A scanner that splits shell lines into commands, as far as rules need it.

mod escapes;
mod groups;

use std::iter::Peekable;
use std::str::Chars;

use super::computed::{EACH, PART, SPLIT};
use super::programs::{self, base_name};

/// Characters that the shell does not take literally, besides separators and quotes.
const EXPANDED: &[char] = &['$', '`', '(', ')', '{', '}', '<', '>', '*', '?', '[', ']'];

/// Redirections that change no file.
const HARMLESS: [&str; 3] = ["2>&1", "2>/dev/null", ">/dev/null"];

/// Highest number of open braces, brackets and substitutions that are told apart.
const MAX_FRAMES: usize = 200;

/// Word before words that are no command, so that none of them counts as a program that the shell computes.
pub(super) const DATA: &str = ":";

/// A line, split into commands.
#[derive(Debug)]
pub(super) struct ScannedLine {
    /// The words of each command, without quotes. Computed parts are in them as in the module `computed`.
    pub(super) commands: Vec<Vec<String>>,
    /// Whether exactly these words will run.
    pub(super) is_plain: bool,
    /// Here-documents and here-strings.
    pub(super) inputs: Vec<(String, Content)>,
}

/// Meaning of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    Commands,
    /// Arithmetic, parameters, elements of arrays, or a text that no shell is known to run.
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
        current: Command::new(content),
        frames: Vec::new(),
        is_quoted: false,
        is_plain: true,
        pending: Vec::new(),
        inputs: Vec::new(),
        line_start: 0,
    };
    while scanner.skip_harmless() || scanner.step() {}
    scanner.finish()
}

/// Command that is being read.
#[derive(Debug)]
struct Command {
    words: Vec<String>,
    /// The current word; `None` between words. An empty pair of quotes is a word.
    word: Option<String>,
    /// Redirection that the next word belongs to.
    redirection: Option<Redirection>,
    content: Content,
}

impl Command {
    fn new(content: Content) -> Self {
        Self { words: Vec::new(), word: None, redirection: None, content }
    }
}

#[derive(Clone, Copy, Debug)]
enum Redirection {
    File,
    HereString,
    HereDocument { strips_tabs: bool },
}

/// Input whose command has not ended.
#[derive(Debug)]
enum Input {
    Text(String),
    Document { end: String, strips_tabs: bool },
}

/// Construct that has not ended.
#[derive(Debug)]
enum Frame {
    Subshell {
        content: Content,
    },
    /// Commands or words within a word.
    Substitution {
        outer: Command,
        is_quoted: bool,
        end: char,
        computed: char,
    },
    /// Braces or brackets of a word, whose contents are the current word.
    Group {
        prefix: String,
        open: char,
    },
}

#[derive(Debug)]
struct Scanner<'a> {
    rest: Peekable<Chars<'a>>,
    commands: Vec<Vec<String>>,
    current: Command,
    frames: Vec<Frame>,
    /// Whether it is within double quotes.
    is_quoted: bool,
    is_plain: bool,
    pending: Vec<Input>,
    inputs: Vec<(String, Content)>,
    /// Number of commands before the current line.
    line_start: usize,
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
            '|' => self.end_command(),
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

    /// Skips a text if it comes next.
    fn skip(&mut self, text: &str) -> bool {
        let mut ahead = self.rest.clone();
        let is_there = text.chars().all(|expected| ahead.next() == Some(expected));
        if is_there {
            self.rest = ahead;
        }
        is_there
    }

    /// Skips a redirection that changes no file, if it is a separate word.
    fn skip_harmless(&mut self) -> bool {
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
        self.current.word.get_or_insert_default();
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
        self.current.word.get_or_insert_default();
        self.is_quoted = true;
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
            Some(character) => self.push(character),
            None => self.is_plain = false,
        }
    }

    /// Reads what follows a `$` outside of quotes.
    fn dollar(&mut self) {
        self.is_plain = false;
        if self.rest.next_if_eq(&'\'').is_some() {
            let text = escapes::decode(&mut self.rest);
            self.current.word.get_or_insert_default().push_str(&text);
        } else if self.rest.next_if_eq(&'"').is_some() {
            self.open_quotes();
        } else if self.skip("{IFS}") || self.skip_variable("IFS") {
            self.end_word();
        } else {
            self.expansion();
        }
    }

    /// Skips the name of a variable if it comes next.
    fn skip_variable(&mut self, name: &str) -> bool {
        let before = self.rest.clone();
        let is_there = self.skip(name) && !self.rest.peek().is_some_and(|next| is_name_character(*next));
        if !is_there {
            self.rest = before;
        }
        is_there
    }

    /// Reads what follows a `$`.
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
                // `"${words[@]}"` is several words.
                let is_list = self.frames.len() < MAX_FRAMES
                    && self.rest.clone().take_while(|next| *next != '}').any(|next| next == '@');
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

    /// Starts a substitution, whose result is part of the current word.
    fn open(&mut self, end: char, computed: char, content: Content) {
        if self.frames.len() >= MAX_FRAMES {
            // Its commands become words of the command around it.
            return self.push(SPLIT);
        }
        let outer = std::mem::replace(&mut self.current, Command::new(content));
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

    /// Ends everything up to the substitution with this end; everything if it is `None`.
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
            // The definition of a function.
            return self.end_command();
        }
        if let Some(word) = &mut self.current.word {
            // A pattern as in `@(a|b)`, or an array.
            if is_pattern {
                word.pop();
            }
            return self.open(')', EACH, Content::Data);
        }
        let content = self.current.content;
        if content == Content::Patterns && self.current.words.is_empty() {
            return;
        }
        self.end_command();
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
            // It has no partner.
            Some(other) => self.frames.push(other),
            None => {}
        }
    }

    fn redirection(&mut self, character: char) {
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
            let _operator = self.rest.next_if(|next| matches!(next, '>' | '&' | '|'));
            Redirection::File
        };
        self.current.redirection = Some(redirection);
    }

    /// Reads the documents that start here, and adds the inputs of the line that ends.
    fn take_inputs(&mut self) {
        let commands = self.commands.get(self.line_start..).unwrap_or_default();
        let is_script = commands.iter().flatten().any(|word| programs::is_shell(base_name(word)));
        let content = if is_script { Content::Commands } else { Content::Data };
        for input in std::mem::take(&mut self.pending) {
            let text = match input {
                Input::Text(text) => text,
                Input::Document { end, strips_tabs } => self.document(&end, strips_tabs),
            };
            self.inputs.push((text, content));
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

    fn push(&mut self, character: char) {
        self.current.word.get_or_insert_default().push(character);
    }

    fn end_word(&mut self) {
        self.end_groups();
        let Some(word) = self.current.word.take() else { return };
        match self.current.redirection.take() {
            Some(Redirection::File) => {}
            Some(Redirection::HereString) => self.pending.push(Input::Text(word)),
            Some(Redirection::HereDocument { strips_tabs }) => {
                self.pending.push(Input::Document { end: word, strips_tabs });
            }
            None => self.add_word(word),
        }
    }

    fn add_word(&mut self, word: String) {
        let Command { words, content, .. } = &mut self.current;
        // A variable set before a command may change which program runs.
        self.is_plain &= !(words.is_empty() && word.contains('='));
        let first = words.iter().find(|word| !programs::is_reserved(word)).map(String::as_str);
        let next = match (*content, word.as_str()) {
            (Content::Commands, "[[") if first.is_none() => Content::Test,
            (Content::Commands, "in") if first == Some("case") => Content::Patterns,
            (Content::Test, "]]") => Content::Commands,
            (Content::Patterns, "esac") if words.is_empty() => Content::Commands,
            (content, _) => content,
        };
        if words.is_empty() && *content != Content::Commands {
            words.push(DATA.to_owned());
        }
        words.push(word);
        if *content == Content::Commands && next == Content::Patterns {
            self.end_command();
        }
        self.current.content = next;
    }

    fn end_command(&mut self) {
        self.end_word();
        self.current.redirection = None;
        if !self.current.words.is_empty() {
            self.commands.push(std::mem::take(&mut self.current.words));
        }
    }

    fn finish(mut self) -> ScannedLine {
        self.is_plain &= !self.is_quoted;
        self.close_to(None);
        self.take_inputs();
        let Self { commands, is_plain, inputs, .. } = self;
        ScannedLine { commands, is_plain, inputs }
    }
}

fn is_name_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}
