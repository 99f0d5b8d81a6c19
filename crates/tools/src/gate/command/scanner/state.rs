//! State of a line that is being read.

use super::Content;
use super::braces::KnownBraces;

/// Command that is being read.
#[derive(Debug)]
pub(super) struct Command {
    pub(super) words: Vec<String>,
    /// The words of a shell that expands no braces, if they differ.
    pub(super) unexpanded: Option<Vec<String>>,
    /// The current word; `None` between words. An empty pair of quotes is a word.
    pub(super) word: Option<String>,
    /// Braces of the current word whose expansions are known.
    pub(super) braces: Vec<KnownBraces>,
    /// Whether a part of the current word is quoted.
    pub(super) has_quotes: bool,
    /// Redirection whose target is the next word.
    pub(super) redirection: Option<Redirection>,
    pub(super) content: Content,
    /// Whether a word is a program or argument, and not part of the shell's grammar.
    pub(super) has_program: bool,
    /// Whether the first word after the shell's grammar is `case`.
    pub(super) is_case: bool,
    pub(super) connections: Connections,
}

impl Command {
    pub(super) fn new(content: Content, connections: Connections) -> Self {
        Self {
            words: Vec::new(),
            unexpanded: None,
            word: None,
            braces: Vec::new(),
            has_quotes: false,
            redirection: None,
            content,
            has_program: false,
            is_case: false,
            connections,
        }
    }
}

/// Connections of a command with other commands of its line.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Connections {
    /// Number of the command.
    pub(in super::super) id: usize,
    /// Number of its pipeline.
    pub(in super::super) pipeline: usize,
    /// Command whose words contain its output.
    pub(in super::super) captured_by: Option<usize>,
    /// Whether it writes to a file.
    pub(in super::super) writes_file: bool,
}

impl Connections {
    /// Creates the connections of a command that starts a pipeline.
    pub(super) fn new(id: usize, captured_by: Option<usize>) -> Self {
        Self { id, pipeline: id, captured_by, writes_file: false }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Redirection {
    Input,
    Output { is_duplicate: bool },
    HereString,
    HereDocument { strips_tabs: bool },
}

/// Input whose text has not been read, with the number of its command.
#[derive(Debug)]
pub(super) enum Input {
    Text { text: String, owner: usize },
    Document { end: String, strips_tabs: bool, is_literal: bool, owner: usize },
}

/// Construct that has not ended.
#[derive(Debug)]
pub(super) enum Frame {
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
