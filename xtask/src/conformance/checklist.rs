//! The data that maps checkboxes to tests.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::DATA;
use crate::failure::{Context as _, Failure};

/// The three providers of both specifications, as written in identifiers.
const PROVIDERS: [&str; 3] = ["openai", "anthropic", "gemini"];
/// Placeholder for a provider in identifiers and test names.
const PROVIDER: &str = "{provider}";
/// Sections that are parity matrices.
const PARITY: [&str; 2] = ["LP", "CP"];
/// Issues that a line may be pending for.
const ISSUES: std::ops::RangeInclusive<u8> = 2..=8;

/// Every section of both definitions of done with the number of its checkboxes, as counted in the
/// specifications. For a parity matrix the number of rows is given; each row has three cells.
const SECTIONS: &[(&str, usize)] = &[
    ("L-9.1", 8),
    ("L-9.2", 6),
    ("L-9.3", 5),
    ("L-9.4", 6),
    ("L-9.5", 6),
    ("L-9.6", 4),
    ("L-9.7", 3),
    ("L-9.8", 6),
    ("L-9.9", 6),
    ("L-9.10", 4),
    ("L-9.11", 5),
    ("LP", 15),
    ("C-8.1", 8),
    ("C-8.2", 10),
    ("C-8.3", 7),
    ("C-8.4", 10),
    ("C-8.5", 6),
    ("C-8.6", 10),
    ("C-8.7", 11),
    ("C-8.8", 9),
    ("CP", 15),
];

/// The validated data. A checkbox that applies to each provider has three lines.
#[derive(Debug)]
pub(super) struct Checklist {
    /// Lines must not be pending for issues up to this one.
    pub(super) in_hand: u8,
    pub(super) lines: Vec<Line>,
}

