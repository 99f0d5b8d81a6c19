//! `xtask/figures.toml`, the goals and the measured values.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::{
    failure::{Context as _, Failure},
    metadata::Metadata,
};

pub(super) const PATH: &str = "xtask/figures.toml";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Table {
    /// CPU seconds of the reference crates on the machine of the goals, by profile.
    pub(super) reference_seconds: BTreeMap<String, f64>,
    pub(super) figures: BTreeMap<String, Entry>,
}

/// A figure with its goal.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Entry {
    /// Description in the table of the page.
    what: String,
    pub(super) unit: String,
    pub(super) source: Source,
    pub(super) goal: f64,
    /// Percentage by which the figure may exceed its goal.
    pub(super) tolerance: f64,
    measured: Option<f64>,
    /// Whether it is measured only if it is named.
    #[serde(default)]
    pub(super) on_request: bool,
}

/// How a figure is measured.
#[derive(Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) enum Source {
    /// Rows of a benchmark suite whose names contain this text.
    Bench { suite: String, row: String },
    /// CPU time of a build from nothing.
    BuildTime(BuildSelection),
    /// Size of the program.
    Size(BuildSelection),
}

/// Selection of a build of the command.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(deny_unknown_fields)]
pub(super) struct BuildSelection {
    pub(super) profile: String,
    pub(super) features: String,
}

impl Source {
    /// Returns whether the load of the machine affects the figure, and a measurement takes no longer than a minute or two.
    pub(super) fn is_repeatable(&self) -> bool {
        matches!(self, Self::Bench { .. })
    }
}

impl Entry {
    /// Returns the highest accepted value.
    pub(super) fn limit(&self) -> f64 {
        self.goal * (1.0 + self.tolerance / 100.0)
    }
}

impl Table {
    pub(super) fn load(metadata: &Metadata) -> Result<Self, Failure> {
        Self::parse(&read(metadata)?)
    }

    pub(super) fn parse(text: &str) -> Result<Self, Failure> {
        toml::from_str(text).with_context(|| format!("{PATH} could not be parsed"))
    }

    /// Writes the measured values. Returns the table with them.
    pub(super) fn save(self, metadata: &Metadata, measured: &BTreeMap<String, f64>) -> Result<Self, Failure> {
        let text = rewritten(&read(metadata)?, measured);
        let table = Self::parse(&text)?;
        std::fs::write(metadata.workspace_root.join(PATH), text)
            .with_context(|| format!("{PATH} could not be written"))?;
        Ok(table)
    }

    /// Returns the table of the page.
    pub(super) fn rendered(&self) -> String {
        let mut text = String::from(
            "| figure | name | measured | goal | tolerance | met |\n|---|---|---|---|---|---|\n",
        );
        for (key, Entry { what, unit, goal, tolerance, measured, .. }) in &self.figures {
            let value = measured.map_or_else(|| String::from("–"), |value| format!("{value:.2} {unit}"));
            let met = match measured {
                None => "–",
                Some(value) if value <= goal => "yes",
                Some(_) => "no",
            };
            text.push_str(&format!(
                "| {what} | `{key}` | {value} | {goal} {unit} | {tolerance} % | {met} |\n"
            ));
        }
        text
    }
}

fn read(metadata: &Metadata) -> Result<String, Failure> {
    std::fs::read_to_string(metadata.workspace_root.join(PATH))
        .with_context(|| format!("{PATH} could not be read"))
}

/// Replaces the measured values of the file, each below the tolerance of its figure, and keeps everything else.
fn rewritten(text: &str, measured: &BTreeMap<String, f64>) -> String {
    let mut new = String::new();
    let mut value = None;
    for line in text.split_inclusive('\n') {
        if line.starts_with('[') {
            let name = line.trim().strip_prefix("[figures.").and_then(|rest| rest.strip_suffix(']'));
            value = name.and_then(|name| measured.get(name));
        }
        if value.is_some() && line.starts_with("measured = ") {
            continue;
        }
        new.push_str(line);
        if let Some(value) = value.filter(|_| line.starts_with("tolerance = ")) {
            new.push_str(&format!("measured = {value:.2}\n"));
        }
    }
    new
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{BuildSelection, Source, Table, rewritten};

    #[test]
    fn the_committed_table_is_valid() {
        let table = Table::parse(include_str!("../../figures.toml")).unwrap();
        for (name, entry) in &table.figures {
            assert!(entry.goal > 0.0 && entry.tolerance >= 0.0, "{name}");
        }
        let shipped = BuildSelection { profile: "dist".to_owned(), features: "full".to_owned() };
        assert_eq!(table.figures["shipped-size"].source, Source::Size(shipped));
        assert_eq!(table.rendered().lines().count(), table.figures.len() + 2);
    }

    #[test]
    fn writing_replaces_the_measured_values_only() {
        let text = "# Why.\n[figures.a]\ngoal = 1.0\ntolerance = 2.0\nmeasured = 9.0\n\n\
                    # Why.\n[figures.b]\ntolerance = 2.0\non-request = true\n[figures.c]\ntolerance = 2.0\nmeasured = 9.0\n";
        let measured = BTreeMap::from([("a".to_owned(), 1.234), ("b".to_owned(), 5.0)]);
        assert_eq!(
            rewritten(text, &measured),
            "# Why.\n[figures.a]\ngoal = 1.0\ntolerance = 2.0\nmeasured = 1.23\n\n\
             # Why.\n[figures.b]\ntolerance = 2.0\nmeasured = 5.00\non-request = true\n[figures.c]\ntolerance = 2.0\nmeasured = 9.0\n"
        );
    }
}
