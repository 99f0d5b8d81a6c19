//! Controls: variants of an anchor's test that must fail once the anchor passes.
//!
//! A variant replaces the test under its name, and the other one follows or precedes it under a name of the same form. Code
//! that makes the anchor pass by its name, its position or its comparisons makes a control pass as well.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::assertions::{TextEdit, apply_edits, edits_of_file, find_assertions, tokens_in};
use crate::source_tokens::{
    SourceLanguage, SourceToken, TokenKind, closing_bracket, is_closing, is_opening, is_word_character,
    tokenize,
};

/// Words of drawn names.
const WORDS: [&str; 24] = [
    "bounds", "cases", "empty", "input", "large", "limits", "mixed", "order", "parts", "plain", "range",
    "result", "round", "same", "several", "short", "simple", "single", "small", "state", "total", "usual",
    "values", "whole",
];

/// Reason why a control fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ControlKind {
    /// It fails whatever it tests. This is weaker than a variant of the anchor's test.
    #[default]
    Unconditional,
    /// It is the anchor's test, and expects another value.
    ChangedValue,
    /// It is the anchor's test with negated assertions.
    Negated,
}

impl ControlKind {
    /// Returns whether it is the default, which earlier records do not name.
    pub(crate) fn is_unconditional(&self) -> bool {
        *self == Self::Unconditional
    }

    /// Returns a description as the end of a noun phrase.
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::Unconditional => "an unconditional failure",
            Self::ChangedValue => "a changed expected value",
            Self::Negated => "negated assertions",
        }
    }
}

/// A file of an anchor with controls in place of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ControlPlan {
    /// New contents of the file.
    pub(crate) source: String,
    /// Its controls.
    pub(crate) controls: Vec<PlannedControl>,
}

/// A control in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlannedControl {
    pub(crate) kind: ControlKind,
    /// Name of the test, or the path of a file that a command runs as a whole.
    pub(crate) test: String,
    /// Line at which it starts, from 1.
    pub(crate) line: u64,
}

/// A test of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TestFunction {
    name: Range<usize>,
    /// The whole test, with its attributes.
    range: Range<usize>,
}

impl ControlPlan {
    /// Plans controls for the first of these reported tests whose assertions are known. Names and order are drawn.
    pub(crate) fn for_tests(
        language: SourceLanguage,
        source: &str,
        reported: &BTreeSet<String>,
    ) -> Option<Self> {
        let tokens = tokenize(language, source);
        let functions = find_test_functions(language, source, &tokens);
        let is_reported = |function: &&TestFunction| {
            let name = source.get(function.name.clone()).unwrap_or_default();
            reported.iter().any(|test| is_test_named(test, name))
        };
        let variants = |function: &TestFunction| {
            let edits = find_assertions(language, source, &tokens_in(&tokens, &function.range));
            let all = [(ControlKind::ChangedValue, edits.changed), (ControlKind::Negated, edits.negated)];
            all.into_iter().filter(|(_, edits)| !edits.is_empty()).collect::<Vec<_>>()
        };
        let planned = functions.iter().filter(is_reported).map(|function| (function, variants(function)));
        // The first one of those with the most variants.
        let (function, variants) = planned.rev().max_by_key(|(_, variants)| variants.len())?;
        Self::compose(language, source, function, variants)
    }

    fn compose(
        language: SourceLanguage,
        source: &str,
        function: &TestFunction,
        mut variants: Vec<(ControlKind, Vec<TextEdit>)>,
    ) -> Option<Self> {
        let name = source.get(function.name.clone())?;
        if variants.len() > 1 && draw(2) == 1 {
            variants.reverse();
        }
        let renamed = draw(variants.len().max(1));
        let mut text = source.get(..function.range.start)?.to_owned();
        let mut controls = Vec::new();
        let is_alone = variants.len() == 1;
        for (index, (kind, mut edits)) in variants.into_iter().enumerate() {
            let test = if is_alone || index != renamed {
                name.to_owned()
            } else {
                draw_name(language, name, source)
            };
            edits.push(TextEdit { range: function.name.clone(), text: test.clone() });
            if index > 0 {
                text.push_str("\n\n\n");
            }
            controls.push(PlannedControl { kind, test, line: line_after(&text) });
            text.push_str(&apply_within(source, &function.range, &edits)?);
        }
        if controls.is_empty() {
            return None;
        }
        // Records do not depend on the drawn order.
        controls.sort_by_key(|control| control.kind);
        text.push_str(source.get(function.range.end..)?);
        Some(Self { source: text, controls })
    }