#[derive(Debug)]
pub(super) struct Line {
    /// `L-9.1-3`, `C-8.2-openai-4`, `LP-shell-timeout-anthropic`.
    pub(super) id: String,
    /// The identifier without the provider, shared by the three lines of one checkbox.
    pub(super) checkbox: String,
    pub(super) section: String,
    pub(super) section_title: String,
    pub(super) says: String,
    pub(super) proof: Proof,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Proof {
    /// Names as `PACKAGE[::TARGET]::path::of::test`. All must pass.
    Tests(Vec<String>),
    /// The number of the issue that will implement it.
    Pending(u8),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    in_hand: u8,
    section: Vec<Section>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Section {
    id: String,
    title: String,
    line: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    id: String,
    says: String,
    tests: Option<Vec<String>>,
    pending: Option<String>,
    /// The entry of a provider overrides the shared one.
    openai: Option<ProviderEntry>,
    anthropic: Option<ProviderEntry>,
    gemini: Option<ProviderEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProviderEntry {
    tests: Option<Vec<String>>,
    pending: Option<String>,
}

impl Checklist {
    /// Parses the data and checks the number of lines of each section.
    pub(super) fn parse(text: &str) -> Result<Self, Failure> {
        let document: Document =
            toml::from_str(text).with_context(|| format!("{DATA} could not be parsed"))?;
        document.require_sections()?;
        let mut lines = Vec::new();
        for section in &document.section {
            for entry in &section.line {
                lines.extend(entry.lines(section)?);
            }
        }
        require_unique(&lines)?;
        Ok(Self { in_hand: document.in_hand, lines })
    }

    /// Returns all tests named by the lines.
    pub(super) fn tests(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().flat_map(|line| line.proof.tests()).map(String::as_str)
    }
}

impl Line {
    /// Returns whether the line is a cell of a parity matrix.
    pub(super) fn is_parity(&self) -> bool {
        PARITY.contains(&self.section.as_str())
    }
}

impl Proof {
    pub(super) fn tests(&self) -> &[String] {
        match self {
            Self::Tests(tests) => tests,
            Self::Pending(_) => &[],
        }
    }

    /// Creates a proof from exactly one of the two.
    fn new(id: &str, tests: Option<&[String]>, pending: Option<&str>) -> Result<Self, Failure> {
        match (tests, pending) {
            (Some(tests), None) if !tests.is_empty() => Ok(Self::Tests(tests.to_vec())),
            (None, Some(issue)) => {
                let number = issue.strip_prefix("issue ").and_then(|number| number.parse().ok());
                number.filter(|number| ISSUES.contains(number)).map(Self::Pending).ok_or_else(|| {
                    data_error(id, &format!("is pending for `{issue}`, expected `issue 2` to `issue 8`"))
                })
            }
            (Some(_), Some(_)) => Err(data_error(id, "has tests and is pending, expected one of the two")),
            (Some(_) | None, None) => Err(data_error(id, "has neither a test nor a pending issue")),
        }
    }
}

impl Document {
    fn require_sections(&self) -> Result<(), Failure> {
        let found = self.section.iter().map(|section| (section.id.as_str(), section.line.len()));
        for (index, found) in found.clone().enumerate() {
            match SECTIONS.get(index) {
                Some(expected) if *expected == found => {}
                Some((id, count)) => {
                    return Err(Failure::new(format!(
                        "{DATA}: expected section {id} with {count} lines, found {} with {}",
                        found.0, found.1
                    )));
                }
                None => return Err(Failure::new(format!("{DATA}: section {} is unexpected", found.0))),
            }
        }
        match SECTIONS.get(found.count()) {
            Some((id, _)) => Err(Failure::new(format!("{DATA}: section {id} is missing"))),
            None => Ok(()),
        }
    }
}

impl Entry {
    fn lines(&self, section: &Section) -> Result<Vec<Line>, Failure> {
        if !self.id.starts_with(&format!("{}-", section.id)) {
            return Err(data_error(&self.id, &format!("is in section {}", section.id)));
        }
        let shared = (self.tests.as_deref(), self.pending.as_deref());
        let own = [&self.openai, &self.anthropic, &self.gemini];
        if !self.id.contains(PROVIDER) {
            if own.iter().any(|own| own.is_some()) {
                return Err(data_error(&self.id, "names a provider, but its identifier has no {provider}"));
            }
            return Ok(vec![self.line(section, self.id.clone(), Proof::new(&self.id, shared.0, shared.1)?)]);
        }
        let mut lines = Vec::new();
        for (provider, own) in PROVIDERS.iter().zip(own) {
            let id = self.id.replace(PROVIDER, provider);
            let (tests, pending) = match own {
                Some(own) => (own.tests.as_deref(), own.pending.as_deref()),
                None => shared,
            };
            let tests: Option<Vec<String>> =
                tests.map(|tests| tests.iter().map(|test| test.replace(PROVIDER, provider)).collect());
            let proof = Proof::new(&id, tests.as_deref(), pending)?;
            lines.push(self.line(section, id, proof));
        }
        Ok(lines)
    }

    fn line(&self, section: &Section, id: String, proof: Proof) -> Line {
        Line {
            id,
            checkbox: self.id.clone(),
            section: section.id.clone(),
            section_title: section.title.clone(),
            says: self.says.clone(),
            proof,
        }
    }
}

fn require_unique(lines: &[Line]) -> Result<(), Failure> {
    let mut seen = BTreeSet::new();
    match lines.iter().find(|line| !seen.insert(&line.id)) {
        Some(line) => Err(data_error(&line.id, "occurs twice")),
        None => Ok(()),
    }
}

fn data_error(id: &str, what: &str) -> Failure {
    Failure::new(format!("{DATA}: {id} {what}"))
}

#[cfg(test)]
mod tests {
    use super::{Checklist, Entry, Proof, SECTIONS, Section};

    const DATA: &str = include_str!("../../conformance.toml");

    /// Sums of the checkboxes in the specifications: 9.1 to 9.11, 9.12, 8.1 to 8.8, 8.9.
    #[test]
    fn the_sections_add_up_to_both_definitions_of_done() {
        let sum = |prefix: &str| -> usize {
            SECTIONS.iter().filter(|(id, _)| id.starts_with(prefix)).map(|(_, count)| count).sum()
        };
        assert_eq!([sum("L-"), sum("LP") * 3, sum("C-"), sum("CP") * 3], [59, 45, 71, 45]);
    }

    #[test]
    fn the_data_is_complete() {
        let checklist = Checklist::parse(DATA).expect("the data parses");
        // Section 8.2 counts once per provider: ten checkboxes are thirty lines.
        assert_eq!(checklist.lines.len(), 59 + 45 + 71 + 20 + 45);
        assert!(checklist.lines.iter().all(|line| line.says.len() > 10));
    }

    #[test]
    fn a_missing_line_is_refused() {
        let cut =
            DATA.replacen("[[section.line]]\nid = \"L-9.1-1\"", "[[section.line]]\nid = \"L-9.2-1\"", 1);
        let error = Checklist::parse(&cut).expect_err("a line is in the wrong section");
        assert_eq!(error.to_string(), "xtask/conformance.toml: L-9.2-1 is in section L-9.1");
        let (head, _) = DATA.split_once("[[section]]\nid = \"CP\"").expect("the last section");
        let error = Checklist::parse(head).expect_err("a section is gone");
        assert_eq!(error.to_string(), "xtask/conformance.toml: section CP is missing");
    }

    fn lines(entry: &str) -> Result<Vec<(String, Proof)>, String> {
        let entry: Entry = toml::from_str(entry).expect("an entry");
        let section = Section { id: String::from("LP"), title: String::from("Parity"), line: Vec::new() };
        let lines = entry.lines(&section).map_err(|failure| failure.to_string())?;
        Ok(lines.into_iter().map(|line| (line.id, line.proof)).collect())
    }

    #[test]
    fn an_entry_per_provider_has_three_lines() {
        let found = lines(
            "id = 'LP-x-{provider}'\nsays = ''\ntests = ['t::it::x::{provider}']\ngemini = { pending = 'issue 7' }",
        );
        let tests = |name: &str| Proof::Tests(vec![name.to_owned()]);
        assert_eq!(
            found,
            Ok(vec![
                (String::from("LP-x-openai"), tests("t::it::x::openai")),
                (String::from("LP-x-anthropic"), tests("t::it::x::anthropic")),
                (String::from("LP-x-gemini"), Proof::Pending(7)),
            ])
        );
    }

    #[test]
    fn a_line_needs_exactly_one_proof() {
        let cases = [
            ("", "has neither a test nor a pending issue"),
            ("tests = []", "has neither a test nor a pending issue"),
            ("tests = ['a']\npending = 'issue 7'", "has tests and is pending, expected one of the two"),
            ("pending = 'later'", "is pending for `later`, expected `issue 2` to `issue 8`"),
            ("pending = 'issue 9'", "is pending for `issue 9`, expected `issue 2` to `issue 8`"),
            ("openai = { tests = ['a'] }", "names a provider, but its identifier has no {provider}"),
        ];
        for (proof, data_error) in cases {
            let found = lines(&format!("id = 'LP-x'\nsays = ''\n{proof}"));
            assert_eq!(found, Err(format!("xtask/conformance.toml: LP-x {data_error}")));
        }
    }
}
