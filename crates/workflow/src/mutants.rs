//! Mutants: changed lines with one token replaced. A test that notices none of them proves little about the lines.

mod changed_lines;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

pub(crate) use self::changed_lines::changed_lines;

use crate::assertions::{TextEdit, apply_edits, change_literal};
use crate::source_tokens::{SourceLanguage, SourceToken, TokenKind, tokenize};

/// A mutant of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mutant {
    /// Line of the replaced token, from 1.
    pub(crate) line: u64,
    /// The token.
    pub(crate) from: String,
    /// Its replacement.
    pub(crate) to: String,
    /// The file with the replacement.
    pub(crate) source: String,
    /// The file with a failure before the statement, which shows whether the line runs. `None` if the line starts no statement.
    pub(crate) probe: Option<String>,
}

/// A replacement that was found. Sources are copied for the selected ones only, since each has the size of the file.
struct Replacement {
    line: u64,
    /// Index of the token.
    index: usize,
    to: String,
    /// Order of use: a mutant with a lower number is noticed more often.
    rank: usize,
}

/// Operators and their replacements.
const OPERATORS: [(&str, &str); 16] = [
    ("==", "!="),
    ("!=", "=="),
    ("===", "!=="),
    ("!==", "==="),
    ("<", ">="),
    (">", "<="),
    ("<=", ">"),
    (">=", "<"),
    ("+", "-"),
    ("-", "+"),
    ("*", "+"),
    ("/", "*"),
    ("&&", "||"),
    ("||", "&&"),
    ("and", "or"),
    ("or", "and"),
];

/// Returns at most `limit` mutants of these lines, at most one for each line, the most noticeable first.
pub(crate) fn find_mutants(
    language: SourceLanguage,
    source: &str,
    lines: &BTreeSet<u64>,
    limit: usize,
) -> Vec<Mutant> {
    let tokens = tokenize(language, source);
    let mut found = find_replacements(language, source, &tokens, lines);
    found.sort_by_key(|replacement| (replacement.rank, replacement.line));
    let build = |Replacement { line, index, to, .. }: Replacement| {
        let token = tokens.get(index)?;
        let edit = TextEdit { range: token.start..token.end(), text: to.clone() };
        Some(Mutant {
            line,
            from: token.text.to_owned(),
            to,
            source: apply_edits(source, &[edit]),
            probe: probe(language, source, &tokens, line),
        })
    };
    found.into_iter().take(limit).filter_map(build).collect()
}

