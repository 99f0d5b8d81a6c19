//! Symbols of a source file, found by the first words of its lines.

use serde::{Deserialize, Serialize};

use crate::source_languages::{FunctionForm, SourceLanguage, language_of};

/// Maximum number of symbols of a file, and the length of a name in characters.
const MAX_SYMBOLS: usize = 60;
const MAX_NAME: usize = 80;

/// Maximum indentation of a symbol in bytes: that of a method. Functions in functions are not listed.
const MAX_INDENTATION: usize = 4;

/// Words that look like functions, and the start of lines that define none.
const NO_FUNCTIONS: [&str; 8] = ["if", "for", "while", "switch", "return", "else", "catch", "sizeof"];

/// Symbols of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileOutline {
    pub(super) path: String,
    /// Line, kind and name of each symbol, in order.
    pub(super) symbols: Vec<(usize, String)>,
    /// Number of further symbols.
    pub(super) omitted: usize,
}

impl FileOutline {
    /// Finds the symbols of a file. Returns `None` for a file without symbols.
    pub(super) fn find(path: &str, text: &str) -> Option<Self> {
        let language = language_of(path)?;
        let found =
            text.lines().enumerate().filter_map(|(index, line)| Some((index + 1, symbol(language, line)?)));
        let mut symbols: Vec<(usize, String)> = found.collect();
        let omitted = symbols.len().saturating_sub(MAX_SYMBOLS);
        symbols.truncate(MAX_SYMBOLS);
        (!symbols.is_empty()).then(|| Self { path: path.to_owned(), symbols, omitted })
    }
}

/// Returns the kind and the name of the symbol that a line defines.
fn symbol(language: &SourceLanguage, line: &str) -> Option<String> {
    let text = line.trim_start();
    let indentation = line.len() - text.len();
    if indentation > MAX_INDENTATION {
        return None;
    }
    let (mut rest, mut has_modifier) = (text, false);
    loop {
        let (word, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let after = after.trim_start();
        // `pub(crate)`
        let plain = word.split_once('(').map_or(word, |(plain, _)| plain);
        if language.keywords.contains(&word) {
            let name = name_of(after)?;
            return Some(format!("{} {name}", word.trim_start_matches('(')));
        }
        let is_modifier =
            language.modifiers.contains(&word) || word.ends_with(')') && language.modifiers.contains(&plain);
        if !is_modifier {
            break;
        }
        (rest, has_modifier) = (after, true);
    }
    let (before, _) = text.split_once('(')?;
    let function = before.rsplit(|character: char| !is_name(character)).next()?;
    let kind = before.strip_suffix(function)?;
    let is_function = match language.functions {
        FunctionForm::Keyword => false,
        FunctionForm::TypeFirst => {
            indentation == 0 && kind.starts_with(|first: char| first.is_alphabetic() || first == '_')
        }
        FunctionForm::WithModifier => has_modifier,
        FunctionForm::Parentheses => kind.is_empty() && text.starts_with(&format!("{function}()")),
    };
    let is_definition = !function.is_empty()
        && !NO_FUNCTIONS.contains(&function)
        && !before.contains('=')
        && !text.trim_end().ends_with(';');
    (is_function && is_definition).then(|| format!("function {}", shorten(function)))
}

/// Returns the name at the start of a text. A receiver of Go precedes it.
fn name_of(text: &str) -> Option<String> {
    let text = match text.strip_prefix('(').and_then(|receiver| receiver.split_once(')')) {
        Some((_, after)) => after.trim_start(),
        None => text,
    };
    let end = text.find(|character| !is_name(character)).unwrap_or(text.len());
    let name = text.get(..end)?.trim_end_matches([':', '.', '-']);
    (!name.is_empty()).then(|| shorten(name))
}

fn is_name(character: char) -> bool {
    character.is_alphanumeric() || "_$.:?!-".contains(character)
}

fn shorten(name: &str) -> String {
    name.chars().take(MAX_NAME).collect()
}
