//! Cold checks: the processor time that the compilers take for one layer alone.
//!
//! Each layer is checked on its own, with the features that it asks for itself, but all of them in one fresh target
//! directory: cargo compiles a crate again only where another layer wants other features, and names what it would have
//! used. A layer's time is the sum over what its check names, as if everything had been compiled for it.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use serde::Deserialize;

use crate::{failure::Failure, metadata::Metadata, process};

use super::{
    table::{Ratios, Reference},
    wrapper,
};

/// What the checks of all layers took.
#[derive(Debug, Default)]
pub(super) struct Checks {
    /// Microseconds by the hash of a unit.
    took: BTreeMap<String, f64>,
    layers: BTreeMap<String, Vec<Unit>>,
}

/// A crate, a build script or the run of one, as cargo makes it for certain features.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Unit {
    /// The library's or program's name; none is the run of a build script.
    name: Option<String>,
    hash: String,
}

impl Checks {
    /// Checks each of these layers in a fresh directory, which is removed afterwards.
    pub(super) fn measure<'a>(
        metadata: &Metadata,
        layers: impl Iterator<Item = &'a String>,
    ) -> Result<Self, Failure> {
        let stage = Stage::create(metadata)?;
        let mut checks = Self::default();
        for layer in layers {
            let said = process::capture(&mut stage.check(metadata, layer)?)?;
            checks.layers.insert(layer.clone(), units(&said));
        }
        checks.took = read_log(&stage.log())?;
        stage.remove()?;
        Ok(checks)
    }

    /// Each layer's time in units of the reference.
    pub(super) fn ratios(&self, reference: &Reference) -> Result<Ratios, Failure> {
        let one = self.reference(reference)?;
        let (all, one_in_seconds) = (self.took.values().sum::<f64>() / 1e6, one / 1e6);
        println!("cold checks: {all:.0} s of CPU for all layers together; the unit is {one_in_seconds:.2} s");
        self.layers
            .iter()
            .map(|(layer, units)| {
                let took = units.iter().map(|unit| self.took_by(unit)).sum::<Result<f64, Failure>>()?;
                Ok((layer.clone(), took / one))
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
            sum += self.took_by(unit)?;
        }
        if sum > 0.0 { Ok(sum) } else { Err(Failure::new("the reference names no crate")) }
    }

    /// A build script's run takes nothing where it started no compiler; everything else is a compiler's work.
    fn took_by(&self, unit: &Unit) -> Result<f64, Failure> {
        match (self.took.get(&unit.hash), &unit.name) {
            (Some(took), _) => Ok(*took),
            (None, None) => Ok(0.0),
            (None, Some(name)) => Err(Failure::new(format!("it is not known what compiling {name} took"))),
        }
    }
}

/// A target directory of its own.
struct Stage {
    directory: PathBuf,
}

impl Stage {
    fn create(metadata: &Metadata) -> Result<Self, Failure> {
        let stage = Self { directory: metadata.target_directory.join("weight") };
        if stage.directory.exists() {
            stage.remove()?;
        }
        std::fs::create_dir_all(&stage.directory)
            .map_err(|cause| Failure::new("no directory could be made for the checks").because(cause))?;
        Ok(stage)
    }

    fn remove(&self) -> Result<(), Failure> {
        std::fs::remove_dir_all(&self.directory)
            .map_err(|cause| Failure::new("what was checked could not be removed").because(cause))
    }

    fn log(&self) -> PathBuf {
        self.directory.join("compilers.log")
    }

