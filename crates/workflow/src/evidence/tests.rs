//! Evidence that is enough, and findings that keep an attempt from being done.

mod controls;

use super::*;
use crate::anchor::AnchorFacts;
use crate::contract::{AnchorPlan, PassCondition, TaskCheck, TaskScope};
use crate::judging::JudgingPart;
use crate::results::{RecognizedResults, ResultsFormat};
use crate::tests::facts::{added, diff, modified, plain, results, run};

fn contract() -> Contract {
    let tests = TaskCheck::new("tests", "make test").with_results(ResultsFormat::Tap);
    Contract::new("Do it.").with_check(tests).with_check(TaskCheck::new("lints", "make lint"))
}

fn rules(contract: &Contract) -> PathRules {
    PathRules::new(&contract.scope).unwrap()
}

fn anchor() -> Anchor {
    anchor_facts().judge(&AnchorPlan::Test, &PathRules::new(&TaskScope::default()).unwrap()).unwrap()
}

fn anchor_facts() -> AnchorFacts {
    let failing = || run(1, "-new");
    AnchorFacts {
        session: None,
        patch: None,
        control: None,
        controls: Vec::new(),
        review: None,
        regression: Vec::new(),
        notes: Vec::new(),
        hidden: None,
        command: "make anchor".to_owned(),
        results: Some(ResultsFormat::Tap),
        report: None,
        files: vec![added("tests/test_new.py", 3)],
        runs: vec![failing(), failing(), failing()],
        failing_before: Default::default(),
    }
}

fn baseline(words: &str) -> Baseline {
    let code = i32::from(words.contains(['-', '!']));
    let checks = [
        ("tests".to_owned(), vec![run(code, words), run(code, words)]),
        ("lints".to_owned(), vec![plain(0), plain(0)]),
    ];
    Baseline { checks: checks.into(), ..Baseline::default() }
}

/// Facts about an attempt that is done.
fn done() -> CandidateFacts {
    CandidateFacts {
        control: None,
        controls: Vec::new(),
        revert: None,
        mutants: Vec::new(),
        hidden: Vec::new(),
        check_controls: Default::default(),
        unrestored: None,
        diff: diff([modified("src/sums.py", 2, 1)]),
        not_applied: None,
        protected: vec![],
        judging: None,
        secrets: vec![],
        anchor: vec![run(0, "+new"), run(0, "+new")],
        checks: [
            ("tests".to_owned(), vec![run(0, "+a +b +new"), run(0, "+a +b +new")]),
            ("lints".to_owned(), vec![plain(0), plain(0)]),
        ]
        .into(),
    }
}

fn judged(contract: &Contract, before: &str, facts: &CandidateFacts) -> String {
    match judge(contract, &rules(contract), Some(&anchor()), &baseline(before), facts) {
        Ok(proof) => {
            let checks = proof.checks().iter().map(|check| {
                let PassedCheck { name, passed, flaky, failing_before, .. } = check;
                format!("{name}: {passed} passed, flaky {flaky:?}, failing {failing_before:?}\n")
            });
            checks.collect()
        }
        Err(findings) => feedback(&findings),
    }
}

