//! Assertions of tests, and edits after which a passing test fails by them.
//!
//! Each assertion is found by its tokens. An assertion whose form is unknown is left unchanged, so that a test without a known
//! form has no edits.

#[cfg(test)]
mod tests;

use std::ops::Range;

use crate::source_tokens::{
    SourceLanguage, SourceToken, TokenKind, closing_bracket, is_closing, is_opening, tokenize,
};

/// Replacement of a part of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TextEdit {
    /// Replaced bytes.
    pub(crate) range: Range<usize>,
    /// New text.
    pub(crate) text: String,
}

/// Edits of the assertions in a part of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AssertionEdits {
    /// Each compares with another literal.
    pub(crate) changed: Vec<TextEdit>,
    /// Each is negated.
    pub(crate) negated: Vec<TextEdit>,
}

/// Assertion functions whose first two arguments are compared, with their opposites.
const EQUALITIES: [(&str, &str); 18] = [
    ("assertEqual", "assertNotEqual"),
    ("assertEquals", "assertNotEquals"),
    ("assertListEqual", "assertNotEqual"),
    ("assertDictEqual", "assertNotEqual"),
    ("assertSetEqual", "assertNotEqual"),
    ("assertTupleEqual", "assertNotEqual"),
    ("assertSequenceEqual", "assertNotEqual"),
    ("assertMultiLineEqual", "assertNotEqual"),
    ("assertAlmostEqual", "assertNotAlmostEqual"),
    ("assert_eq", "assert_ne"),
    ("equal", "notEqual"),
    ("strictEqual", "notStrictEqual"),
    ("deepEqual", "notDeepEqual"),
    ("deepStrictEqual", "notDeepStrictEqual"),
    ("Equal", "NotEqual"),
    ("EqualValues", "NotEqualValues"),
    ("debug_assert_eq", "debug_assert_ne"),
    ("assertSame", "assertNotSame"),
];

/// Other assertion functions with their opposites.
const OPPOSITES: [(&str, &str); 16] = [
    ("assertTrue", "assertFalse"),
    ("assertFalse", "assertTrue"),
    ("assertIn", "assertNotIn"),
    ("assertNotIn", "assertIn"),
    ("assertIs", "assertIsNot"),
    ("assertIsNot", "assertIs"),
    ("assertIsNone", "assertIsNotNone"),
    ("assertIsNotNone", "assertIsNone"),
    ("assertNull", "assertNotNull"),
    ("assertNotNull", "assertNull"),
    ("assertNotEqual", "assertEqual"),
    ("assertNotEquals", "assertEquals"),
    ("assert_ne", "assert_eq"),
    ("True", "False"),
    ("Contains", "NotContains"),
    ("notStrictEqual", "strictEqual"),
];

/// Assertion functions whose first argument is an element of the second one.
const MEMBERSHIPS: [&str; 1] = ["assertIn"];

/// Matchers of `expect` that compare with their argument.
const MATCHERS: [&str; 4] = ["toBe", "toEqual", "toStrictEqual", "toHaveLength"];

/// Words that may surround literals.
const LITERAL_WORDS: [&str; 20] = [
    "Err",
    "Ok",
    "Some",
    "String",
    "bool",
    "byte",
    "float64",
    "from",
    "i32",
    "i64",
    "int",
    "int64",
    "into",
    "of",
    "string",
    "to_owned",
    "to_string",
    "u32",
    "u64",
    "vec",
];

/// Methods of Go that fail a test.
const GO_FAILURES: [&str; 6] = ["Error", "Errorf", "Fail", "FailNow", "Fatal", "Fatalf"];

