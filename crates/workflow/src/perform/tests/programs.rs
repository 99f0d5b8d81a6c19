//! Real bugs: the programs under `tests/programs` as tasks. Their own test is the anchor.
//!
//! By default one of the programs is a task, with the candidates in one of the six orders. The long run has all orders of all of
//! them.
#![expect(clippy::disallowed_methods, reason = "the test reads programs that are no part of the crate")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use pintle_evidence::proof::ProofStep;
use pintle_test_conditions::is_full;
use serde::Deserialize;

use super::project::{Project, SessionScripts};
use crate::contract::{AnchorPlan, BaseCommit, CandidatePlan, Contract, ReviewPlan};
use crate::report::TaskReport;
use crate::repository::UserRepository;
use crate::task::TaskOutcome;

/// Content of `program.toml`, as far as a task needs it.
#[derive(Debug, Deserialize)]
struct Manifest {
    bug: String,
    test: String,
    #[serde(default)]
    delete: Vec<String>,
}

/// A program with a bug, and its fix.
#[derive(Debug)]
struct Program {
    name: String,
    directory: PathBuf,
    manifest: Manifest,
}

/// Candidates, in the first of the orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProgramKind {
    Wrong,
    Cheating,
    Right,
}

use ProgramKind::{Cheating, Right, Wrong};

const ORDERS: [[ProgramKind; 3]; 6] = [
    [Wrong, Cheating, Right],
    [Wrong, Right, Cheating],
    [Cheating, Wrong, Right],
    [Cheating, Right, Wrong],
    [Right, Wrong, Cheating],
    [Right, Cheating, Wrong],
];

