//! `xtask/weight.toml`, the committed figures.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::{
    failure::{Context as _, Failure},
    metadata::Metadata,
};

pub(super) const PATH: &str = "xtask/weight.toml";

/// Header of the last section of the file, which `--write` replaces.
const CHECK: &str = "[check]\n";

/// CPU time of a cold check per layer, in units of the reference.
pub(super) type Ratios = BTreeMap<String, f64>;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    /// Target platform for which crates are counted, so that every machine gets the same counts.
    pub(super) target: String,
    pub(super) crates: BTreeMap<String, usize>,
    /// Sets of features of the library, in the order of the page.
    #[serde(default)]
    pub(super) sets: Vec<FeatureSet>,
    pub(super) reference: Reference,
    pub(super) check: Ratios,
}

/// Features of the library for one kind of application, in place of the default ones.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FeatureSet {
    /// Name of its cold check. Without one, only its crates are counted.
    pub(super) name: Option<String>,
    /// `None` is all features.
    pub(super) features: Option<Vec<String>>,
    pub(super) crates: usize,
}

impl FeatureSet {
    /// Returns the arguments of cargo that select the features.
    pub(super) fn arguments(&self) -> Vec<String> {
        match &self.features {
            Some(features) => {
                vec!["--no-default-features".to_owned(), "--features".to_owned(), features.join(",")]
            }
            None => vec!["--all-features".to_owned()],
        }
    }

    /// Returns the name of the set for messages.
    pub(super) fn title(&self) -> String {
        self.features.as_ref().map_or_else(|| "all features".to_owned(), |features| features.join(","))
    }
}

/// A package whose cold check is measured, with certain features.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Subject {
    /// Key of its figure: a layer, or the name of a set of features.
    pub(super) name: String,
    /// Arguments of cargo.
    pub(super) arguments: Vec<String>,
}

impl Subject {
    fn new(name: &str, package: &str, features: Vec<String>) -> Self {
        let arguments = ["--package".to_owned(), package.to_owned()].into_iter().chain(features).collect();
        Self { name: name.to_owned(), arguments }
    }
}

/// Reference work, which does not depend on our code.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Reference {
    /// Layer whose check compiles the crates.
    pub(super) layer: String,
    /// Third-party crates whose total time is 1.
    pub(super) crates: Vec<String>,
    /// Percentage by which a layer may exceed its figure.
    pub(super) tolerance: f64,
}

impl Table {
    pub(super) fn load(metadata: &Metadata) -> Result<Self, Failure> {
        Self::parse(&read(metadata)?)
    }

    pub(super) fn parse(text: &str) -> Result<Self, Failure> {
        toml::from_str(text).with_context(|| format!("{PATH} could not be parsed"))
    }

    pub(super) fn require_every_library(&self, metadata: &Metadata) -> Result<(), Failure> {
        match metadata.libraries().find(|library| !self.crates.contains_key(&library.name)) {
            Some(library) => Err(Failure::new(format!("{PATH} has no entry for {}", library.name))),
            None => Ok(()),
        }
    }

    /// Returns each layer, and each set of features that has a name.
    pub(super) fn subjects(&self, library: &str) -> Vec<Subject> {
        let layers = self.crates.keys().map(|layer| Subject::new(layer, layer, Vec::new()));
        let named = self.sets.iter().filter_map(|set| Some((set.name.as_ref()?, set)));
        layers.chain(named.map(|(name, set)| Subject::new(name, library, set.arguments()))).collect()
    }

    pub(super) fn with_checks(self, check: Ratios) -> Self {
        Self { check, ..self }
    }

    pub(super) fn save_checks(&self, metadata: &Metadata) -> Result<(), Failure> {
        let text = rewritten(&read(metadata)?, &self.check)?;
        std::fs::write(metadata.workspace_root.join(PATH), text)
            .with_context(|| format!("{PATH} could not be written"))
    }
}

fn read(metadata: &Metadata) -> Result<String, Failure> {
    std::fs::read_to_string(metadata.workspace_root.join(PATH))
        .with_context(|| format!("{PATH} could not be read"))
}

/// Replaces the figures of the file and keeps everything before them.
fn rewritten(text: &str, ratios: &Ratios) -> Result<String, Failure> {
    let (before, _) =
        text.split_once(CHECK).ok_or_else(|| Failure::new(format!("{PATH} has no section `[check]`")))?;
    let figures: String = ratios.iter().map(|(name, ratio)| format!("{name} = {ratio:.2}\n")).collect();
    Ok(format!("{before}{CHECK}{figures}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Table, rewritten};

    #[test]
    fn writing_keeps_the_text_before_the_figures() {
        let ratios = BTreeMap::from([("new".to_owned(), 2.046)]);
        let text = "# Why.\ntarget = \"t\"\n\n[check]\nold = 1.0\n";
        assert_eq!(rewritten(text, &ratios).unwrap(), "# Why.\ntarget = \"t\"\n\n[check]\nnew = 2.05\n");
        assert!(rewritten("target = \"t\"\n", &ratios).is_err());
    }

    #[test]
    fn layers_and_named_sets_are_checked() {
        let table = Table::parse(
            "target = \"t\"\n[crates]\na = 1\n\
             [[sets]]\nname = \"small\"\nfeatures = [\"x\", \"y\"]\ncrates = 1\n\
             [[sets]]\nfeatures = [\"z\"]\ncrates = 1\n\
             [[sets]]\nname = \"everything\"\ncrates = 1\n\
             [reference]\nlayer = \"a\"\ncrates = []\ntolerance = 1.0\n[check]\n",
        )
        .unwrap();
        let subjects: Vec<String> = table
            .subjects("lib")
            .iter()
            .map(|subject| format!("{}: {}", subject.name, subject.arguments.join(" ")))
            .collect();
        assert_eq!(
            subjects,
            [
                "a: --package a",
                "small: --package lib --no-default-features --features x,y",
                "everything: --package lib --all-features",
            ]
        );
        let titles: Vec<String> = table.sets.iter().map(super::FeatureSet::title).collect();
        assert_eq!(titles, ["x,y", "z", "all features"]);
    }

    #[test]
    fn an_unknown_key_is_refused() {
        let failure = Table::parse("target = \"t\"\nseconds = 3\n[crates]\n[check]\n").unwrap_err();
        assert!(failure.chain().contains("unknown field `seconds`"), "{}", failure.chain());
    }
}