/// Finds the known assertions among these tokens of a file.
pub(crate) fn find_assertions(
    language: SourceLanguage,
    source: &str,
    tokens: &[SourceToken<'_>],
) -> AssertionEdits {
    let mut edits = AssertionEdits::default();
    let finder = AssertionFinder { language, source, tokens };
    for index in 0..tokens.len() {
        if let Some(found) = finder.find_at(index) {
            edits.changed.extend(found.changed);
            edits.negated.extend(found.negated);
        }
    }
    edits
}

/// Returns a file in which all known assertions are negated, or `None` for one without them.
pub(crate) fn negate_assertions(language: SourceLanguage, source: &str) -> Option<String> {
    let negated = edits_of_file(language, source).negated;
    (!negated.is_empty()).then(|| apply_edits(source, &negated))
}

/// Applies edits to a text. Edits that overlap an earlier edit are left out.
pub(crate) fn apply_edits(source: &str, edits: &[TextEdit]) -> String {
    let mut sorted: Vec<&TextEdit> = edits.iter().collect();
    sorted.sort_by_key(|edit| (edit.range.start, edit.range.end));
    let (mut text, mut position) = (String::with_capacity(source.len()), 0);
    for edit in sorted {
        let Some(before) = source.get(position..edit.range.start) else { continue };
        text.push_str(before);
        text.push_str(&edit.text);
        position = edit.range.end;
    }
    text.push_str(source.get(position..).unwrap_or_default());
    text
}

/// Returns a literal with another value, or `None` for one whose form is unknown.
pub(crate) fn change_literal(language: SourceLanguage, token: &SourceToken<'_>) -> Option<String> {
    match token.kind {
        TokenKind::Number => change_number(token.text),
        TokenKind::Text => change_text(language, token.text),
        TokenKind::Word => Some(
            match token.text {
                "true" => "false",
                "false" => "true",
                "True" => "False",
                "False" => "True",
                _ => return None,
            }
            .to_owned(),
        ),
        TokenKind::Symbol => None,
    }
}

/// Returns another number. An integer becomes smaller, because a larger one may not fit its type.
fn change_number(text: &str) -> Option<String> {
    let digits = text.find(|next: char| !next.is_ascii_digit()).unwrap_or(text.len());
    let (number, suffix) = text.split_at_checked(digits)?;
    if suffix.starts_with('.') && suffix.len() > 1 {
        let value: f64 = text.parse().ok()?;
        return Some(format!("{:?}", value + 1.0));
    }
    let is_type = |first: char| matches!(first, 'i' | 'u' | 'L' | 'l' | 'n' | 'U');
    let is_decimal = suffix.is_empty() || suffix.starts_with(is_type) && number != "0";
    if !is_decimal {
        return None;
    }
    let value: u128 = number.parse().ok()?;
    Some(format!("{}{suffix}", if value == 0 { 1 } else { value - 1 }))
}

fn change_text(language: SourceLanguage, text: &str) -> Option<String> {
    let is_plain = match language {
        SourceLanguage::Python => !text.starts_with(['f', 'F']),
        SourceLanguage::JavaScript => !text.contains("${"),
        SourceLanguage::Rust => !text.starts_with('r'),
        SourceLanguage::C | SourceLanguage::Go | SourceLanguage::Java => true,
    };
    if !is_plain {
        return None;
    }
    let quote = text.chars().next_back()?;
    let is_character =
        quote == '\'' && !matches!(language, SourceLanguage::Python | SourceLanguage::JavaScript);
    if is_character {
        let prefix = text.split('\'').next().unwrap_or_default();
        return Some(format!("{prefix}'{}'", if text.ends_with("'x'") { 'y' } else { 'x' }));
    }
    let triple = quote.to_string().repeat(3);
    let closing = if text.ends_with(&triple) && text.len() > 5 { 3 } else { 1 };
    let (inner, close) = text.split_at_checked(text.len().checked_sub(closing)?)?;
    Some(format!("{inner}x{close}"))
}

/// Finds assertions among the tokens of a file.
struct AssertionFinder<'a> {
    language: SourceLanguage,
    source: &'a str,
    tokens: &'a [SourceToken<'a>],
}

impl<'a> AssertionFinder<'a> {
    fn token(&self, index: usize) -> Option<&'a SourceToken<'a>> {
        self.tokens.get(index)
    }

    fn is(&self, index: usize, text: &str) -> bool {
        self.token(index).is_some_and(|token| token.is(text))
    }

    /// Returns the edits of the assertion that starts at a token.
    fn find_at(&self, index: usize) -> Option<AssertionEdits> {
        let token = self.token(index).filter(|token| token.kind == TokenKind::Word)?;
        match (self.language, token.text) {
            (SourceLanguage::Python, "assert") => self.python_assert(index),
            (SourceLanguage::JavaScript, "expect") => self.expect(index),
            (SourceLanguage::JavaScript, "assert" | "ok") | (SourceLanguage::C, "assert") => {
                self.condition_call(index, index + 1)
            }
            (SourceLanguage::Rust, "assert") if self.is(index + 1, "!") => {
                self.condition_call(index, index + 2)
            }
            (SourceLanguage::Go, "if") => self.go_condition(index),
            (SourceLanguage::C, "return") => self.exit_code(index),
            _ => self.named_call(index),
        }
    }

    /// `assert CONDITION` or `assert CONDITION, MESSAGE`, up to the end of the line outside of brackets.
    fn python_assert(&self, index: usize) -> Option<AssertionEdits> {
        let mut end = index + 1;
        let mut before = self.token(index)?.end();
        let mut message = None;
        while let Some(token) = self.token(end) {
            let has_break = self
                .source
                .get(before..token.start)
                .is_some_and(|gap| gap.contains('\n') && !gap.contains("\\\n"));
            if has_break || token.is(";") || is_closing(token) {
                break;
            }
            if token.is(",") && message.is_none() {
                message = Some(end);
            }
            end = if is_opening(token) { closing_bracket(self.tokens, end)? + 1 } else { end + 1 };
            before = self.token(end - 1)?.end();
        }
        self.condition(&(index + 1..message.unwrap_or(end)), "not ")
    }