    fn check(&self, metadata: &Metadata, layer: &str) -> Result<std::process::Command, Failure> {
        let own = std::env::current_exe()
            .map_err(|cause| Failure::new("this program does not know its file").because(cause))?;
        let mut command = process::cargo(&metadata.workspace_root);
        command
            .args([
                "check",
                "--locked",
                "--quiet",
                "--message-format=json",
                "--package",
                layer,
                "--target-dir",
            ])
            .arg(self.directory.join("target"))
            .env("CARGO_INCREMENTAL", "0")
            .env("CC", self.c_compiler(&own)?)
            .env("RUSTC_WRAPPER", own)
            .env_remove("RUSTC_WORKSPACE_WRAPPER")
            .env(wrapper::LOG, self.log())
            .env(wrapper::REAL_CC, std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
        Ok(command)
    }

    /// This program under another name, by which it knows that no compiler comes before the arguments.
    fn c_compiler(&self, own: &Path) -> Result<PathBuf, Failure> {
        let path = self.directory.join(wrapper::CC_NAME);
        if !path.exists() {
            std::os::unix::fs::symlink(own, &path)
                .map_err(|cause| Failure::new("no wrapper of the C compiler could be made").because(cause))?;
        }
        Ok(path)
    }
}

/// A line of cargo's JSON, as far as it is needed.
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

/// What a check has used, compiled just now or before.
fn units(said: &str) -> Vec<Unit> {
    let messages = said.lines().filter_map(|line| serde_json::from_str::<Message>(line).ok());
    let units: BTreeSet<Unit> = messages.filter_map(|message| unit(&message)).collect();
    units.into_iter().collect()
}

fn unit(message: &Message) -> Option<Unit> {
    match message.reason.as_str() {
        "compiler-artifact" => {
            let target = message.target.as_ref()?;
            let file = message.filenames.first()?;
            // A build script lies in a directory with the hash; everything else has it in its name.
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

/// What follows the last hyphen of a file's name.
pub(super) fn hash_of(path: &Path) -> Option<String> {
    let (_, hash) = path.file_stem()?.to_str()?.rsplit_once('-')?;
    Some(hash.to_owned())
}

fn read_log(path: &Path) -> Result<BTreeMap<String, f64>, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|cause| Failure::new("the compilers wrote nothing down").because(cause))?;
    let mut took = BTreeMap::new();
    for line in text.lines() {
        let entry = line.split_once(' ').and_then(|(hash, micros)| Some((hash, micros.parse::<f64>().ok()?)));
        let (hash, micros) =
            entry.ok_or_else(|| Failure::new(format!("`{line}` is not what a compiler took")))?;
        *took.entry(hash.to_owned()).or_insert(0.0) += micros;
    }
    Ok(took)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Checks, Reference, Unit, units};

    const SAID: &str = r#"{"reason":"compiler-artifact","target":{"kind":["custom-build"],"name":"build-script-build"},"filenames":["/t/debug/build/ring-0a/build-script-build"],"fresh":false}
{"reason":"build-script-executed","package_id":"ring","out_dir":"/t/debug/build/ring-0b/out"}
{"reason":"compiler-artifact","target":{"kind":["lib"],"name":"regex_syntax"},"filenames":["/t/debug/deps/libregex_syntax-0c.rmeta"],"fresh":true}
{"reason":"compiler-artifact","target":{"kind":["lib"],"name":"regex_syntax"},"filenames":["/t/debug/deps/libregex_syntax-0c.rmeta"],"fresh":true}
{"reason":"compiler-message","message":{"rendered":"no matter"}}
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
    fn a_check_names_each_unit_once_whether_it_was_compiled_or_not() {
        assert_eq!(
            units(SAID),
            [unit("", "0b"), unit("build-script-build", "0a"), unit("regex-syntax", "0c")]
        );
    }

    #[test]
    fn a_layer_takes_what_its_units_took_in_whichever_check() {
        let took = [("0a", 1.0), ("0c", 4.0), ("0d", 6.0)].map(|(hash, took)| (hash.to_owned(), took));
        let low = vec![unit("", "0b"), unit("script", "0a"), unit("syn", "0c")];
        let high = vec![unit("syn", "0c"), unit("high", "0d")];
        let layers = BTreeMap::from([("low".to_owned(), low), ("high".to_owned(), high)]);
        let checks = Checks { took: BTreeMap::from(took), layers };
        let ratios = checks.ratios(&reference(&["syn"])).unwrap();
        assert_eq!(ratios, BTreeMap::from([("low".to_owned(), 1.25), ("high".to_owned(), 2.5)]));
    }

    #[test]
    fn what_was_not_measured_is_no_zero() {
        let layers = BTreeMap::from([("low".to_owned(), vec![unit("syn", "0c")])]);
        let checks = Checks { took: BTreeMap::new(), layers };
        for (crates, told) in [
            (&["syn"][..], "it is not known what compiling syn took"),
            (&["gone"], "the reference `gone` is not compiled for low"),
            (&[], "the reference names no crate"),
        ] {
            assert_eq!(checks.ratios(&reference(crates)).unwrap_err().to_string(), told);
        }
    }
}