#[test]
fn an_attempt_with_all_its_evidence_is_done() {
    insta::assert_snapshot!(judged(&contract(), "+a +b", &done()), @r#"
    tests: 3 passed, flaky [], failing []
    lints: 0 passed, flaky [], failing []
    "#);
    let proof =
        judge(&contract(), &rules(&contract()), Some(&anchor()), &baseline("+a +b"), &done()).unwrap();
    assert_eq!((proof.diff().lines(), proof.anchor().unwrap().tests().len()), (3, 1));
}

#[test]
fn each_step_finds_what_it_is_for() {
    let strict = contract().with_scope(TaskScope {
        paths: vec!["src/**".to_owned()],
        max_lines: 10,
        ..TaskScope::default()
    });
    let with = |change: &dyn Fn(&mut CandidateFacts)| {
        let mut facts = done();
        change(&mut facts);
        judged(&strict, "+a +b", &facts)
    };
    let tests =
        |now: Vec<CommandRun>| with(&|facts| drop(facts.checks.insert("tests".to_owned(), now.clone())));
    let said: String = [
        with(&|facts| facts.diff.files.clear()),
        with(&|facts| facts.not_applied = Some("it is for another commit".to_owned())),
        with(&|facts| facts.diff.files.push(added("docs/x.md", 1))),
        with(&|facts| facts.diff.files.push(modified("tests/test_a.py", 1, 1))),
        with(&|facts| facts.diff.files.push(modified("src/.gitattributes", 1, 0))),
        with(&|facts| facts.protected.push("Makefile".to_owned())),
        with(&|facts| facts.secrets.push("src/key.py".to_owned())),
        with(&|facts| facts.diff.files.push(added("src/large.py", 100))),
        with(&|facts| facts.anchor.clear()),
        with(&|facts| facts.anchor[1] = run(1, "-new")),
        with(&|facts| facts.anchor = vec![run(0, "+other"), run(0, "+other")]),
        with(&|facts| facts.anchor = vec![run(0, "?new"), run(0, "?new")]),
        with(&|facts| facts.anchor = vec![CommandRun::new(CommandEnd::TimedOut).with_tests(results("+new"))]),
        with(&|facts| drop(facts.checks.remove("tests"))),
        with(&|facts| drop(facts.checks.insert("lints".to_owned(), vec![plain(0), plain(1)]))),
        with(&|facts| {
            drop(facts.checks.insert("lints".to_owned(), vec![CommandRun::new(CommandEnd::TimedOut)]))
        }),
        tests(vec![plain(0), plain(0)]),
        tests(vec![run(0, "+a +new"), run(0, "+a +new")]),
        tests(vec![run(0, "+a ?b +new"), run(0, "+a ?b +new")]),
        tests(vec![run(1, "+a -b +new"), run(1, "+a -b +new")]),
        tests(vec![run(0, "+a -b +new"), run(0, "+a -b +new")]),
        tests(vec![run(0, "+a +b +new"), run(1, "+a -b +new")]),
        tests(vec![run(1, "+a +b +new -mine"), run(1, "+a +b +new -mine")]),
        tests(vec![run(1, "+a +b +new"), run(1, "+a +b +new")]),
        tests(vec![CommandRun::new(CommandEnd::Killed(9))]),
    ]
    .concat();
    insta::assert_snapshot!(said, @r"
    - diff: nothing was changed
    - diff: it cannot be judged: it is for another commit
    - scope: `docs/x.md` changed, which is outside of the scope
    - protected files: `tests/test_a.py` changed, which is protected
    - protected files: `src/.gitattributes` changed, which is protected
    - protected files: `Makefile` changed, which is protected
    - secrets: `src/key.py` has something like a secret
    - size: 103 lines changed; at most 10 were agreed
    - anchor: it was not run
    - anchor: `new` passes only sometimes
    - anchor: `new` does not run
    - anchor: `new` is skipped
    - anchor: it did not end in its time
    - check tests: it was not run
    - check lints: it exited with 1
    - check lints: it did not end in its time
    - check tests: it has no results of tests
    - check tests: `a`, `b` passed before and does not run any more
    - check tests: `b` passed before and does not run any more
    - check tests: `b` passed before and is skipped
    - check tests: `b` passed before and fails
    - check tests: `b` passed before and fails
    - check tests: `b` passed before and passes only sometimes
    - check tests: `mine` is new and fails
    - check tests: it exited with 1
    - check tests: it was killed by signal 9
    - check tests: it has no results of tests
    - check tests: `a`, `b` passed before and does not run any more
    ");
}

/// Results that were recognized on the base count like results of the contract.
#[test]
fn recognized_results_are_compared_by_name() {
    let mut contract = contract();
    contract.checks[0].results = None;
    let judged = |now: CommandRun| {
        let mut before = baseline("+a +b");
        let results = RecognizedResults { format: ResultsFormat::Tap, report: None };
        before.recognized.insert("tests".to_owned(), results);
        let mut facts = done();
        facts.checks.insert("tests".to_owned(), vec![now.clone(), now]);
        match judge(&contract, &rules(&contract), Some(&anchor()), &before, &facts) {
            Ok(proof) => format!("has tests: {}", proof.checks()[0].has_tests),
            Err(findings) => feedback(&findings),
        }
    };
    for (now, expected) in [
        (run(0, "+a +b"), "has tests: true"),
        (run(0, "+a ?b"), "- check tests: `b` passed before and is skipped\n"),
        (run(0, "+a"), "- check tests: `b` passed before and does not run any more\n"),
        (
            plain(0),
            "- check tests: it has no results of tests\n\
             - check tests: `a`, `b` passed before and does not run any more\n",
        ),
    ] {
        assert_eq!(judged(now), expected);
    }
    let mut before = baseline("+a");
    before.checks.insert("tests".to_owned(), vec![plain(0), plain(0)]);
    let mut facts = done();
    facts.checks.insert("tests".to_owned(), vec![plain(0), plain(0)]);
    let proof = judge(&contract, &rules(&contract), Some(&anchor()), &before, &facts).unwrap();
    assert!(!proof.checks()[0].has_tests, "its exit code counts");
}

#[test]
fn files_that_judge_are_judged_by_their_facts() {
    let strict =
        contract().with_scope(TaskScope { paths: vec!["src/**".to_owned()], ..TaskScope::default() });
    let names = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect::<Vec<_>>();
    let with = |path: &str, judging: Option<JudgingFacts>| {
        let mut facts = done();
        facts.diff.files.push(modified(path, 1, 1));
        facts.judging = judging;
        judged(&strict, "+a +b", &facts).lines().next().unwrap_or_default().to_owned() + "\n"
    };
    let facts = JudgingFacts {
        by_command: names(&["check.sh", "src/calc.py"]),
        in_scope: names(&["src/calc.py"]),
        apart: names(&["tests/test_b.py"]),
        unaffected: names(&["src/Cargo.lock", "src/Cargo.toml"]),
        restorable: Vec::new(),
        parts: vec![JudgingPart { path: "package.json".to_owned(), parts: names(&["scripts.test", "jest"]) }],
    };
    let without_parts = JudgingFacts { parts: vec![], ..facts.clone() };
    let said: String = [
        with("check.sh", Some(without_parts.clone())),
        with("src/calc.py", Some(without_parts.clone())),
        with("tests/test_b.py", Some(without_parts.clone())),
        with("tests/test_a.py", Some(without_parts.clone())),
        with("src/Cargo.lock", Some(without_parts.clone())),
        with("src/Cargo.toml", Some(without_parts)),
        with("package.json", Some(facts)),
        // Records without these facts.
        with("src/package.json", None),
    ]
    .concat();
    insta::assert_snapshot!(said, @r"
    - protected files: `check.sh` changed, which is protected
    tests: 3 passed, flaky [], failing []
    tests: 3 passed, flaky [], failing []
    - protected files: `tests/test_a.py` changed, which is protected
    tests: 3 passed, flaky [], failing []
    tests: 3 passed, flaky [], failing []
    - protected files: `package.json` changed in `scripts.test`, `jest`, which judges the change
    - protected files: `src/package.json` changed, which is protected
    ");
    let mut only = done();
    only.diff = diff([added("tests/test_b.py", 1)]);
    only.judging = Some(JudgingFacts { apart: names(&["tests/test_b.py"]), ..JudgingFacts::default() });
    assert!(judged(&strict, "+a +b", &only).starts_with("- diff: nothing but new tests was added"));
}

#[test]
fn runs_on_the_base_that_were_cut_short_are_no_measure() {
    let check = TaskCheck::new("tests", "make test").with_results(ResultsFormat::Tap);
    let cut_short = CommandRun::new(CommandEnd::TimedOut).with_tests(results("+a"));
    for (pass, last, expected) in [
        (PassCondition::NoWorse, cut_short.clone(), Some("it did not end in its time")),
        (PassCondition::NoWorse, run(1, "+a -b"), None),
        // A check that has to succeed proves something without its runs on the base.
        (PassCondition::Success, cut_short, None),
    ] {
        let found = explain_incomparable(&check.clone().with_pass(pass), &[run(0, "+a +b"), last]);
        assert_eq!(found.as_deref(), expected, "{pass:?}");
    }
}

#[test]
fn what_failed_before_is_told_apart() {
    let with = |pass: PassCondition, before: &str, now: [CommandRun; 2]| {
        let mut contract = contract();
        contract.checks[0].pass = pass;
        let mut facts = done();
        facts.checks.insert("tests".to_owned(), now.to_vec());
        judged(&contract, before, &facts).lines().next().unwrap_or_default().to_owned() + "\n"
    };
    let old = || run(1, "+a -old +new");
    let said: String = [
        with(PassCondition::Success, "+a -old", [old(), old()]),
        with(PassCondition::NoWorse, "+a -old", [old(), old()]),
        with(PassCondition::NoWorse, "+a -old", [run(0, "+a +old"), run(0, "+a +old")]),
        with(PassCondition::NoWorse, "+a -old", [run(1, "-a -old"), run(1, "-a -old")]),
        with(PassCondition::NoWorse, "+a", [run(1, "+a"), run(1, "+a")]),
    ]
    .concat();
    insta::assert_snapshot!(said, @r#"
    - check tests: `old` fails still
    tests: 2 passed, flaky [], failing ["old"]
    tests: 2 passed, flaky [], failing []
    - check tests: `a` passed before and fails
    - check tests: it exited with 1
    "#);
    // A test that was flaky before proves nothing, and keeps nobody.
    let flaky = Baseline {
        checks: [
            ("tests".to_owned(), vec![run(0, "+a +b"), run(1, "+a -b")]),
            ("lints".to_owned(), vec![plain(0)]),
        ]
        .into(),
        ..Baseline::default()
    };
    let mut facts = done();
    facts.checks.insert("tests".to_owned(), vec![run(1, "+a -b +new"), run(0, "+a +b +new")]);
    let contract = contract();
    let proof = judge(&contract, &rules(&contract), Some(&anchor()), &flaky, &facts).unwrap();
    assert_eq!(
        (proof.checks()[0].passed, proof.checks()[0].flaky.as_slice()),
        (2, ["b".to_owned()].as_slice())
    );
}

#[test]
fn without_an_anchor_a_check_has_to_have_been_passed() {
    let contract = Contract::new("Write it down.")
        .with_anchor(AnchorPlan::None { because: "it is about documents".to_owned() });
    let mut facts = done();
    facts.checks.clear();
    let nothing = judge(&contract, &rules(&contract), None, &Baseline::default(), &facts).unwrap_err();
    assert_eq!(feedback(&nothing), "- anchor: nothing was run that proves it\n");
    let contract = contract.with_check(TaskCheck::new("links", "make links"));
    facts.checks.insert("links".to_owned(), vec![plain(0)]);
    let proof = judge(&contract, &rules(&contract), None, &Baseline::default(), &facts).unwrap();
    assert!(proof.anchor().is_none() && proof.checks().len() == 1);
}