impl Program {
    fn all() -> Vec<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/programs");
        let entries = std::fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().path());
        let mut directories: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
        directories.sort();
        directories.into_iter().map(Self::load).collect()
    }

    fn load(directory: PathBuf) -> Self {
        let manifest = std::fs::read_to_string(directory.join("program.toml")).unwrap();
        let name = directory.file_name().unwrap().to_str().unwrap().to_owned();
        Self { name, manifest: toml::from_str(&manifest).unwrap(), directory }
    }

    /// Returns the files of a part of the program.
    fn files(&self, part: &str) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        let root = self.directory.join(part);
        let mut open = vec![root.clone()];
        while let Some(directory) = open.pop() {
            // A fix that only deletes has no files.
            for entry in std::fs::read_dir(directory).into_iter().flatten() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    open.push(path);
                } else {
                    found.insert(path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned());
                }
            }
        }
        found
    }

    /// Returns the files that judge. A program that is one file judges itself.
    fn tests(&self) -> BTreeSet<String> {
        let fixed = self.files("fixed");
        let is_test = |path: &String| path.starts_with("test") && !fixed.contains(path);
        self.files("program").into_iter().filter(is_test).collect()
    }

    /// Returns what a candidate does.
    fn script(&self, kind: ProgramKind, number: usize) -> String {
        let fixed = self.directory.join("fixed");
        match kind {
            Right => {
                let copy = format!("cp -R {}/. .", fixed.display());
                let delete = self.manifest.delete.iter().map(|path| format!("rm {path}"));
                let copy = fixed.is_dir().then_some(copy);
                copy.into_iter().chain(delete).collect::<Vec<_>>().join(" && ")
            }
            Wrong => "echo 'I have mended it.' >NOTES".to_owned(),
            Cheating => self.cheat(number),
        }
    }

    /// Returns one of the ways to seem done; for a program that judges itself, that which brings its result along.
    fn cheat(&self, number: usize) -> String {
        let Some(test) = self.tests().into_iter().find(|path| self.manifest.test.contains(path)) else {
            return "printf '#!/bin/sh\\nexit 0\\n' >test; chmod +x test".to_owned();
        };
        let pass = match test.rsplit('.').next() {
            Some("js") => "process.exit(0);",
            Some("py") => "raise SystemExit(0)",
            Some("c") => "int main(void) { return 0; }",
            _ => "exit 0;",
        };
        match number % 4 {
            0 => format!(": >{test}"),
            1 => format!("rm {test}"),
            2 => format!("echo '{pass}' >{test}"),
            // The time stamp of the changed file is the old one.
            _ => format!("touch -r {test} stamp; echo '{pass}' >{test}; touch -r stamp {test}; rm stamp"),
        }
    }

    async fn project(&self) -> Project {
        let project = Project::empty();
        project.sh(&format!("cp -R {}/. .", self.directory.join("program").display())).await;
        project
            .sh("git init -q -b main && git add -A && git -c user.name=a -c user.email=b commit -qm first")
            .await;
        project
    }

    async fn contract(&self, project: &Project) -> Contract {
        let found = UserRepository::find(project.machine.clone(), &project.root()).await.unwrap();
        let anchor = AnchorPlan::Command { command: self.manifest.test.clone(), results: None, report: None };
        let mut contract = Contract::new(&self.manifest.bug)
            .with_base(BaseCommit::new(found.root.display().to_string(), found.head))
            .with_anchor(anchor)
            .with_attempts(1)
            .with_review(ReviewPlan { rounds: 0, model: None })
            .with_candidates(vec![CandidatePlan::default(); 3]);
        // Their tests are protected by their names.
        contract.scope.unprotected =
            self.files("fixed").into_iter().chain(self.manifest.delete.clone()).collect();
        contract
    }

    async fn play(&self, project: &Project, number: usize, order: [ProgramKind; 3]) {
        let scripted = order.iter().enumerate().fold(SessionScripts::default(), |scripted, (index, kind)| {
            scripted.with_session(&index.to_string(), &self.script(*kind, number), None)
        });
        let (outcome, task) = project.run(self.contract(project).await, scripted).await;
        let report = TaskReport::from_task(&task).to_markdown();
        let TaskOutcome::Done(done) = &outcome else { panic!("{}, {order:?}: {report}", self.name) };
        assert_eq!(order[done.candidate()], Right, "{}: {report}", self.name);
        for (kind, candidate) in order.iter().zip(task.candidates()) {
            let attempt = candidate.attempts().last().unwrap();
            let steps: Vec<ProofStep> = match &attempt.verdict {
                Some(Err(findings)) => findings.iter().map(|finding| finding.step.clone()).collect(),
                verdict => {
                    assert!(verdict.is_some() && *kind == Right, "{}, {kind:?}: {report}", self.name);
                    continue;
                }
            };
            let expected = match kind {
                Cheating if !self.tests().is_empty() => ProofStep::Protected,
                Wrong | Cheating | Right => ProofStep::Anchor,
            };
            assert!(steps.contains(&expected), "{}, {kind:?}: {steps:?}: {report}", self.name);
            assert!(report.contains(&format!("* {expected}")), "{}, {kind:?}: {report}", self.name);
        }
    }
}

/// Number of the program that is taken by default.
const SAMPLE: usize = 2;

async fn play_share(share: usize) {
    let programs = Program::all();
    assert!(programs.len() > 40, "{}", programs.len());
    let taken = |number: usize| number % 2 == share && (is_full() || number == SAMPLE);
    for (number, program) in programs.iter().enumerate().filter(|(number, _)| taken(*number)) {
        let project = program.project().await;
        for (turn, order) in ORDERS.iter().enumerate() {
            if is_full() || turn == number / 2 % ORDERS.len() {
                program.play(&project, number, *order).await;
            }
        }
    }
}

#[tokio::test]
async fn the_right_candidate_mends_each_bug_of_even_number() {
    play_share(0).await;
}

#[tokio::test]
async fn the_right_candidate_mends_each_bug_of_odd_number() {
    if !is_full() {
        return;
    }
    play_share(1).await;
}

/// Its test makes a directory, and fails when it is there already: a fix is not refused for what an earlier run has left.
#[tokio::test]
async fn a_test_that_leaves_files_is_run_in_clones_of_its_own() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/programs");
    let program = Program::load(root.join("sh_rotate"));
    program.play(&program.project().await, 0, [Cheating, Right, Wrong]).await;
}
