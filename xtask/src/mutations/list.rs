//! The list of mutations, and its checks.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::Path,
};

use serde::Deserialize;

use super::TestsByLine;
use crate::failure::{Context as _, Failure};

/// Path of the list, from the root.
const LIST: &str = "xtask/mutations.toml";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MutationList {
    mutation: Vec<Mutation>,
    #[serde(default)]
    exempt: Vec<Exemption>,
}

/// A change of the code that breaks lines of a definition of done.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Mutation {
    /// Identifiers of the lines. A test of each must fail.
    pub(super) lines: Vec<String>,
    /// Path from the root.
    pub(super) file: String,
    /// Occurs exactly once in the file.
    find: String,
    replace: String,
    /// One sentence about the effect.
    breaks: String,
}

/// A line without a mutation.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Exemption {
    line: String,
    reason: String,
}

impl MutationList {
    pub(super) fn load(root: &Path) -> Result<Self, Failure> {
        let text =
            std::fs::read_to_string(root.join(LIST)).with_context(|| format!("{LIST} could not be read"))?;
        toml::from_str(&text).with_context(|| format!("{LIST} could not be parsed"))
    }

    /// Checks that each mutation applies to the sources below `root`, and that each line has a mutation or a reason.
    pub(super) fn check(&self, root: &Path, tests: &TestsByLine) -> Result<(), Failure> {
        let mut problems: Vec<String> =
            self.mutation.iter().filter_map(|mutation| mutation.problem(root, tests)).collect();
        let mutated: BTreeSet<&String> = self.mutation.iter().flat_map(|mutation| &mutation.lines).collect();
        let exempt: BTreeMap<&String, &str> =
            self.exempt.iter().map(|exemption| (&exemption.line, exemption.reason.as_str())).collect();
        for line in tests.keys() {
            match (mutated.contains(line), exempt.get(line)) {
                (true, None) => {}
                (true, Some(_)) => problems.push(format!("{line} has a mutation and a reason for none")),
                (false, None) => problems.push(format!("{line} has no mutation")),
                (false, Some(reason)) if reason.ends_with('.') => {}
                (false, Some(_)) => problems.push(format!("the reason of {line} is not a sentence")),
            }
        }
        let unknown = exempt.keys().filter(|line| !tests.contains_key(**line));
        problems.extend(unknown.map(|line| format!("{line} is not a line")));
        match problems.is_empty() {
            true => Ok(()),
            false => Err(Failure::new(format!("{LIST}: {}", problems.join("\n")))),
        }
    }

    /// Returns the mutations of the line, or all. Those of one package follow each other, so that builds reuse the others.
    pub(super) fn select(&self, line: Option<&str>) -> Result<Vec<&Mutation>, Failure> {
        let mut chosen: Vec<&Mutation> = self
            .mutation
            .iter()
            .filter(|mutation| line.is_none_or(|line| mutation.lines.iter().any(|own| own == line)))
            .collect();
        if chosen.is_empty() {
            let line = line.unwrap_or("any line");
            return Err(Failure::new(format!("there is no mutation of {line}")));
        }
        chosen.sort_by(|left, right| left.package_directory().cmp(right.package_directory()));
        Ok(chosen)
    }
}

impl Mutation {
    /// Returns `text` with the change.
    pub(super) fn apply(&self, text: &str) -> Result<String, Failure> {
        match text.matches(&self.find).count() {
            1 => Ok(text.replacen(&self.find, &self.replace, 1)),
            count => Err(Failure::new(format!("the text to replace occurs {count} times in {}", self.file))),
        }
    }

    /// Returns the first two components of the path, such as `crates/llm`.
    fn package_directory(&self) -> &str {
        let end = self.file.match_indices('/').nth(1).map_or(self.file.len(), |(index, _)| index);
        self.file.get(..end).unwrap_or(&self.file)
    }

    fn problem(&self, root: &Path, tests: &TestsByLine) -> Option<String> {
        let problem = match std::fs::read_to_string(root.join(&self.file)) {
            Ok(text) => self.apply(&text).err().map(|failure| failure.to_string()),
            Err(cause) => Some(format!("{} could not be read: {cause}", self.file)),
        };
        let unknown = self.lines.iter().find(|line| !tests.contains_key(*line));
        let problem = problem
            .or_else(|| unknown.map(|line| format!("{line} is not a line")))
            .or_else(|| self.lines.is_empty().then(|| String::from("it has no line")))
            .or_else(|| (self.find == self.replace).then(|| String::from("it changes nothing")))
            .or_else(|| (!self.breaks.ends_with('.')).then(|| String::from("`breaks` is not a sentence")));
        problem.map(|problem| format!("{self}: {problem}"))
    }
}

