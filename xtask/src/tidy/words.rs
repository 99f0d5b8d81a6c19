//! The density of idioms: how many comment lines and strings of a crate contain a phrase that readers stumble over.
//!
//! `xtask/words.toml` has the limit, a ceiling for each crate that still exceeds it, and the deliberate uses.

use std::{collections::BTreeMap, sync::LazyLock};

use serde::Deserialize;

use super::{
    Violation, product,
    rust_code::Kind,
    tree::{File, Package, Tree},
};

const PATH: &str = "xtask/words.toml";

/// Phrases of words with one space between them. `|` separates alternatives for one word.
const IDIOMS: &[&str] = &[
    "Whoever|whoever",
    "anew",
    "goes|go|going on",
    "take|takes|taken|took|taking up",
    "of then|before",
    "is|are none",
    "Somebody|somebody|Nobody|nobody",
    "stands|stand|stood",
    "under way",
    "in word|words",
    "in a word",
    "that|those of",
    "What|what is|was|has|had|they|it|people|a|the",
    "tells|told",
    "said",
    "at a time",
    "begun|began",
    "by itself",
    "of its|their own",
];

/// The idioms that start with a word.
static BY_FIRST_WORD: LazyLock<BTreeMap<&str, Vec<&str>>> = LazyLock::new(|| {
    let mut idioms: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for &idiom in IDIOMS {
        let (first, _) = idiom.split_once(' ').unwrap_or((idiom, ""));
        for word in first.split('|') {
            idioms.entry(word).or_default().push(idiom);
        }
    }
    idioms
});

/// How far, in percentage points, a ceiling may be above the density that is measured.
const STALE: f64 = 1.0;

/// How far a lowered ceiling is above the density, so that a small change does not exceed it.
const MARGIN: f64 = 0.3;

/// `xtask/words.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    /// Percentage of comment lines and strings that may contain an idiom.
    limit: f64,
    /// Percentages of crates that exceed the limit. They only fall.
    #[serde(default)]
    ceilings: BTreeMap<String, f64>,
    #[serde(default)]
    allow: Vec<Allowed>,
}

/// A deliberate use.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Allowed {
    file: String,
    /// Part of the comment line or of the string, with the idiom.
    phrase: String,
    reason: String,
}

/// Comment lines and strings of a crate.
#[derive(Debug, Default)]
pub(super) struct Density {
    pub(super) passages: usize,
    pub(super) uses: Vec<Use>,
}

/// A comment line or a string with an idiom.
#[derive(Debug)]
pub(super) struct Use {
    pub(super) path: String,
    pub(super) line: usize,
    pub(super) idiom: String,
}

/// A comment line with a word, or a string with a space.
#[derive(Debug)]
struct Passage {
    line: usize,
    text: String,
}

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let table = match Table::load(tree) {
        Ok(table) => table,
        Err(violation) => return vec![violation],
    };
    let mut violations: Vec<Violation> = crates(tree)
        .filter_map(|package| table.judge(&package.name, &table.measure(tree, package)))
        .collect();
    for name in table.ceilings.keys().filter(|name| crates(tree).all(|package| package.name != **name)) {
        violations.push(Violation::new(PATH, format!("has a ceiling for `{name}`, which is no crate")));
    }
    violations.extend(table.allow.iter().filter_map(|allowed| allowed.judge(tree)));
    violations
}

/// Returns the packages whose density is limited.
pub(super) fn crates(tree: &Tree) -> impl Iterator<Item = &Package> {
    tree.packages.iter().filter(|package| package.directory.starts_with("crates/"))
}

impl Table {
    /// Reads the table.
    ///
    /// # Errors
    ///
    /// The file is missing or cannot be parsed.
    pub(super) fn load(tree: &Tree) -> Result<Self, Violation> {
        let file = tree.file(PATH).ok_or_else(|| Violation::new(PATH, "is missing"))?;
        toml::from_str(&file.text).map_err(|error| Violation::new(PATH, error.to_string()))
    }

    /// Returns the percentage that a crate may reach.
    pub(super) fn ceiling(&self, name: &str) -> f64 {
        self.ceilings.get(name).copied().unwrap_or(self.limit)
    }

    pub(super) fn measure(&self, tree: &Tree, package: &Package) -> Density {
        let mut density = Density::default();
        for file in product::files(tree, package) {
            let allowed: Vec<&Allowed> =
                self.allow.iter().filter(|allowed| allowed.file == file.path).collect();
            for passage in passages(file) {
                density.passages += 1;
                let text = without_allowed(&passage.text, &allowed);
                if let Some(idiom) = find_idiom(&text) {
                    density.uses.push(Use {
                        path: file.path.clone(),
                        line: passage.line,
                        idiom: idiom.to_owned(),
                    });
                }
            }
        }
        density
    }

