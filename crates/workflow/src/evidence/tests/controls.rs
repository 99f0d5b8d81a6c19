//! Controls, runs without the sources, and mutants.

use super::*;
use crate::control_plan::ControlKind;

const BOTH: [ControlKind; 2] = [ControlKind::ChangedValue, ControlKind::Negated];

fn control(kind: ControlKind, run: CommandRun) -> ControlTest {
    ControlTest { test: "new".to_owned(), run, kind, line: 3 }
}

#[test]
fn a_variant_fails_by_its_own_assertion() {
    for (kind, run, expected) in [
        (ControlKind::ChangedValue, run(1, "-t.new +t.newer"), true),
        (ControlKind::Negated, run(1, "-new[1] -new[2]"), true),
        (ControlKind::Negated, run(1, "-new[1] +new[2]"), false),
        (ControlKind::Negated, run(1, "!new"), false),
        (ControlKind::ChangedValue, run(0, "-new"), false),
        (ControlKind::ChangedValue, run(1, "-newer"), false),
        (ControlKind::ChangedValue, plain(1), true),
        (ControlKind::ChangedValue, plain(0), false),
        (ControlKind::ChangedValue, plain(127), false),
        (ControlKind::ChangedValue, CommandRun::new(CommandEnd::Killed(6)), true),
        (ControlKind::ChangedValue, CommandRun::new(CommandEnd::TimedOut), false),
        (ControlKind::Unconditional, run(1, "!newer"), true),
        (ControlKind::Unconditional, plain(1), false),
    ] {
        assert_eq!(control(kind, run.clone()).has_failed(), expected, "{kind:?}: {run:?}");
    }
}

#[test]
fn results_mean_nothing_if_a_control_does_not_fail() {
    let facts = AnchorFacts {
        control: Some("tests/test_new.py".to_owned()),
        controls: BOTH.to_vec(),
        ..anchor_facts()
    };
    let contract = contract();
    let anchor = facts.judge(&AnchorPlan::Test, &rules(&contract)).unwrap();
    let with = |controls: Vec<ControlTest>, revert: Option<RevertControl>| {
        let facts = CandidateFacts { controls, revert, ..done() };
        match judge(&contract, &rules(&contract), Some(&anchor), &baseline("+a +b"), &facts) {
            Ok(_) => "done\n".to_owned(),
            Err(findings) => feedback(&findings),
        }
    };
    let failing = || BOTH.map(|kind| control(kind, run(1, "-new"))).to_vec();
    let revert = |runs| Some(RevertControl { files: vec!["vite.config.js".to_owned()], runs });
    let found: String = [
        with(failing(), None),
        with(vec![], None),
        with(vec![control(ControlKind::ChangedValue, run(0, "+new")), failing().remove(1)], None),
        with(failing(), revert(vec![run(1, "-new")])),
        with(failing(), revert(vec![run(0, "+new")])),
    ]
    .concat();
    insta::assert_snapshot!(found, @r"
    done
    - anchor: its control with a changed expected value was not run
    - anchor: its control with negated assertions was not run
    - anchor: its test with a changed expected value does not fail: its assertions mean nothing here
    done
    - anchor: it passes with only `vite.config.js`, which is no source; expected that the sources are mended
    ");
}

#[test]
fn a_mutant_that_no_test_notices_makes_the_evidence_weak() {
    let mutant = |is_noticed| MutantRun {
        file: "src/sums.py".to_owned(),
        line: 2,
        from: "+".to_owned(),
        to: "-".to_owned(),
        is_noticed,
    };
    let contract = contract();
    for (mutants, expected) in
        [(vec![], false), (vec![mutant(true)], false), (vec![mutant(true), mutant(false)], true)]
    {
        let facts = CandidateFacts { mutants, ..done() };
        let proof = judge(&contract, &rules(&contract), Some(&anchor()), &baseline("+a +b"), &facts).unwrap();
        assert_eq!(proof.is_weak(), expected, "{proof:?}");
    }
}

#[test]
fn a_test_that_passes_with_negated_assertions_judges_nothing() {
    let contract = contract();
    let with = |run: CommandRun| {
        let facts = CandidateFacts { check_controls: [("tests".to_owned(), run)].into(), ..done() };
        let controlled: BTreeSet<String> = ["a", "b"].map(str::to_owned).into();
        let baseline =
            Baseline { controlled: [("tests".to_owned(), controlled)].into(), ..baseline("+a +b") };
        match judge(&contract, &rules(&contract), Some(&anchor()), &baseline, &facts) {
            Ok(_) => "done\n".to_owned(),
            Err(findings) => feedback(&findings),
        }
    };
    let found: String = [
        run(1, "-a -b"),
        run(1, "-a !b"),
        run(1, "-a +b"),
        run(1, "-a"),
        run(0, ""),
        run(1, ""),
        run(0, "?a ?b"),
    ]
    .map(with)
    .concat();
    insta::assert_snapshot!(found, @r"
    done
    done
    - check tests: `b` does not fail with negated assertions: its result means nothing here
    done
    - check tests: `a`, `b` does not fail with negated assertions: its result means nothing here
    - check tests: `a`, `b` does not fail with negated assertions: its result means nothing here
    - check tests: `a`, `b` does not fail with negated assertions: its result means nothing here
    ");
}

#[test]
fn changed_judges_without_which_the_rest_fails_are_a_question() {
    let contract = contract();
    let judging = JudgingFacts { restorable: vec!["golden/a.txt".to_owned()], ..JudgingFacts::default() };
    let changed = || diff([modified("src/sums.py", 2, 1), modified("golden/a.txt", 1, 1)]);
    let unrestored =
        CandidateFacts { diff: changed(), judging: Some(judging.clone().with_allowed()), ..done() };
    let mut facts = CandidateFacts { diff: changed(), judging: Some(judging), ..done() };
    facts.checks.insert("tests".to_owned(), vec![run(1, "-a +b +new"), run(1, "-a +b +new")]);
    let forced = |facts: &CandidateFacts| {
        judge_unrestored(&contract, &rules(&contract), Some(&anchor()), &baseline("+a +b"), facts)
    };
    assert_eq!(forced(&facts), None);
    facts.unrestored = Some(Box::new(unrestored));
    assert_eq!(forced(&facts).unwrap().forced(), ["golden/a.txt"]);
    let found = judged(&contract, "+a +b", &facts);
    assert!(found.contains("protected files: `golden/a.txt` changed, which is protected"), "{found}");
    assert!(found.contains("a user decides at the end"), "{found}");
    let unrestored = facts.unrestored.as_mut().unwrap();
    unrestored.checks.insert("tests".to_owned(), vec![run(1, "-a +b +new"), run(1, "-a +b +new")]);
    assert_eq!(forced(&facts), None);
}