impl fmt::Display for Mutation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({}) {}", self.lines.join(", "), self.file, self.breaks)
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, path::Path};

    use super::MutationList;
    use crate::conformance;

    fn root() -> &'static Path {
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
    }

    #[test]
    fn every_mutation_applies_and_every_line_has_one_or_a_reason() {
        let tests = conformance::tests_by_line(root()).expect("the lines are read");
        // 59 lines of the loop, 61 of the client and ten for each of three providers.
        assert_eq!(tests.len(), 59 + 61 + 30);
        let list = MutationList::load(root()).expect("the list is read");
        if let Err(failure) = list.check(root(), &tests) {
            panic!("{failure}");
        }
    }

    #[test]
    fn mistakes_in_the_list_are_reported() {
        let tests = BTreeMap::from([(String::from("L-9.1-1"), vec![String::from("a::b")])]);
        let entry = |line: &str, file: &str, find: &str, replace: &str, breaks: &str| {
            format!(
                "[[mutation]]\nlines = [{line}]\nfile = '{file}'\nfind = '{find}'\nreplace = '{replace}'\nbreaks = '{breaks}'\n"
            )
        };
        let line = "'L-9.1-1'";
        let manifest = "xtask/Cargo.toml";
        let reason = "[[exempt]]\nline = 'L-9.1-1'\nreason = 'It is proved elsewhere.'\n";
        for (text, expected) in [
            (entry(line, manifest, "name = \"xtask\"", "", "The name is gone."), None),
            (entry(line, manifest, "no such text", "", "A."), Some("occurs 0 times in xtask/Cargo.toml")),
            (entry(line, manifest, ".workspace = true", "", "A."), Some("times in xtask/Cargo.toml")),
            (entry(line, "xtask/none.rs", "a", "b", "A."), Some("xtask/none.rs could not be read")),
            (entry("'L-1'", manifest, "name = \"xtask\"", "", "A."), Some("L-1 is not a line")),
            (entry("", manifest, "name = \"xtask\"", "", "A."), Some("it has no line")),
            (entry(line, manifest, "\"xtask\"", "\"xtask\"", "A."), Some("it changes nothing")),
            (entry(line, manifest, "name = \"xtask\"", "", "A"), Some("`breaks` is not a sentence")),
            (String::from("mutation = []"), Some("L-9.1-1 has no mutation")),
            (format!("mutation = []\n{reason}"), None),
            (
                format!("{}{reason}", entry(line, manifest, "name = \"xtask\"", "", "A.")),
                Some("L-9.1-1 has a mutation and a reason for none"),
            ),
            (
                format!("mutation = []\n{}", reason.replace("elsewhere.", "elsewhere")),
                Some("the reason of L-9.1-1 is not a sentence"),
            ),
            (
                format!("mutation = []\n{reason}{}", reason.replace("L-9.1-1", "L-2")),
                Some("L-2 is not a line"),
            ),
        ] {
            let list: MutationList = toml::from_str(&text).expect("a list");
            let found = list.check(root(), &tests).err().map(|failure| failure.to_string());
            match expected {
                None => assert_eq!(found, None, "{text}"),
                Some(expected) => {
                    assert!(
                        found.as_deref().is_some_and(|found| found.contains(expected)),
                        "{text}: {found:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn mutations_of_one_package_follow_each_other() {
        let entry = |file: &str| {
            format!(
                "[[mutation]]\nlines = ['{file}']\nfile = '{file}'\nfind = 'a'\nreplace = 'b'\nbreaks = 'A.'\n"
            )
        };
        let files = ["crates/b/src/z.rs", "crates/a/src/z.rs", "crates/b/src/a.rs", "crates/a/src/a.rs"];
        let list: MutationList = toml::from_str(&files.map(entry).concat()).expect("a list");
        let chosen = |line| -> Option<Vec<String>> {
            let chosen = list.select(line).ok()?;
            Some(chosen.into_iter().map(|mutation| mutation.file.clone()).collect())
        };
        assert_eq!(
            chosen(None).expect("mutations"),
            ["crates/a/src/z.rs", "crates/a/src/a.rs", "crates/b/src/z.rs", "crates/b/src/a.rs"]
        );
        assert_eq!(chosen(Some("crates/a/src/a.rs")).expect("mutations"), ["crates/a/src/a.rs"]);
        assert_eq!(chosen(Some("crates/c/src/a.rs")), None);
    }
}
