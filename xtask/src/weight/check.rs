//! Cold checks: the CPU time that compilers take for one layer alone, or for the library with a set of features.
//!
//! Each layer is checked on its own, with its own features, but all of them share one fresh target directory. Cargo
//! recompiles a crate only if another layer needs other features, and reports every unit that a check uses. The time of
//! a layer is the sum over its units, as if all of them had been compiled for it. A set of features is measured like a layer.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use serde::Deserialize;

use crate::{
    failure::{Context as _, Failure},
    metadata::Metadata,
    process,
};

use super::{
    cold::ColdChecks,
    table::{Ratios, Reference, Subject},
};

/// Results of the checks of all layers.
#[derive(Debug, Default)]
pub(super) struct Checks {
    /// Microseconds per unit, by its hash.
    times: BTreeMap<String, f64>,
    layers: BTreeMap<String, Vec<Unit>>,
}

/// A crate, a build script or its run, with certain features.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Unit {
    /// Name of the library or program; `None` for the run of a build script.
    name: Option<String>,
    hash: String,
}

impl Checks {
    /// Checks each layer in a fresh directory, which is kept for checks of the same units.
    pub(super) fn measure(metadata: &Metadata, subjects: &[Subject]) -> Result<Self, Failure> {
        Self::measure_in(&ColdChecks::fresh(metadata)?, metadata, subjects)
    }

    /// Checks some layers in another directory, which is removed, and leaves that of the first measurement as it is.
    pub(super) fn measure_again(metadata: &Metadata, subjects: &[Subject]) -> Result<Self, Failure> {
        let cold = ColdChecks::apart(metadata)?;
        let checks = Self::measure_in(&cold, metadata, subjects)?;
        cold.remove()?;
        Ok(checks)
    }

    /// Returns the units of one build, which printed `output`, under the name of `layer`.
    pub(super) fn of_build(cold: &ColdChecks, layer: &str, output: &str) -> Result<Self, Failure> {
        let layers = BTreeMap::from([(layer.to_owned(), units(output))]);
        Ok(Self { times: read_log(&cold.log())?, layers })
    }

    /// Returns the CPU seconds of the reference crates.
    pub(super) fn reference_seconds(&self, reference: &Reference) -> Result<f64, Failure> {
        Ok(self.reference(reference)? / 1e6)
    }

    fn measure_in(cold: &ColdChecks, metadata: &Metadata, subjects: &[Subject]) -> Result<Self, Failure> {
        let mut checks = Self::default();
        for subject in subjects {
            let mut check = process::cargo(&metadata.workspace_root);
            check.args(["check", "--locked", "--quiet", "--message-format=json"]).args(&subject.arguments);
            let output = process::capture(cold.with(&mut check)?)?;
            checks.layers.insert(subject.name.clone(), units(&output));
        }
        checks.times = read_log(&cold.log())?;
        Ok(checks)
    }

    /// Returns the time of each layer, in units of the reference.
    pub(super) fn ratios(&self, reference: &Reference) -> Result<Ratios, Failure> {
        let one = self.reference(reference)?;
        let (all, one_in_seconds) = (self.times.values().sum::<f64>() / 1e6, one / 1e6);
        println!("cold checks: {all:.0} s of CPU for all layers together; the unit is {one_in_seconds:.2} s");
        self.layers
            .iter()
            .map(|(layer, units)| {
                let time = units.iter().map(|unit| self.time_of(unit)).sum::<Result<f64, Failure>>()?;
                Ok((layer.clone(), time / one))
            })
            .collect()
    }

    fn reference(&self, reference: &Reference) -> Result<f64, Failure> {
        let units = self.layers.get(&reference.layer).map_or(&[][..], Vec::as_slice);
        let mut sum = 0.0;
        for name in &reference.crates {
            let unit = units.iter().find(|unit| unit.name.as_ref() == Some(name)).ok_or_else(|| {
                Failure::new(format!("the reference `{name}` is not compiled for {}", reference.layer))
            })?;
            sum += self.time_of(unit)?;
        }
        if sum > 0.0 { Ok(sum) } else { Err(Failure::new("the reference names no crate")) }
    }

    /// Returns the time of a unit. The run of a build script takes none if it started no compiler.
    fn time_of(&self, unit: &Unit) -> Result<f64, Failure> {
        match (self.times.get(&unit.hash), &unit.name) {
            (Some(time), _) => Ok(*time),
            (None, None) => Ok(0.0),
            (None, Some(name)) => Err(Failure::new(format!("there is no time for compiling {name}"))),
        }
    }
}

/// A line of cargo's JSON output, with the fields that are used.
#[derive(Deserialize)]
struct Message {
    reason: String,
    target: Option<Target>,
    #[serde(default)]
    filenames: Vec<PathBuf>,
    out_dir: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
    name: String,
}