/// Returns the most noticeable replacement of each line.
fn find_replacements(
    language: SourceLanguage,
    source: &str,
    tokens: &[SourceToken<'_>],
    lines: &BTreeSet<u64>,
) -> Vec<Replacement> {
    let mut found: Vec<Replacement> = Vec::new();
    let (mut line, mut position) = (1, 0);
    for (index, token) in tokens.iter().enumerate() {
        line += source.get(position..token.start).map_or(0, |gap| gap.matches('\n').count() as u64);
        position = token.start;
        if !lines.contains(&line) {
            continue;
        }
        let Some((to, rank)) = replacement(language, source, tokens, index) else { continue };
        let better = Replacement { line, index, to, rank };
        match found.last_mut().filter(|known| known.line == line) {
            Some(known) if known.rank > rank => *known = better,
            Some(_) => {}
            None => found.push(better),
        }
    }
    found
}

/// Returns the replacement of a token and its rank.
fn replacement(
    language: SourceLanguage,
    source: &str,
    tokens: &[SourceToken<'_>],
    index: usize,
) -> Option<(String, usize)> {
    let token = tokens.get(index)?;
    let rank = match token.kind {
        TokenKind::Symbol => 0,
        TokenKind::Word => 1,
        TokenKind::Number => 2,
        TokenKind::Text => 3,
    };
    let operator = OPERATORS.iter().find(|(from, _)| token.is(from));
    if let Some((_, to)) = operator {
        return is_binary(source, tokens, index).then(|| ((*to).to_owned(), rank));
    }
    // A string on a line of Python that starts with it documents a function.
    let is_document = token.kind == TokenKind::Text
        && language == SourceLanguage::Python
        && source.get(..token.start)?.rsplit('\n').next()?.trim().is_empty();
    if is_document { None } else { Some((change_literal(language, token)?, rank)) }
}

/// Returns whether an operator has an operand before it, and spaces around it if it could be a bracket of a type.
fn is_binary(source: &str, tokens: &[SourceToken<'_>], index: usize) -> bool {
    let Some(token) = tokens.get(index) else { return false };
    let has_spaces = || {
        let is_space = |character: Option<char>| character.is_some_and(char::is_whitespace);
        let before = source.get(..token.start).and_then(|text| text.chars().next_back());
        is_space(before) && is_space(source.get(token.end()..).and_then(|text| text.chars().next()))
    };
    let operand = index.checked_sub(1).and_then(|before| tokens.get(before)).is_some_and(|before| {
        let is_keyword =
            ["return", "in", "if", "and", "or", "not", "=>", "case"].iter().any(|word| before.is(word));
        match before.kind {
            TokenKind::Number | TokenKind::Text => true,
            TokenKind::Word => !is_keyword,
            TokenKind::Symbol => before.is(")") || before.is("]"),
        }
    });
    operand && (!matches!(token.text, "<" | ">" | "*" | "-" | "&&") || has_spaces())
}

/// Returns the file with a failure before the statement that starts a line.
fn probe(language: SourceLanguage, source: &str, tokens: &[SourceToken<'_>], line: u64) -> Option<String> {
    let skipped = usize::try_from(line).ok()?.checked_sub(1)?;
    let start: usize = source.split_inclusive('\n').take(skipped).map(str::len).sum();
    let text = source.get(start..)?.lines().next()?;
    let indent = text.len() - text.trim_start().len();
    let index = tokens.iter().position(|token| token.start >= start)?;
    let first = tokens.get(index).filter(|first| first.start == start + indent)?;
    let before = index.checked_sub(1).and_then(|before| tokens.get(before));
    let continues =
        ["elif", "else", "except", "finally", "case", "catch", "def", "class", "fn", "func", "@", "}"];
    let starts = match language {
        SourceLanguage::Python => is_python_statement(tokens, index),
        SourceLanguage::Go | SourceLanguage::JavaScript => {
            before.is_some_and(|before| ["{", "}", ";", ")"].iter().any(|end| before.is(end)))
        }
        SourceLanguage::C | SourceLanguage::Java | SourceLanguage::Rust => {
            before.is_some_and(|before| ["{", "}", ";"].iter().any(|end| before.is(end)))
        }
    };
    if !starts || continues.iter().any(|word| first.is(word)) {
        return None;
    }
    let failure = match language {
        SourceLanguage::C => "__builtin_trap(); ".to_owned(),
        SourceLanguage::Go => "panic(\"probe\"); ".to_owned(),
        SourceLanguage::Java => "if (true) throw new RuntimeException(); ".to_owned(),
        SourceLanguage::JavaScript => "throw new Error('probe'); ".to_owned(),
        // A statement with a block cannot follow on the same line.
        SourceLanguage::Python => format!("raise RuntimeError\n{}", text.get(..indent)?),
        SourceLanguage::Rust => "panic!(); ".to_owned(),
    };
    let edit = TextEdit { range: first.start..first.start, text: failure };
    Some(apply_edits(source, &[edit]))
}

/// Returns whether a token is outside of all brackets.
fn is_python_statement(tokens: &[SourceToken<'_>], index: usize) -> bool {
    let change = |token: &SourceToken<'_>| match token.text {
        "(" | "[" | "{" if token.kind == TokenKind::Symbol => 1_i64,
        ")" | "]" | "}" if token.kind == TokenKind::Symbol => -1,
        _ => 0,
    };
    tokens.iter().take(index).map(change).sum::<i64>() == 0
}
