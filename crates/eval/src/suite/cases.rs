//! Cases of cheats: directories with `case.toml`, a cheating change and its honest twin. Each case is two instances.

use std::path::Path;

use pintle_env::shell_word;
use pintle_host::failure::Failure;
use pintle_host::process_env::read_text_if_exists;
use pintle_workflow::contract::{
    CandidatePlan, Contract, OnWeakEvidence, PassCondition, TaskCheck, describe_toml_error,
};
use serde::Deserialize;

use super::{
    CheatCase, CheatClass, GoldChange, HiddenTests, Instance, InstanceSource, ScriptedProposal, Suite,
};
use crate::machine::Machine;

/// Expected end of a cheat whose evidence may hold if it is weak. The contract then asks about weak evidence.
const ASKS: &str = "asks a person";

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
    /// Whether each clone has `node_modules` with the programs of `needs`.
    #[serde(default)]
    packages: bool,
    class: Option<CheatClass>,
    anchor: AnchorEntry,
    #[serde(rename = "check")]
    checks: Vec<CheckEntry>,
    review: Option<ReviewEntry>,
    expected: ExpectedEntry,
}

#[derive(Debug, Deserialize)]
struct AnchorEntry {
    #[serde(flatten)]
    proposal: ScriptedProposal,
    cheat_command: Option<String>,
}

#[derive(Debug, Deserialize)]
struct CheckEntry {
    name: String,
    #[serde(flatten)]
    proposal: ScriptedProposal,
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
    honest: String,
}

/// Loads a directory of cases.
pub(super) fn load(directory: &Path, machine: &Machine) -> Result<Suite, Failure> {
    let mut instances = Vec::new();
    let mut cases = machine.process_env().directories_in(directory);
    cases.sort();
    for case in cases {
        let file = case.join("case.toml");
        let Some(text) = read_text_if_exists("case", &file)? else { continue };
        let parsed: CaseFile = toml::from_str(&text).map_err(|error| {
            Failure::usage(format!("{}: {}", file.display(), describe_toml_error(&error, &text)))
        })?;
        parsed.check(&file)?;
        for is_cheat in [true, false] {
            instances.push(parsed.build(&case, is_cheat, machine)?);
        }
    }
    if instances.is_empty() {
        let message = format!("{}: expected suite.toml, or directories with case.toml", directory.display());
        return Err(Failure::usage(message));
    }
    let name = directory.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(Suite { name, instances, _generated: None })
}

impl CaseFile {
    fn check(&self, file: &Path) -> Result<(), Failure> {
        let refuse = |problem: &str| Err(Failure::usage(format!("{}: {problem}", file.display())));
        if !["not done", ASKS].contains(&self.expected.cheat.as_str()) || self.expected.honest != "done" {
            return refuse("expected: `cheat` is `not done` or `asks a person`, and `honest` is `done`");
        }
        match self.checks.is_empty() {
            true => refuse("expected at least one [[check]]"),
            false => Ok(()),
        }
    }

    /// Returns the instance with the cheat, or with its honest twin.
    fn build(&self, case: &Path, is_cheat: bool, machine: &Machine) -> Result<Instance, Failure> {
        let existing = |name: &str| {
            let path = case.join(name);
            machine.process_env().is_directory(&path).then_some(path)
        };
        let change = |name: &str| GoldChange {
            files: existing(name),
            script: Some(case.join(format!("{name}.sh"))).filter(|path| path.is_file()),
            ..GoldChange::default()
        };
        let has_rival = self.rivals && is_cheat;
        let second_anchor = existing("hidden").zip(self.checks.first().map(|check| check.proposal.clone()));
        let second_command = second_anchor.as_ref().map(|(_, proposal)| proposal.command.clone());
        let contract = self.contract(is_cheat, second_anchor.is_some())?;
        let cheat_anchor = existing("cheat-anchor").zip(self.anchor.cheat_command.clone());
        let mut proposal = self.anchor.proposal.clone();
        let mut anchor = existing("anchor");
        if let Some((files, command)) = cheat_anchor.filter(|_| is_cheat) {
            (anchor, proposal.command) = (Some(files), command);
        }
        let name = case.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let twin = if is_cheat { "cheat" } else { "honest" };
        let source = InstanceSource::Files(case.join("base"));
        Ok(Instance {
            tags: vec![self.language.clone(), self.ecosystem.clone(), twin.to_owned()],
            prepare: self.prepare(),
            tests: HiddenTests {
                files: [existing("anchor"), existing("hidden")].into_iter().flatten().collect(),
                fail_to_pass: [self.anchor.proposal.command.clone()]
                    .into_iter()
                    .chain(second_command)
                    .collect(),
                pass_to_pass: self.checks.iter().map(|check| check.proposal.command.clone()).collect(),
                ..HiddenTests::default()
            },
            gold: (!is_cheat).then(|| change("honest")),
            contract: Some(contract),
            cheat: Some(CheatCase {
                is_cheat,
                change: change(twin),
                rival: has_rival.then(|| change("honest")),
                anchor,
                proposal,
                second_anchor,
                review_finds: self.review.as_ref().map(|review| review.finds.clone()),
                class: self.class,
            }),
            needs: self.needs.clone(),
            ..Instance::new(format!("{name}/{twin}"), self.goal.clone(), source)
        })
    }

    /// Returns the command that links the packages of an installed program into a clone.
    fn prepare(&self) -> Option<String> {
        let program = self.needs.first().filter(|_| self.packages)?;
        let program = shell_word(program);
        Some(format!(
            "[ -e node_modules ] || {{ program=$(readlink -f \"$(command -v {program})\") && \
             ln -s \"${{program%%/node_modules/*}}/node_modules\" node_modules; }}"
        ))
    }

    /// Returns the contract of a run with one attempt of each candidate.
    fn contract(&self, is_cheat: bool, has_second_anchor: bool) -> Result<Contract, Failure> {
        let checks = self.checks.iter().map(|check| {
            let ScriptedProposal { command, results, report } = &check.proposal;
            let mut built = TaskCheck::new(&check.name, command).with_pass(check.pass);
            (built.results, built.report, built.runs) = (*results, report.clone(), 1);
            built
        });
        let candidates = if self.rivals && is_cheat { 2 } else { 1 };
        let contract = Contract::new(&self.goal)
            .with_attempts(1)
            .with_candidates((0..candidates).map(|_| CandidatePlan::default()));
        let mut contract = checks.fold(contract, Contract::with_check);
        contract.prepare = self.prepare();
        if !has_second_anchor {
            contract.evidence.hidden_anchor = Some(false);
        }
        if is_cheat && self.expected.cheat == ASKS {
            contract.evidence.on_weak = OnWeakEvidence::Ask;
        }
        contract.check().map_err(|error| Failure::usage(error.to_string()))?;
        Ok(contract)
    }
}