/// Returns the units that a check used, compiled in this check or before.
fn units(output: &str) -> Vec<Unit> {
    let messages = output.lines().filter_map(|line| serde_json::from_str::<Message>(line).ok());
    let units: BTreeSet<Unit> = messages.filter_map(|message| unit(&message)).collect();
    units.into_iter().collect()
}

fn unit(message: &Message) -> Option<Unit> {
    match message.reason.as_str() {
        "compiler-artifact" => {
            let target = message.target.as_ref()?;
            let file = message.filenames.first()?;
            // The hash is in the directory of a build script, and in the file name of everything else.
            let hashed =
                if target.kind.iter().any(|kind| kind == "custom-build") { file.parent()? } else { file };
            Some(Unit { name: Some(target.name.replace('_', "-")), hash: hash_of(hashed)? })
        }
        "build-script-executed" => {
            Some(Unit { name: None, hash: hash_of(message.out_dir.as_ref()?.parent()?)? })
        }
        _ => None,
    }
}

/// Returns the part of a file name after the last hyphen.
pub(super) fn hash_of(path: &Path) -> Option<String> {
    let (_, hash) = path.file_stem()?.to_str()?.rsplit_once('-')?;
    Some(hash.to_owned())
}

fn read_log(path: &Path) -> Result<BTreeMap<String, f64>, Failure> {
    let text = std::fs::read_to_string(path).context("the log of the compilers could not be read")?;
    let mut times = BTreeMap::new();
    for line in text.lines() {
        let entry = line.split_once(' ').and_then(|(hash, micros)| Some((hash, micros.parse::<f64>().ok()?)));
        let (hash, micros) = entry
            .ok_or_else(|| Failure::new(format!("`{line}` is not a line of the log of the compilers")))?;
        *times.entry(hash.to_owned()).or_insert(0.0) += micros;
    }
    Ok(times)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Checks, Reference, Unit, units};

    const OUTPUT: &str = r#"{"reason":"compiler-artifact","target":{"kind":["custom-build"],"name":"build-script-build"},"filenames":["/t/debug/build/ring-0a/build-script-build"],"fresh":false}
{"reason":"build-script-executed","package_id":"ring","out_dir":"/t/debug/build/ring-0b/out"}
{"reason":"compiler-artifact","target":{"kind":["lib"],"name":"regex_syntax"},"filenames":["/t/debug/deps/libregex_syntax-0c.rmeta"],"fresh":true}
{"reason":"compiler-artifact","target":{"kind":["lib"],"name":"regex_syntax"},"filenames":["/t/debug/deps/libregex_syntax-0c.rmeta"],"fresh":true}
{"reason":"compiler-message","message":{"rendered":"irrelevant"}}
{"reason":"build-finished","success":true}
"#;

    fn unit(name: &str, hash: &str) -> Unit {
        Unit { name: (!name.is_empty()).then(|| name.to_owned()), hash: hash.to_owned() }
    }

    fn reference(crates: &[&str]) -> Reference {
        let crates = crates.iter().map(|name| (*name).to_owned()).collect();
        Reference { layer: "low".to_owned(), crates, tolerance: 10.0 }
    }

    #[test]
    fn each_unit_of_a_check_counts_once() {
        assert_eq!(
            units(OUTPUT),
            [unit("", "0b"), unit("build-script-build", "0a"), unit("regex-syntax", "0c")]
        );
    }

    #[test]
    fn the_time_of_a_layer_is_the_sum_of_its_units() {
        let times = [("0a", 1.0), ("0c", 4.0), ("0d", 6.0)].map(|(hash, time)| (hash.to_owned(), time));
        let low = vec![unit("", "0b"), unit("script", "0a"), unit("syn", "0c")];
        let high = vec![unit("syn", "0c"), unit("high", "0d")];
        let layers = BTreeMap::from([("low".to_owned(), low), ("high".to_owned(), high)]);
        let checks = Checks { times: BTreeMap::from(times), layers };
        let ratios = checks.ratios(&reference(&["syn"])).unwrap();
        assert_eq!(ratios, BTreeMap::from([("low".to_owned(), 1.25), ("high".to_owned(), 2.5)]));
    }

    #[test]
    fn a_missing_time_is_an_error() {
        let layers = BTreeMap::from([("low".to_owned(), vec![unit("syn", "0c")])]);
        let checks = Checks { times: BTreeMap::new(), layers };
        for (crates, message) in [
            (&["syn"][..], "there is no time for compiling syn"),
            (&["gone"], "the reference `gone` is not compiled for low"),
            (&[], "the reference names no crate"),
        ] {
            assert_eq!(checks.ratios(&reference(crates)).unwrap_err().to_string(), message);
        }
    }
}
