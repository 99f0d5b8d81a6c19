//! Syntax highlighting of code.
//!
//! Scopes of the grammars are shown in colours of the user's palette, which suits the background of the terminal.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxReference, SyntaxSet};

use crate::render::line::{Colour, Face, StyledLine};

/// Maximum number of highlighted lines of a block. Further lines are plain.
const MAX_LINES: usize = 5_000;

/// Maximum length of a highlighted line, in bytes.
const MAX_LINE: usize = 2_000;

static SYNTAXES: LazyLock<SyntaxSet> = LazyLock::new(SyntaxSet::load_defaults_newlines);

/// Names of the grammars whose expressions are compiled. Compiling a grammar needs up to a tenth of a second.
static COMPILED: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

/// Prefixes of scopes with their faces. The longest matching prefix applies.
static FACES: LazyLock<Vec<(Scope, Face)>> = LazyLock::new(|| {
    let faces = [
        ("comment", Face::DIM),
        ("string", Face::coloured(Colour::Green)),
        ("constant", Face::coloured(Colour::Yellow)),
        ("constant.character.escape", Face::coloured(Colour::Cyan)),
        ("keyword", Face::coloured(Colour::Magenta)),
        ("keyword.operator", Face::PLAIN),
        ("storage", Face::coloured(Colour::Magenta)),
        ("entity.name.function", Face::coloured(Colour::Blue)),
        ("entity.name.tag", Face::coloured(Colour::Blue)),
        ("entity.name.type", Face::coloured(Colour::Cyan)),
        ("entity.other.attribute-name", Face::coloured(Colour::Cyan)),
        ("support.function", Face::coloured(Colour::Blue)),
        ("support.type", Face::coloured(Colour::Cyan)),
        ("support.class", Face::coloured(Colour::Cyan)),
        ("markup.inserted", Face::coloured(Colour::Green)),
        ("markup.deleted", Face::coloured(Colour::Red)),
        ("markup.heading", Face::BOLD),
        ("invalid", Face::coloured(Colour::Red)),
    ];
    faces.into_iter().filter_map(|(scope, face)| Some((Scope::new(scope).ok()?, face))).collect()
});

/// Highlights the lines of one block.
pub(super) struct Highlighter {
    /// `None` if the language is unknown, or after a line that could not be parsed.
    parser: Option<(ParseState, ScopeStack)>,
    lines: usize,
    /// Compiles the expressions of the grammar, so that drawing does not wait for them. The thread ends even if it is not
    /// joined.
    compiling: Option<JoinHandle<()>>,
}

impl Highlighter {
    /// Creates a highlighter for a language by its name or file extension.
    pub(super) fn new(language: &str) -> Self {
        let Some(syntax) = syntax(language) else { return Self { parser: None, lines: 0, compiling: None } };
        let parser = Some((ParseState::new(syntax), ScopeStack::new()));
        Self { parser, lines: 0, compiling: compile(syntax) }
    }

    /// Returns whether the next line can be highlighted without waiting.
    pub(super) fn is_ready(&self) -> bool {
        self.compiling.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Highlights the next line. Blocks until the highlighter [is ready](Self::is_ready).
    pub(super) fn line(&mut self, text: &str) -> StyledLine {
        if let Some(compiling) = self.compiling.take() {
            // An error of the thread recurs when the line is parsed.
            let _ = compiling.join();
        }
        self.lines += 1;
        if self.lines > MAX_LINES || text.len() > MAX_LINE {
            self.parser = None;
        }
        let Some((state, stack)) = &mut self.parser else { return StyledLine::plain(text) };
        let Some(line) = coloured(text, state, stack) else {
            self.parser = None;
            return StyledLine::plain(text);
        };
        line
    }
}

/// Starts to compile the expressions of a grammar, unless they are compiled.
fn compile(syntax: &'static SyntaxReference) -> Option<JoinHandle<()>> {
    let compiled = || COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    if compiled().contains(syntax.name.as_str()) {
        return None;
    }
    let compile = move || {
        // The parser tries every expression that a line may start with.
        if ParseState::new(syntax).parse_line("x\n", &SYNTAXES).is_ok() {
            compiled().insert(&syntax.name);
        }
    };
    // Without a thread, the first line compiles them.
    thread::Builder::new().name("grammar".to_owned()).spawn(compile).ok()
}

fn syntax(language: &str) -> Option<&'static SyntaxReference> {
    // Aliases that the grammars do not know.
    let language = match language.to_ascii_lowercase().as_str() {
        "" | "text" | "plain" | "console" | "output" => return None,
        "shell" | "zsh" | "shellsession" => "sh".to_owned(),
        "typescript" | "ts" | "tsx" | "jsx" | "mjs" => "js".to_owned(),
        "jsonc" | "json5" | "jsonl" => "json".to_owned(),
        "c++" => "cpp".to_owned(),
        "csharp" => "cs".to_owned(),
        "patch" => "diff".to_owned(),
        other => other.to_owned(),
    };
    SYNTAXES.find_syntax_by_token(&language)
}

/// Returns a line with the faces of its scopes, or `None` if the grammar fails on it.
fn coloured(text: &str, state: &mut ParseState, stack: &mut ScopeStack) -> Option<StyledLine> {
    let operations = state.parse_line(&format!("{text}\n"), &SYNTAXES).ok()?;
    let mut line = StyledLine::default();
    let mut from = 0;
    for (index, operation) in operations {
        let index = index.min(text.len());
        line.push(text.get(from..index)?, face(stack));
        from = index;
        stack.apply(&operation).ok()?;
    }
    line.push(text.get(from..)?, face(stack));
    Some(line)
}

/// Returns the face of the innermost scope that has a face.
fn face(stack: &ScopeStack) -> Face {
    let of_scope = |scope: &Scope| {
        let fitting = FACES.iter().filter(|(prefix, _)| prefix.is_prefix_of(*scope));
        fitting.max_by_key(|(prefix, _)| prefix.len()).map(|(_, face)| *face)
    };
    stack.as_slice().iter().rev().find_map(of_scope).unwrap_or_default()
}

impl fmt::Debug for Highlighter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Highlighter").field("lines", &self.lines).finish_non_exhaustive()
    }
}