    fn judge(&self, name: &str, density: &Density) -> Option<Violation> {
        let (measured, ceiling) = (density.percent(), self.ceiling(name));
        if measured > ceiling {
            let message = format!(
                "{measured:.2} % of the comment lines and strings contain idioms, at most {ceiling:.1} % may: \
                 `cargo xtask lines --idioms {name}` lists them"
            );
            return Some(Violation::new(name, message));
        }
        if ceiling <= self.limit || ceiling <= measured + STALE {
            return None;
        }
        let lowered = ((measured + MARGIN) * 10.0).ceil() / 10.0;
        let remedy = if lowered > self.limit {
            format!("lower it to {lowered:.1}")
        } else {
            String::from("remove it")
        };
        let message = format!(
            "the ceiling {ceiling:.1} of `{name}` is stale, the density is {measured:.2} %: {remedy}"
        );
        Some(Violation::new(PATH, message))
    }
}

impl Allowed {
    fn judge(&self, tree: &Tree) -> Option<Violation> {
        let message = if self.reason.trim().is_empty() {
            "has no reason"
        } else if find_idiom(&self.phrase).is_none() {
            "contains no idiom"
        } else if !self.is_used(tree) {
            "is not in the file"
        } else {
            return None;
        };
        Some(Violation::new(PATH, format!("the allowed phrase `{}` of {} {message}", self.phrase, self.file)))
    }

    fn is_used(&self, tree: &Tree) -> bool {
        let uses = |file: &File| passages(file).iter().any(|passage| passage.text.contains(&self.phrase));
        tree.file(&self.file).is_some_and(uses)
    }
}

impl Density {
    /// Returns the percentage of comment lines and strings with an idiom.
    pub(super) fn percent(&self) -> f64 {
        100.0 * self.uses.len() as f64 / self.passages.max(1) as f64
    }
}

/// Returns the comment lines and strings of a file that a reader or a user may see.
fn passages(file: &File) -> Vec<Passage> {
    let mut passages = Vec::new();
    for part in product::parts(file) {
        match part.kind {
            Kind::Code | Kind::Character => {}
            Kind::Comment => {
                let lines = part.text.lines().enumerate().filter(|(_, line)| has_word(line));
                passages.extend(
                    lines.map(|(offset, line)| Passage { line: part.line + offset, text: line.to_owned() }),
                );
            }
            Kind::String => passages.extend(string(part.line, unescaped(content(part.text)))),
            Kind::RawString => passages.extend(string(part.line, content(part.text).to_owned())),
        }
    }
    passages
}

fn string(line: usize, text: String) -> Option<Passage> {
    (text.trim().contains(' ') && has_word(&text)).then_some(Passage { line, text })
}

/// Returns the content of a string literal between its quotes.
fn content(literal: &str) -> &str {
    let body = literal.split_once('"').and_then(|(_, rest)| rest.rsplit_once('"'));
    body.map_or("", |(content, _)| content)
}

/// Replaces the escapes that separate words, removes line continuations and keeps the characters of other escapes.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        if character != '\\' {
            out.push(character);
            continue;
        }
        match characters.next() {
            Some('\n') => while characters.next_if(|next| next.is_whitespace()).is_some() {},
            Some('n' | 'r' | 't') => out.push('\n'),
            Some(escaped) => out.push(escaped),
            None => {}
        }
    }
    out
}

fn without_allowed(text: &str, allowed: &[&Allowed]) -> String {
    // A character that is part of no word separates what was around the phrase.
    allowed.iter().fold(text.to_owned(), |text, allowed| text.replace(&allowed.phrase, "\u{2026}"))
}

/// Returns the first idiom of `text`, as it is spelled there.
fn find_idiom(text: &str) -> Option<&str> {
    let words = words(text);
    (0..words.len()).find_map(|first| {
        let rest = words.get(first..)?;
        let (_, word) = rest.first()?;
        BY_FIRST_WORD.get(*word)?.iter().find_map(|idiom| matched(text, rest, idiom))
    })
}

/// Returns the text of `idiom` if `words` start with it.
fn matched<'a>(text: &'a str, words: &[(usize, &str)], idiom: &str) -> Option<&'a str> {
    let (start, _) = *words.first()?;
    let mut end = start;
    for (index, alternatives) in idiom.split(' ').enumerate() {
        let (at, word) = *words.get(index)?;
        let separator = if index == 0 { "" } else { " " };
        if text.get(end..at) != Some(separator) || !alternatives.split('|').any(|known| known == word) {
            return None;
        }
        end = at + word.len();
    }
    text.get(start..end)
}

fn has_word(text: &str) -> bool {
    !words(text).is_empty()
}

/// Returns the words of `text`, each with its position.
fn words(text: &str) -> Vec<(usize, &str)> {
    let is_boundary = |character: char| character != '_' && !character.is_alphanumeric();
    let mut words = Vec::new();
    let mut at = 0;
    for piece in text.split_inclusive(is_boundary) {
        let word = piece.trim_end_matches(is_boundary);
        if !word.is_empty() {
            words.push((at, word));
        }
        at += piece.len();
    }
    words
}

#[cfg(test)]
mod tests;
