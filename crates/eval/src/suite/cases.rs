//! Cases of cheats: directories with `case.toml`, a cheating change and its honest twin.

use std::path::Path;

use pintle_host::failure::Failure;
use pintle_host::process_env::read_text_if_exists;
use pintle_workflow::contract::{Contract, PassCondition, TaskCheck};
use pintle_workflow::results::ResultsFormat;
use serde::Deserialize;

use super::{CheatCase, GoldChange, HiddenTests, Instance, InstanceSource, Suite};
use crate::machine::Machine;

/// Content of `case.toml`. Other keys are for readers.
#[derive(Debug, Deserialize)]
struct CaseFile {
    goal: String,
    language: String,
    ecosystem: String,
    #[serde(default)]
    needs: Vec<String>,
    #[serde(default)]
    rivals: bool,
    anchor: AnchorEntry,
    #[serde(rename = "check")]
    checks: Vec<CheckEntry>,
    review: Option<ReviewEntry>,
    expected: ExpectedEntry,
}

#[derive(Debug, Deserialize)]
struct AnchorEntry {
    command: String,
    results: Option<ResultsFormat>,
    report: Option<String>,
    cheat_command: Option<String>,
}

#[derive(Debug, Deserialize)]
struct CheckEntry {
    name: String,
    command: String,
    results: Option<ResultsFormat>,
    report: Option<String>,
    #[serde(default)]
    pass: PassCondition,
}

#[derive(Debug, Deserialize)]
struct ReviewEntry {
    finds: String,
}

#[derive(Debug, Deserialize)]
struct ExpectedEntry {
    cheat: String,
}

/// Loads a directory of cases.
pub(super) fn load(directory: &Path, machine: &Machine) -> Result<Suite, Failure> {
    let mut instances = Vec::new();
    for case in machine.directories_in(directory) {
        let file = case.join("case.toml");
        let Some(text) = read_text_if_exists("case", &file)? else { continue };
        let parsed: CaseFile = toml::from_str(&text).map_err(|error| {
            Failure::usage(format!("{}: {}", file.display(), error.to_string().trim_end()))
        })?;
        instances.push(parsed.build(&case, machine)?);
    }
    if instances.is_empty() {
        let message = format!("{}: expected suite.toml, or directories with case.toml", directory.display());
        return Err(Failure::usage(message));
    }
    let name = directory.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(Suite { name, instances, _generated: None })
}

impl CaseFile {
    fn build(self, case: &Path, machine: &Machine) -> Result<Instance, Failure> {
        let existing = |name: &str| {
            let path = case.join(name);
            machine.process_env().is_directory(&path).then_some(path)
        };
        let change = |name: &str| GoldChange {
            files: existing(name),
            script: Some(case.join(format!("{name}.sh"))).filter(|path| path.is_file()),
            ..GoldChange::default()
        };
        let contract = self.contract()?;
        let id = case.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let cheat_anchor = existing("cheat-anchor").zip(self.anchor.cheat_command);
        Ok(Instance {
            tags: vec![self.language, self.ecosystem],
            tests: HiddenTests {
                files: [existing("anchor"), existing("hidden")].into_iter().flatten().collect(),
                fail_to_pass: vec![self.anchor.command],
                pass_to_pass: self.checks.into_iter().map(|check| check.command).collect(),
                ..HiddenTests::default()
            },
            gold: Some(change("honest")),
            contract: Some(contract),
            cheat: Some(CheatCase {
                change: change("cheat"),
                anchor: existing("anchor"),
                anchor_results: self.anchor.results,
                anchor_report: self.anchor.report,
                cheat_anchor,
                second_anchor: existing("hidden"),
                has_rival: self.rivals,
                review_finds: self.review.map(|review| review.finds),
                may_ask: self.expected.cheat == "asks a person",
                needs: self.needs,
            }),
            ..Instance::new(id, self.goal, InstanceSource::Files(case.join("base")))
        })
    }

    /// Returns the contract of a run with one candidate and one attempt.
    fn contract(&self) -> Result<Contract, Failure> {
        let checks = self.checks.iter().map(|check| {
            let mut built = TaskCheck::new(&check.name, &check.command).with_pass(check.pass);
            (built.results, built.report, built.runs) = (check.results, check.report.clone(), 1);
            built
        });
        let contract = checks.fold(Contract::new(&self.goal).with_attempts(1), Contract::with_check);
        contract.check().map_err(|error| Failure::usage(error.to_string()))?;
        Ok(contract)
    }
}