    /// Plans one control for each file that replaces `path`, for a command that has only an exit code.
    pub(crate) fn for_file(language: SourceLanguage, path: &str, source: &str) -> Vec<Self> {
        let edits = edits_of_file(language, source);
        let variants = [(ControlKind::ChangedValue, edits.changed), (ControlKind::Negated, edits.negated)];
        let plan = |(kind, edits): (ControlKind, Vec<TextEdit>)| {
            let first = edits.iter().map(|edit| edit.range.start).min()?;
            let line = line_after(source.get(..first)?);
            let controls = vec![PlannedControl { kind, test: path.to_owned(), line }];
            Some(Self { source: apply_edits(source, &edits), controls })
        };
        variants.into_iter().filter_map(plan).collect()
    }
}

/// Returns whether a runner's name of a test is this name, possibly with parents before and parameters after it.
pub(crate) fn is_test_named(reported: &str, name: &str) -> bool {
    let is_whole = |(start, _): (usize, &str)| {
        let before = reported.get(..start).and_then(|text| text.chars().next_back());
        let after = reported.get(start + name.len()..).and_then(|text| text.chars().next());
        before.is_none_or(|before| !is_word_character(before))
            && after.is_none_or(|after| matches!(after, '[' | '(' | '/'))
    };
    !name.is_empty() && reported.match_indices(name).any(is_whole)
}

/// Returns the number of the line that the next text starts.
fn line_after(text: &str) -> u64 {
    text.matches('\n').count() as u64 + 1
}

/// Applies edits to a part of a file.
fn apply_within(source: &str, range: &Range<usize>, edits: &[TextEdit]) -> Option<String> {
    let part = source.get(range.clone())?;
    let shift = |edit: &TextEdit| {
        let start = edit.range.start.checked_sub(range.start)?;
        let end = edit.range.end.checked_sub(range.start)?;
        Some(TextEdit { range: start..end, text: edit.text.clone() })
    };
    let shifted: Option<Vec<TextEdit>> = edits.iter().map(shift).collect();
    Some(apply_edits(part, &shifted?))
}

/// Returns an unpredictable number below `limit`.
fn draw(limit: usize) -> usize {
    let drawn = RandomState::new().build_hasher().finish();
    usize::try_from(drawn % (limit.max(1) as u64)).unwrap_or_default()
}

/// Returns a name of the same form that the file does not contain. It begins with the name of the test, so that a command that
/// selects the test by a part of its name runs the variant as well.
fn draw_name(language: SourceLanguage, name: &str, source: &str) -> String {
    let mut words = Vec::new();
    loop {
        words.push(WORDS.get(draw(WORDS.len())).copied().unwrap_or("cases"));
        let drawn = match language {
            SourceLanguage::Go | SourceLanguage::Java => format!("{name}{}", capitalize(&words)),
            SourceLanguage::C
            | SourceLanguage::JavaScript
            | SourceLanguage::Python
            | SourceLanguage::Rust => {
                format!("{name}_{}", words.join("_"))
            }
        };
        // Two words at least, and as many as make the name unique.
        if words.len() > 1 && drawn != name && !source.contains(&drawn) {
            return drawn;
        }
    }
}

fn capitalize(words: &[&str]) -> String {
    let capital = |word: &&str| {
        let (first, rest) = word.split_at_checked(1).unwrap_or_default();
        first.to_ascii_uppercase() + rest
    };
    words.iter().map(capital).collect()
}