    /// `assert(CONDITION, …)`, with the bracket at `open`.
    fn condition_call(&self, index: usize, open: usize) -> Option<AssertionEdits> {
        if self.language == SourceLanguage::JavaScript && self.is(index + 1, ".") {
            return None;
        }
        let arguments = self.arguments(open)?;
        self.condition(arguments.first()?, "!")
    }

    /// Returns the edits of a condition that has to hold.
    fn condition(&self, range: &Range<usize>, not: &str) -> Option<AssertionEdits> {
        let changed = self.compared_literal(range, &["==", "==="]).or_else(|| self.member_literal(range));
        Some(AssertionEdits { changed: changed.into_iter().collect(), negated: self.wrap(range, not)? })
    }

    /// `expect(VALUE).matcher(EXPECTED)`
    fn expect(&self, index: usize) -> Option<AssertionEdits> {
        let mut matcher = closing_bracket(self.tokens, index + 1).filter(|_| self.is(index + 1, "("))? + 2;
        while self.is(matcher, "resolves") || self.is(matcher, "rejects") {
            matcher += 2;
        }
        let first = self.token(matcher)?;
        if first.is("not") {
            let end = self.token(matcher + 2)?.start;
            return Some(AssertionEdits {
                changed: Vec::new(),
                negated: vec![TextEdit { range: first.start..end, text: String::new() }],
            });
        }
        let is_method = self.is(matcher - 1, ".") && self.is(matcher + 1, "(");
        let arguments = self.arguments(matcher + 1).filter(|_| is_method)?;
        let compared = arguments.first().filter(|_| MATCHERS.contains(&first.text));
        Some(AssertionEdits {
            changed: compared.and_then(|range| self.literal(range)).into_iter().collect(),
            negated: vec![TextEdit { range: first.start..first.start, text: "not.".to_owned() }],
        })
    }

    /// `assertEqual(ONE, OTHER)`, and functions of the same kind.
    fn named_call(&self, index: usize) -> Option<AssertionEdits> {
        let token = self.token(index)?;
        // Short names are only assertions as methods of an assertion object.
        let is_method = index > 1 && self.is(index - 1, ".");
        let is_owned = is_method && (self.is(index - 2, "assert") || self.is(index - 2, "require"));
        if !(token.text.starts_with("assert") || token.text.starts_with("debug_assert") || is_owned) {
            return None;
        }
        let equality = EQUALITIES.iter().find(|(name, _)| *name == token.text);
        let (_, opposite) = equality.or_else(|| OPPOSITES.iter().find(|(name, _)| *name == token.text))?;
        let is_macro = self.language == SourceLanguage::Rust;
        if is_macro && !self.is(index + 1, "!") {
            return None;
        }
        let arguments = self.arguments(index + 1 + usize::from(is_macro))?;
        // The first argument of testify is the test.
        let skipped = usize::from(self.language == SourceLanguage::Go);
        let compared = if equality.is_some() { 2 } else { usize::from(MEMBERSHIPS.contains(&token.text)) };
        let mut compared = arguments.iter().skip(skipped).take(compared);
        Some(AssertionEdits {
            changed: compared.find_map(|range| self.literal(range)).into_iter().collect(),
            negated: vec![TextEdit { range: token.start..token.end(), text: (*opposite).to_owned() }],
        })
    }

    /// `if CONDITION { t.Fatal(…) }`
    fn go_condition(&self, index: usize) -> Option<AssertionEdits> {
        let (mut open, mut start) = (index + 1, index + 1);
        while !self.is(open, "{") {
            let token = self.token(open)?;
            if token.is(";") {
                start = open + 1;
            }
            open = if is_opening(token) { closing_bracket(self.tokens, open)? + 1 } else { open + 1 };
        }
        let close = closing_bracket(self.tokens, open)?;
        let mut body = open..close;
        let fails = body.any(|at| {
            self.is(at, ".") && self.token(at + 1).is_some_and(|name| GO_FAILURES.contains(&name.text))
        });
        if !fails || start == open {
            return None;
        }
        let range = start..open;
        let changed = self.compared_literal(&range, &["!="]).into_iter().collect();
        Some(AssertionEdits { changed, negated: self.wrap(&range, "!")? })
    }

