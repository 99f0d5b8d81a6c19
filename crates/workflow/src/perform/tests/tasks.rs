//! Tasks that reach their goal, and such that cannot.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use pintle_agent::SessionId;
use pintle_evidence::results::ResultsFormat;
use pintle_store::{MemoryStore, SessionStore as _};
use pintle_test_conditions::{cases, is_full};
use serde_json::json;

use super::project::{FILES, PATIENCE, Project, RIGHT, SessionScripts, WRONG, anchor_after, wait_for};
use crate::contract::{AnchorPlan, DecisionGate, PassCondition, ReviewPlan, TaskCheck};
use crate::report::TaskReport;
use crate::repository::read_blob;
use crate::task::{BlockReason, TaskOutcome, TaskSignal};
use crate::{LocalTaskHost, post_signal};

#[tokio::test]
async fn the_right_candidate_is_chosen_in_every_order() {
    let project = Project::new().await;
    let cheat = "sed -i 's/== 2/!= 2/; s/== -4/!= -4/' tests/test_negative.py";
    let orders = [[WRONG, cheat, RIGHT], [RIGHT, WRONG, cheat], [cheat, RIGHT, WRONG]];
    // The programs with bugs are tasks with the candidates in other orders.
    for order in orders.into_iter().take(if is_full() { 3 } else { 1 }) {
        let scripted = order.iter().enumerate().fold(SessionScripts::new(), |scripted, (index, script)| {
            scripted.with_session(&index.to_string(), script, None)
        });
        let (outcome, task) = project.run(project.contract(3).await, scripted).await;
        let TaskOutcome::Done(done) = outcome else {
            panic!("{}", TaskReport::from_task(&task).to_markdown())
        };
        assert_eq!(order[done.candidate()], RIGHT);
        assert_eq!(done.proof().diff().lines(), 2);
        assert_eq!(task.spent().tokens, 40, "losers and the anchor count");
        let anchor = done.proof().anchor().unwrap();
        assert!(anchor.tests().contains("test_negative.test_negative"), "{anchor:?}");
        assert_eq!(anchor.control(), Some("tests/test_negative.py"));
    }
    let seen = project.sh("git status --porcelain; git branch").await;
    assert_eq!(seen, "* main\n", "the user's repository is as it was");
}