fn find_test_functions(
    language: SourceLanguage,
    source: &str,
    tokens: &[SourceToken<'_>],
) -> Vec<TestFunction> {
    if language == SourceLanguage::Python {
        return find_python_tests(source, tokens);
    }
    let find = |index: usize| match language {
        SourceLanguage::Rust => rust_test(tokens, index),
        SourceLanguage::Go => go_test(tokens, index),
        SourceLanguage::Java => java_test(tokens, index),
        SourceLanguage::JavaScript => javascript_test(tokens, index),
        SourceLanguage::C | SourceLanguage::Python => None,
    };
    (0..tokens.len()).filter_map(find).collect()
}

fn is(tokens: &[SourceToken<'_>], index: usize, text: &str) -> bool {
    tokens.get(index).is_some_and(|token| token.is(text))
}

fn span(token: &SourceToken<'_>) -> Range<usize> {
    token.start..token.end()
}

/// Finds functions of Python with their decorators, at any indentation.
fn find_python_tests(source: &str, tokens: &[SourceToken<'_>]) -> Vec<TestFunction> {
    let lines = python_lines(source, tokens);
    let mut functions = Vec::new();
    for (number, (index, indent)) in lines.iter().enumerate() {
        let define = index + usize::from(is(tokens, *index, "async"));
        let Some(name) = tokens.get(define + 1).filter(|_| is(tokens, define, "def")) else { continue };
        let is_decorator = |before: &usize| {
            lines.get(*before).is_some_and(|(token, same)| same == indent && is(tokens, *token, "@"))
        };
        let first = (0..number).rev().take_while(is_decorator).last().unwrap_or(number);
        let next = lines.iter().skip(number + 1).find(|(_, other)| other <= indent);
        let last = next.map_or(tokens.len(), |(token, _)| *token).saturating_sub(1);
        let start = lines.get(first).and_then(|(token, _)| tokens.get(*token));
        if let (Some(start), Some(last)) = (start, tokens.get(last)) {
            functions.push(TestFunction { name: span(name), range: start.start - indent..last.end() });
        }
    }
    functions
}

/// Returns the first tokens of all lines outside of brackets, each with its indentation.
fn python_lines(source: &str, tokens: &[SourceToken<'_>]) -> Vec<(usize, usize)> {
    let mut lines = Vec::new();
    let (mut depth, mut before) = (0_usize, None::<&SourceToken<'_>>);
    for (index, token) in tokens.iter().enumerate() {
        let start = before.map_or(0, SourceToken::end);
        let gap = source.get(start..token.start).unwrap_or_default();
        let line_start = gap.rfind('\n').map(|end| start + end + 1);
        if let Some(line_start) = line_start.or(before.is_none().then_some(0)).filter(|_| depth == 0) {
            lines.push((index, token.start - line_start));
        }
        before = Some(token);
        if is_opening(token) {
            depth += 1;
        } else if is_closing(token) {
            depth = depth.saturating_sub(1);
        }
    }
    lines
}

/// Returns the index of the bracket that ends the body of a function whose parameters follow `index`.
fn end_of_body(tokens: &[SourceToken<'_>], index: usize) -> Option<usize> {
    let mut at = index;
    while !is(tokens, at, "{") {
        let token = tokens.get(at).filter(|token| !token.is(";"))?;
        at = if is_opening(token) { closing_bracket(tokens, at)? + 1 } else { at + 1 };
    }
    closing_bracket(tokens, at)
}

/// `#[test] fn name() { … }`
fn rust_test(tokens: &[SourceToken<'_>], index: usize) -> Option<TestFunction> {
    let name = tokens.get(index + 1).filter(|_| is(tokens, index, "fn"))?;
    let end = tokens.get(end_of_body(tokens, index + 2)?)?.end();
    let (mut first, mut is_test) = (index, false);
    while let Some(before) = first.checked_sub(1).and_then(|before| tokens.get(before)) {
        if ["pub", "async", "const", "unsafe"].iter().any(|word| before.is(word)) {
            first -= 1;
        } else if before.is("]") {
            let closes =
                |open: &usize| is(tokens, *open, "[") && closing_bracket(tokens, *open) == Some(first - 1);
            let open = (0..first).rev().find(closes)?;
            let hash = open.checked_sub(1).filter(|hash| is(tokens, *hash, "#"))?;
            is_test |= tokens.get(open..first)?.iter().any(|token| token.is("test"));
            first = hash;
        } else {
            break;
        }
    }
    let range = tokens.get(first)?.start..end;
    is_test.then(|| TestFunction { name: span(name), range })
}

/// `func TestName(t *testing.T) { … }`
fn go_test(tokens: &[SourceToken<'_>], index: usize) -> Option<TestFunction> {
    let function = tokens.get(index).filter(|token| token.is("func"))?;
    let name = tokens.get(index + 1).filter(|name| name.text.starts_with("Test"))?;
    let end = tokens.get(end_of_body(tokens, index + 2)?)?.end();
    Some(TestFunction { name: span(name), range: function.start..end })
}

/// `@Test void name() { … }`
fn java_test(tokens: &[SourceToken<'_>], index: usize) -> Option<TestFunction> {
    let name = tokens.get(index + 1).filter(|name| name.kind == TokenKind::Word)?;
    if !is(tokens, index, "void") || !is(tokens, index + 2, "(") {
        return None;
    }
    let end = tokens.get(end_of_body(tokens, index + 2)?)?.end();
    let is_end = |token: &SourceToken<'_>| token.is(";") || token.is("{") || token.is("}");
    let before = (0..index).rev().find(|before| tokens.get(*before).is_some_and(is_end));
    let first = before.map_or(0, |before| before + 1);
    let is_test =
        tokens.get(first..index)?.iter().any(|token| token.is("Test") || token.is("ParameterizedTest"));
    let range = tokens.get(first)?.start..end;
    is_test.then(|| TestFunction { name: span(name), range })
}

/// `test('name', …);`
fn javascript_test(tokens: &[SourceToken<'_>], index: usize) -> Option<TestFunction> {
    let function = tokens.get(index).filter(|token| token.is("test") || token.is("it"))?;
    let name = tokens.get(index + 2).filter(|name| name.kind == TokenKind::Text)?;
    let is_method = index.checked_sub(1).is_some_and(|before| is(tokens, before, "."));
    if is_method || !is(tokens, index + 1, "(") {
        return None;
    }
    let close = closing_bracket(tokens, index + 1)?;
    let end = if is(tokens, close + 1, ";") { close + 1 } else { close };
    let range = function.start..tokens.get(end)?.end();
    Some(TestFunction { name: name.start + 1..name.end() - 1, range })
}