    /// `return VALUE == EXPECTED ? 0 : 1;`
    fn exit_code(&self, index: usize) -> Option<AssertionEdits> {
        let end = (index + 1..self.tokens.len()).find(|at| self.is(*at, ";"))?;
        let question = (index + 1..end).find(|at| self.is(*at, "?"))?;
        let number = |at: usize| self.token(at).map(|token| token.text);
        let is_code = end == question + 4 && self.is(question + 2, ":");
        if !is_code || number(question + 1) != Some("0") || number(question + 3) == Some("0") {
            return None;
        }
        self.condition(&(index + 1..question), "!")
    }

    /// Returns the arguments in the brackets at `open`.
    fn arguments(&self, open: usize) -> Option<Vec<Range<usize>>> {
        if !self.is(open, "(") {
            return None;
        }
        let close = closing_bracket(self.tokens, open)?;
        let mut arguments = Vec::new();
        let (mut start, mut at) = (open + 1, open + 1);
        while at < close {
            let token = self.token(at)?;
            if token.is(",") {
                arguments.push(start..at);
                start = at + 1;
            }
            at = if is_opening(token) { closing_bracket(self.tokens, at)? + 1 } else { at + 1 };
        }
        if start < close {
            arguments.push(start..close);
        }
        Some(arguments)
    }

    /// Returns the edit of the literal on one side of the only comparison in a range.
    fn compared_literal(&self, range: &Range<usize>, operators: &[&str]) -> Option<TextEdit> {
        let mut operator = None;
        let mut at = range.start;
        while at < range.end {
            let token = self.token(at)?;
            if operators.contains(&token.text) {
                if operator.replace(at).is_some() {
                    return None;
                }
            } else if is_combining(token) {
                return None;
            }
            at = if is_opening(token) { closing_bracket(self.tokens, at)? + 1 } else { at + 1 };
        }
        let operator = operator?;
        self.literal(&(operator + 1..range.end)).or_else(|| self.literal(&(range.start..operator)))
    }

    /// Returns the edit of the literal in `LITERAL in VALUES`.
    fn member_literal(&self, range: &Range<usize>) -> Option<TextEdit> {
        let is_python = self.language == SourceLanguage::Python;
        let mut operators = range.clone().filter(|at| self.token(*at).is_some_and(is_combining));
        let operator = operators.next().filter(|at| is_python && self.is(*at, "in"))?;
        // A comprehension has another `in`.
        let is_only = operators.next().is_none();
        is_only.then(|| self.literal(&(range.start..operator))).flatten()
    }

    /// Returns an edit of the first literal in a range that contains only literals.
    fn literal(&self, range: &Range<usize>) -> Option<TextEdit> {
        let tokens = self.tokens.get(range.clone())?;
        let is_literal = |token: &SourceToken<'_>| match token.kind {
            TokenKind::Number | TokenKind::Text => true,
            TokenKind::Word => {
                LITERAL_WORDS.contains(&token.text) || change_literal(self.language, token).is_some()
            }
            TokenKind::Symbol => {
                matches!(
                    token.text,
                    "(" | ")" | "[" | "]" | "{" | "}" | "," | ":" | "::" | "-" | "&" | "!" | "."
                )
            }
        };
        if !tokens.iter().all(is_literal) {
            return None;
        }
        let (token, text) =
            tokens.iter().find_map(|token| Some((token, change_literal(self.language, token)?)))?;
        Some(TextEdit { range: token.start..token.end(), text })
    }

    /// Returns edits that put a range into brackets, after a negation.
    fn wrap(&self, range: &Range<usize>, not: &str) -> Option<Vec<TextEdit>> {
        let tokens = self.tokens.get(range.clone())?;
        let (start, end) = (tokens.first()?.start, tokens.last()?.end());
        Some(vec![
            TextEdit { range: start..start, text: format!("{not}(") },
            TextEdit { range: end..end, text: ")".to_owned() },
        ])
    }
}

/// Returns whether an operator combines comparisons, so that a changed side may not matter.
fn is_combining(token: &SourceToken<'_>) -> bool {
    [
        "&&", "||", "and", "or", "not", "in", "is", "if", "else", "lambda", "?", "<", ">", "<=", ">=", "!==",
        "=>",
    ]
    .iter()
    .any(|word| token.is(word))
}

/// Returns the tokens of a part of a file, with positions in the whole file.
pub(crate) fn tokens_in<'a>(tokens: &[SourceToken<'a>], range: &Range<usize>) -> Vec<SourceToken<'a>> {
    let is_inside = |token: &&SourceToken<'a>| token.start >= range.start && token.end() <= range.end;
    tokens.iter().filter(is_inside).copied().collect()
}

/// Returns the two variants of all assertions of a file, for a test that a command runs as a whole.
pub(crate) fn edits_of_file(language: SourceLanguage, source: &str) -> AssertionEdits {
    find_assertions(language, source, &tokenize(language, source))
}