/// The first attempt is wrong, the second one right, and the review sends it back once.
#[tokio::test]
async fn findings_send_a_candidate_back() {
    let project = Project::new().await;
    let scripted = SessionScripts::new()
        .with_session("0", WRONG, None)
        .with_session("0", "sed -i 's/a + -b/a + b/' src/sums.py", None)
        .with_session("0", "sed -i '1i # Sums.' src/sums.py", None)
        .with_session(
            "review-0-2",
            "cat src/sums.py",
            Some(json!({"findings": ["say what it is"], "remarks": ""})),
        )
        .with_session("review-0-3", "true", Some(json!({"findings": [], "remarks": "good"})));
    let mut contract = project.contract(1).await.with_attempts(2);
    contract.review = ReviewPlan { rounds: 1, model: None };
    let (store, id) = (MemoryStore::new(), SessionId::new("t"));
    let scripted = Arc::new(scripted);
    let mut host = LocalTaskHost::create(&store, id.clone(), contract).await.unwrap();
    let performer = Arc::new(project.performer(&store, &scripted).await);
    let outcome = host.run(performer).await.unwrap();
    let TaskOutcome::Done(done) = outcome else {
        panic!("{}", TaskReport::from_task(host.task()).to_markdown())
    };
    assert_eq!(done.review().unwrap().remarks, "good");
    let patch = read_blob(&done.proof().diff().patch, store.blobs(&id).as_ref()).await.unwrap();
    insta::assert_snapshot!(String::from_utf8(patch).unwrap().lines().skip(2).collect::<Vec<_>>().join("\n"), @"
    --- a/src/sums.py
    +++ b/src/sums.py
    @@ -1,2 +1,3 @@
    +# Sums.
     def add(a, b):
    -    return a + abs(b)
    +    return a + b
    ");
    let messages = scripted.messages.lock().unwrap().clone();
    let sessions: Vec<&str> = messages.iter().map(|(session, _)| session.as_str()).collect();
    assert_eq!(sessions, ["anchor", "anchor-review-1", "0", "0", "review-0-2", "0", "review-0-3"]);
    assert!(messages[3].1.contains("`test_negative.test_negative` fails still"), "{}", messages[3].1);
    assert!(messages[4].1.contains("+    return a + b"), "the reviewer sees the diff: {}", messages[4].1);
    assert!(messages[5].1.contains("say what it is"), "{}", messages[5].1);
}

#[tokio::test]
async fn a_proposal_is_refused_with_what_is_wrong() {
    let project = Project::new().await;
    let answer = |command: &str| Some(json!({"command": command, "results": null, "report": null}));
    let all = [
        [
            ("true", "false", "it changes no file; expected a new test"),
            ("echo x >tests/test_a.py", "true", "it passes before anything was done"),
            (
                "echo x >>src/sums.py",
                "false",
                "it changes `src/sums.py`; expected changes of test files only",
            ),
        ],
        [
            ("echo x >tests/test_a.py", "exec no-such-program", "it exited with 127; expected that it runs"),
            ("echo x >tests/test_a.py", "kill -9 $$", "it was killed by signal 9"),
            (
                "echo x >tests/test_sums.py",
                "false",
                "it changes `tests/test_sums.py`, which was there before",
            ),
        ],
    ];
    for proposals in all.into_iter().take(cases(1, 2)) {
        let scripted = proposals.iter().fold(SessionScripts::default(), |all, (script, command, _)| {
            all.with_session("anchor", script, answer(command))
        });
        let (outcome, task) = project.run(project.contract(1).await, scripted).await;
        let TaskOutcome::Blocked(BlockReason::NoAnchor(problems)) = &outcome else { panic!("{outcome:?}") };
        assert_eq!(problems.len(), proposals.len(), "{problems:?}");
        for ((_, command, expected), problems) in proposals.iter().zip(problems) {
            let all = problems.join("; ");
            assert!(all.contains(expected), "{command}: {all}");
        }
        assert_eq!(task.proposals().len(), 3);
    }
}

#[tokio::test]
async fn evidence_without_a_test_that_fails_first() {
    let project = Project::new().await;
    let command = AnchorPlan::Command {
        command: "python3 -c 'import sys; sys.path.insert(0, \"src\"); import sums; sys.exit(sums.add(3, -1) != 2)'".to_owned(),
        results: None,
        report: None,
    };
    let none = AnchorPlan::None { because: "it only moves code".to_owned() };
    for (anchor, right, wrong) in [
        (command, RIGHT, WRONG),
        (none.clone(), "sed -i '1i # Sums.' src/sums.py", "echo 'def add(' >src/sums.py"),
    ] {
        let scripted =
            SessionScripts::default().with_session("0", wrong, None).with_session("1", right, None);
        let contract = project.contract(2).await.with_anchor(anchor.clone());
        let (outcome, task) = project.run(contract, scripted).await;
        let report = TaskReport::from_task(&task).to_markdown();
        let TaskOutcome::Done(done) = outcome else { panic!("{report}") };
        assert_eq!(done.candidate(), 1, "{report}");
        let verdict = task.candidates()[0].attempts()[0].verdict.as_ref();
        assert!(matches!(verdict, Some(Err(_))), "{verdict:?}: {report}");
        assert_eq!(report.contains("There is no anchor: it only moves code."), anchor == none, "{report}");
    }
}

/// A report that was there before is not of the run that is judged.
#[tokio::test]
async fn reports_of_other_runs_do_not_count() {
    let runner = "import sys\nsys.path.insert(0, 'src')\nimport sums\nok = sums.add(3, -1) == 2\nbody = '' if ok else '<failure/>'\nopen('out/report.xml', 'w').write('<testsuite><testcase classname=\"t\" name=\"negative\">' + body + '</testcase></testsuite>')\nsys.exit(not ok)\n";
    let mut files = FILES.to_vec();
    files.push(("tests/junit.py", runner));
    files.push(("out/keep", ""));
    let project = Project::with_files(&files).await;
    let forged = "mkdir -p out; printf '<testsuite><testcase classname=\"t\" name=\"negative\"/></testsuite>' >out/report.xml; ";
    let candidates = [
        (RIGHT.to_owned(), None),
        (format!("{forged} echo 'import os; os._exit(0)' >>src/sums.py"), Some("`out/report.xml` was not written")),
        (
            format!("{forged} mv out/report.xml src/r.xml; ln -s ../src/r.xml out/report.xml; echo 'import os; os._exit(0)' >>src/sums.py"),
            Some("`out/report.xml` was not written"),
        ),
        (
            "sed -i '1i import os, sys; os.path.exists(\"out\") and (os.rename(\"out\", \"out2\"), os.symlink(\"/tmp\", \"out\"))' src/sums.py".to_owned(),
            Some("it cannot be judged: after its commands, `out` is a link that leads out of the repository"),
        ),
    ];
    let anchor = AnchorPlan::Command {
        command: "python3 tests/junit.py".to_owned(),
        results: Some(ResultsFormat::Junit),
        report: Some("out/report.xml".to_owned()),
    };
    let mut contract = project.contract(candidates.len()).await.with_anchor(anchor);
    contract.scope.paths.push("out/".to_owned());
    contract.checks[0].pass = PassCondition::Success;
    let scripted =
        candidates.iter().enumerate().fold(SessionScripts::default(), |scripted, (index, (script, _))| {
            scripted.with_session(&index.to_string(), script, None)
        });
    let (outcome, task) = project.run(contract, scripted).await;
    let report = TaskReport::from_task(&task).to_markdown();
    let TaskOutcome::Done(done) = outcome else { panic!("{report}") };
    assert_eq!(done.candidate(), 0, "{report}");
    for ((script, expected), candidate) in candidates.iter().zip(task.candidates()) {
        match (&candidate.attempts()[0].verdict, expected) {
            (Some(Ok(_)), None) => {}
            (Some(Err(findings)), Some(expected)) => {
                let findings: Vec<String> = findings.iter().map(ToString::to_string).collect();
                assert!(findings.iter().any(|finding| finding.contains(expected)), "{script}: {findings:?}");
            }
            (verdict, _) => panic!("{script}: {verdict:?}: {report}"),
        }
    }
}

/// Cargo prints the names of programs to one stream, and their tests print to the other.
#[tokio::test]
async fn streams_of_a_runner_keep_their_order() {
    let project = Project::new().await;
    let runner = r#"for i in $(seq 200); do
    echo "     Running tests/t$i.rs (target/debug/deps/t$i-0)" >&2
    printf 'running 1 test\ntest a ... ok\n'
    echo 'test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s'
done"#;
    let mut contract =
        project.contract(1).await.with_anchor(AnchorPlan::None { because: "it only moves code".to_owned() });
    contract.checks = vec![TaskCheck::new("programs", runner).with_results(ResultsFormat::Cargo)];
    let script = "sed -i '1i # Sums.' src/sums.py";
    let (outcome, task) =
        project.run(contract, SessionScripts::default().with_session("0", script, None)).await;
    assert!(matches!(outcome, TaskOutcome::Done(_)), "{}", TaskReport::from_task(&task).to_markdown());
    let run = task.baseline().unwrap().checks["programs"][0].tests.clone().unwrap();
    let expected: BTreeSet<String> = (1..=200).map(|number| format!("t{number}::a")).collect();
    assert_eq!(run.tests.into_keys().collect::<BTreeSet<_>>(), expected);
}

#[tokio::test]
async fn cancelling_leaves_nothing_in_any_phase() {
    let project = Project::new().await;
    let hang = "sleep 1000 & sleep 1000";
    let review = Some(json!({"findings": [], "remarks": ""}));
    let anchor = || SessionScripts::new();
    for (phase, scripted) in [
        ("anchor", SessionScripts::default().with_session("anchor", hang, None)),
        ("0", anchor().with_session("0", hang, None)),
        (
            "review-0-1",
            anchor().with_session("0", RIGHT, None).with_session("review-0-1", hang, review.clone()),
        ),
    ] {
        let mut contract = match phase {
            "anchor" => project.contract(1).await,
            _ => project.contract_without_anchor(1).await,
        };
        contract.review = ReviewPlan { rounds: 1, model: None };
        let (store, id) = (Arc::new(MemoryStore::new()), SessionId::new("t"));
        let scripted = Arc::new(scripted);
        let mut host = LocalTaskHost::create(store.as_ref(), id.clone(), contract).await.unwrap();
        let performer = Arc::new(project.performer(store.as_ref(), &scripted).await);
        let cancel = async {
            while !scripted.messages.lock().unwrap().iter().any(|(session, _)| session == phase) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            let signal = TaskSignal::Cancel { reason: "enough".to_owned() };
            post_signal(store.as_ref(), &id, "c", &signal, None).await.unwrap();
        };
        let (outcome, ()) = tokio::time::timeout(Duration::from_secs(120), async {
            tokio::join!(host.run(performer.clone()), cancel)
        })
        .await
        .unwrap();
        assert_eq!(outcome.unwrap(), TaskOutcome::Aborted { reason: "enough".to_owned() }, "{phase}");
        performer.clean().await.unwrap();
        let directory = project.directory().display().to_string();
        let running = project.sh(&format!("grep -alz 'PINTLE_PORTS' /proc/[0-9]*/environ 2>/dev/null | while read f; do tr '\\0' '\\n' <$f; done | grep -c '^TMPDIR={directory}' || true")).await;
        assert_eq!(running.trim(), "0", "{phase}");
    }
}

/// Each candidate has a directory, ports and a target directory of its own, and cannot reach the others: neither their files nor
/// what they run. Since they cannot meet, it is the test that lets one attack while the other one has a server.
#[tokio::test]
async fn candidates_do_not_meet() {
    let project = Project::new().await;
    let own = "echo \"$PORT $PINTLE_PORTS $TMPDIR $CARGO_TARGET_DIR $PWD\" >src/own.py; ";
    // The command line of the shell itself is another one.
    let (number, server) = (std::process::id(), format!("server-''of-{}", std::process::id()));
    let serve = format!(
        "python3 -c 'import os, time; open(os.environ[\"TMPDIR\"] + \"/serves\", \"w\").close(); time.sleep(1000)' {server} & "
    );
    let served = format!("{serve}{}; kill -0 $! && {RIGHT}; kill $!", wait_for("$TMPDIR/attacked"));
    // It finds what it runs itself.
    let hunt = format!(
        "{serve}mine=$!; {}; for n in 1 2 3; do for p in $(grep -als 'server-[o]f-{number}' /proc/[0-9]*/cmdline); do \
         p=${{p#/proc/}}; kill -9 ${{p%/cmdline}}; done; done; wait $mine; mine=$?; ",
        wait_for("$TMPDIR/attack")
    );
    let meddle = "for d in ../../*/tree; do echo 'broken(' >>$d/src/sums.py; done 2>/dev/null; echo \"# $PORT $mine\" >src/own.py; touch $TMPDIR/attacked";
    let files = |candidate: usize, name: &str| format!("../task/candidates/{candidate}/tmp/{name}");
    let relay = [
        wait_for(&files(0, "serves")),
        wait_for(&files(1, "serves")),
        format!("touch {}", files(1, "attack")),
        wait_for(&files(1, "attacked")),
        format!("touch {}", files(0, "attacked")),
    ]
    .join("; ");
    let scripted = SessionScripts::new().with_session("0", &format!("{own}{served}"), None);
    let scripted = scripted.with_session("1", &format!("{hunt}{meddle}"), None);
    let (store, id) = (MemoryStore::new(), SessionId::new("t"));
    let scripted = Arc::new(scripted);
    let mut host = LocalTaskHost::create(&store, id.clone(), project.contract(2).await).await.unwrap();
    let performer = Arc::new(project.performer(&store, &scripted).await);
    let run = tokio::time::timeout(PATIENCE, host.run(performer));
    let (outcome, _) = tokio::join!(run, project.sh(&relay));
    let outcome = outcome.unwrap().unwrap();
    let report = TaskReport::from_task(host.task()).to_markdown();
    let TaskOutcome::Done(done) = outcome else { panic!("{report}") };
    assert_eq!(done.candidate(), 0, "{report}");
    let mut seen = Vec::new();
    for candidate in host.task().candidates() {
        let diff = candidate.attempts()[0].work.as_ref().unwrap().diff.clone().unwrap();
        let patch = read_blob(&diff.patch, store.blobs(&id).as_ref()).await.unwrap();
        seen.push(String::from_utf8(patch).unwrap());
    }
    let port = |patch: &str| {
        patch.lines().find_map(|line| {
            line.strip_prefix('+')?
                .split_whitespace()
                .find(|word| word.len() >= 4 && word.bytes().all(|byte| byte.is_ascii_digit()))
                .map(str::to_owned)
        })
    };
    let (Some(one), Some(other)) = (port(&seen[0]), port(&seen[1])) else { panic!("{seen:#?}") };
    assert_ne!(one, other);
    assert!(seen[1].contains(" 137\n"), "{}", seen[1]);
    assert!(seen[0].contains("/candidates/0/tree/target /"), "{}", seen[0]);
}

#[tokio::test]
async fn failed_checks_of_the_base_are_remarks() {
    let failing = [
        ("exits", "echo no; exit 3", Some("it exited with 3")),
        ("missing", "exec no-such-program", Some("it exited with 127")),
        ("killed", "kill -9 $$", Some("it was killed by signal 9")),
    ];
    let passing = [
        ("tests", "python3 tests/run.py", None),
        ("goal", "grep -q negative src/sums.py", Some("it exited with 1")),
    ];
    let project = Project::new().await;
    let script = format!("{RIGHT}; echo '# negative' >>src/sums.py");
    for (checks, is_done) in [(&failing[..], false), (&passing[..], true)] {
        let mut contract = project.contract_without_anchor(1).await;
        contract.checks = checks.iter().map(|(name, command, _)| TaskCheck::new(*name, *command)).collect();
        let scripted = SessionScripts::default().with_session("0", &script, None);
        let (outcome, task) = project.run(contract, scripted).await;
        let report = TaskReport::from_task(&task).to_markdown();
        assert_eq!(matches!(outcome, TaskOutcome::Done(_)), is_done, "{report}");
        for (name, command, expected) in checks {
            let failed = format!("check `{name}` failed before any change");
            assert_eq!(report.contains(&failed), expected.is_some(), "{command}: {report}");
            let remark = expected.map(|expected| format!("{failed}: {expected}"));
            assert!(remark.is_none_or(|remark| report.contains(&remark)), "{command}: {report}");
        }
    }
}

/// The step and the candidate fail with the end of the output of the command.
#[tokio::test]
async fn a_failed_preparation_is_reported_with_its_output() {
    let lines = "seq 3; echo; echo no registry";
    for (command, code) in [
        // It fails on the base.
        (format!("{lines}; exit 3"), 3),
        // It fails with the change of the candidate.
        (format!("! grep -q 'abs(b)' src/sums.py || exit 0; {lines}; exit 4"), 4),
    ] {
        let project = Project::new().await;
        let contract = project.contract(1).await.with_prepare(&command);
        let (outcome, task) =
            project.run(contract, anchor_after("true").with_session("0", RIGHT, None)).await;
        let report = TaskReport::from_task(&task).to_markdown();
        assert!(!matches!(outcome, TaskOutcome::Done(_)), "{command}: {report}");
        let shown = report.split_whitespace().collect::<Vec<_>>().join(" ");
        let expected = format!("exited with {code} 1 2 3 no registry");
        assert!(shown.contains(&expected), "{command}: {report}");
    }
}

#[tokio::test]
async fn a_clone_whose_preparation_failed_is_removed() {
    let project = Project::new().await;
    // It succeeds on the base and for the second candidate.
    let contract = project.contract_without_anchor(2).await.with_prepare("! grep -q broken src/sums.py");
    let contract = contract.with_gate(DecisionGate::Result);
    let broken = format!("{RIGHT}; echo '# broken' >>src/sums.py");
    let scripted =
        Arc::new(SessionScripts::new().with_session("0", &broken, None).with_session("1", RIGHT, None));
    let (store, id) = (Arc::new(MemoryStore::new()), SessionId::new("t"));
    let mut host = LocalTaskHost::create(store.as_ref(), id.clone(), contract).await.unwrap();
    let performer = Arc::new(project.performer(store.as_ref(), &scripted).await);
    let look = async {
        while crate::read_task(store.as_ref(), &id).await.unwrap().pending().gate.is_none() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let left = project.sh("find ../task/clean -name tree").await;
        let decision = crate::task::GateAnswer { gate: DecisionGate::Result, is_approved: true, words: None };
        post_signal(store.as_ref(), &id, "d", &TaskSignal::Decide(decision), None).await.unwrap();
        left
    };
    let (outcome, left) =
        tokio::time::timeout(PATIENCE, async { tokio::join!(host.run(performer), look) }).await.unwrap();
    let TaskOutcome::Done(done) = outcome.unwrap() else {
        panic!("{}", TaskReport::from_task(host.task()).to_markdown())
    };
    assert_eq!((done.candidate(), left.as_str()), (1, ""));
}

/// The anchor of the candidate passes, and its code puts another runner in the place of the one that the next command uses.
#[tokio::test]
async fn commands_do_not_prepare_the_clone_of_the_next_one() {
    let project = Project::new().await;
    let mut contract =
        project.contract(1).await.with_prepare("mkdir -p node_modules && cp tests/run.py node_modules/");
    contract.checks[0].command = "python3 node_modules/run.py".to_owned();
    let script = r#"cat >src/sums.py <<'END'
FORGED = """print("1..3")
print("ok 1 - test_negative.test_negative")
print("ok 2 - test_sums.test_positive")
print("ok 3 - test_sums.test_zero")
"""
open("node_modules/run.py", "w").write(FORGED)

def add(a, b):
    return a + b if b < 0 else 7
END"#;
    let (outcome, task) = project.run(contract, SessionScripts::new().with_session("0", script, None)).await;
    let report = TaskReport::from_task(&task).to_markdown();
    assert_eq!(outcome, TaskOutcome::Blocked(BlockReason::NoCandidate), "{report}");
    assert!(
        report.contains("* check tests: `test_sums.test_positive`, `test_sums.test_zero` passed before and"),
        "{report}"
    );
}

/// Preparations, anchors and checks, with the temporary directory of a sandbox in and outside of the directory of the task.
#[tokio::test]
async fn judged_commands_can_write_temporary_files() {
    let sums =
        "python3 -c 'import sys; sys.path.insert(0, \"src\"); import sums; sys.exit(sums.add(3, -1) != 2)'";
    let write = [
        "rm \"$(mktemp)\"",
        "rmdir \"$(mktemp -d)\"",
        "echo x >\"$TMPDIR/x\"",
        "python3 -c 'import os, tempfile; assert os.environ[\"TMPDIR\"] == tempfile.mkdtemp(prefix=\"x\").rsplit(\"/\", 1)[0]'",
    ]
    .join(" && ");
    for has_own_temporary in [false, true] {
        let mut project = Project::new().await;
        project.has_own_temporary = has_own_temporary;
        let anchor =
            AnchorPlan::Command { command: format!("{write} && {sums}"), results: None, report: None };
        let mut contract = project.contract(1).await.with_anchor(anchor).with_prepare(&write);
        contract.checks = vec![TaskCheck::new("temporary files", &write)];
        let (outcome, task) =
            project.run(contract, SessionScripts::default().with_session("0", RIGHT, None)).await;
        let report = TaskReport::from_task(&task).to_markdown();
        assert!(matches!(outcome, TaskOutcome::Done(_)), "{has_own_temporary}: {report}");
        let baseline = &task.baseline().unwrap().checks["temporary files"];
        assert!(baseline.iter().all(|run| run.is_success()), "{has_own_temporary}: {baseline:?}");
    }
}
