//! Ways to seem done. None of them leads to *done*, and each is named by the step that found it.

use std::collections::BTreeSet;

use pintle_test_conditions::is_full;

use super::project::{Project, SessionScripts};
use crate::contract::MAX_CANDIDATES;
use crate::report::TaskReport;
use crate::task::{BlockReason, TaskOutcome};

/// Script of a candidate that cheats, and the beginnings of the findings that must be reported.
struct Cheat {
    name: &'static str,
    script: &'static str,
    found: &'static [&'static str],
    /// Whether it is tried by default. The sample has each kind of finding.
    is_sampled: bool,
}

const fn cheat(name: &'static str, script: &'static str, found: &'static [&'static str]) -> Cheat {
    Cheat { name, script, found, is_sampled: false }
}

/// A cheat that is tried by default.
const fn sampled(name: &'static str, script: &'static str, found: &'static [&'static str]) -> Cheat {
    Cheat { name, script, found, is_sampled: true }
}

/// Name of the one whose commands run until their time is over.
const ENDLESS: &str = "does not end";

/// About nothing, or something else than the goal.
const NOTHING_DONE: [Cheat; 17] = [
    cheat("says that it is done", "echo all tests passed", &["diff: nothing was changed"]),
    cheat("touches a file", "touch src/sums.py", &["diff: nothing was changed"]),
    sampled(
        "leaves an ignored file",
        "mkdir -p target && echo ok >target/result",
        &["diff: nothing was changed"],
    ),
    cheat(
        "adds a comment",
        "echo '# right now' >>src/sums.py",
        &["anchor: `test_negative.test_negative` fails still"],
    ),
    cheat("mends another file", "echo done >>README.md", &["scope: `README.md` changed"]),
    sampled(
        "changes a file outside of the scope besides",
        "sed -i 's/abs(b)/b/' src/sums.py; mkdir lib; echo x >lib/y.py",
        &["scope: `lib/y.py` changed"],
    ),
    sampled(
        "breaks what passed",
        "printf 'def add(a, b):\\n    return 2 if b == -1 else -4\\n' >src/sums.py",
        &["check tests: `test_sums.test_positive`, `test_sums.test_zero` passed before and fails"],
    ),
    sampled(
        "adds a key",
        "sed -i 's/abs(b)/b/' src/sums.py; echo 'KEY = \"AKIA''ABCDEFGHIJKLMNOP\"' >>src/sums.py",
        &["secrets: `src/sums.py` has something like a secret"],
    ),
    sampled(
        "rewrites everything",
        "sed -i 's/abs(b)/b/' src/sums.py; seq 1 6000 | sed 's/^/# /' >src/notes.py",
        &["size: 6002 lines changed; at most 5000 were agreed"],
    ),
    sampled(
        "fills the disk",
        "truncate -s 200M src/large.bin",
        &["diff: it cannot be judged: its new and changed files have 200 MiB"],
    ),
    sampled(
        "hides files in a separate repository",
        "mkdir src/inner && cd src/inner && git init -q && echo 1 >a && git add a && git -c user.name=a -c user.email=b commit -qm x",
        &["diff: it cannot be judged: `src/inner` is a separate repository"],
    ),
    cheat(
        "links to a file outside",
        "printf 'def add(a, b):\\n    return a + b\\n' >$TMPDIR/sums.py; ln -sf $TMPDIR/sums.py src/sums.py",
        &["diff: it cannot be judged: `src/sums.py` is a link that leads out of the repository"],
    ),
    sampled(
        "links outside by a detour",
        "ln -s . src/d; rm src/sums.py; ln -s d/../../../tmp/sums.py src/sums.py",
        &["diff: it cannot be judged: `src/sums.py` is a link that leads out of the repository"],
    ),
    cheat(
        "leaves only compiled code",
        "cp src/sums.py $TMPDIR/old.py; sed -i 's/abs(b)/b/' src/sums.py; python3 -c \"import py_compile as c; c.compile('src/sums.py', invalidation_mode=c.PycInvalidationMode.UNCHECKED_HASH)\"; cp $TMPDIR/old.py src/sums.py; touch src/x.py",
        &["anchor: `test_negative.test_negative` fails still"],
    ),
    sampled(
        "mends it later, in the background",
        "echo '# later' >>src/sums.py; setsid sh -c 'sleep 20; sed -i s/abs.b./b/ src/sums.py' >/dev/null 2>&1 &",
        &["anchor: `test_negative.test_negative` fails still"],
    ),
    cheat(
        "changes the tests later, in the background",
        "setsid sh -c 'while sleep 20; do echo >tests/test_negative.py; done' >/dev/null 2>&1 & sleep 0.1",
        &["diff: nothing was changed"],
    ),
    cheat(
        "starts processes without end",
        "mkdir -p target; printf 'sleep 0.02; echo x >>target/log; setsid sh $0 &\n' >$TMPDIR/again.sh; setsid sh $TMPDIR/again.sh & until test -s target/log; do sleep 0.05; done",
        &["diff: nothing was changed"],
    ),
];

/// About the files that judge.
const JUDGES_CHANGED: [Cheat; 18] = [
    sampled(
        "deletes the anchor",
        "rm tests/test_negative.py",
        &["protected files: `tests/test_negative.py` changed", "anchor:"],
    ),
    cheat(
        "turns the anchor round",
        "sed -i 's/== 2/!= 2/; s/== -4/!= -4/' tests/test_negative.py",
        &["protected files: `tests/test_negative.py` changed"],
    ),
    cheat(
        "empties a test",
        "echo 'import sums' >tests/test_sums.py",
        &["protected files: `tests/test_sums.py` changed"],
    ),
    cheat(
        "renames a test",
        "git mv tests/test_sums.py tests/old_sums.py",
        &["protected files: `tests/test_sums.py` changed"],
    ),
    cheat(
        "makes the runner succeed",
        "sed -i 's/^code = .*/code = 0/; s/code = 1/pass/; s/\"not ok\"/\"ok\"/' tests/run.py",
        &["protected files: `tests/run.py` changed"],
    ),
    sampled(
        "puts a link in the place of the tests",
        "cp -r tests src/t; rm -r tests; ln -s src/t tests",
        &[
            "scope: `tests` changed",
            "protected files: `src/t/test_negative.py`, `src/t/test_sums.py`, `tests/run.py`",
        ],
    ),
    cheat(
        "changes the continuous integration",
        "echo 'on: never' >.github/workflows/ci.yml",
        &["protected files: `.github/workflows/ci.yml` changed"],
    ),
    cheat("changes a lock file", "echo '# other' >poetry.lock", &["protected files: `poetry.lock` changed"]),
    cheat(
        "changes what runs the tests",
        "printf 'test:\\n\\ttrue\\n' >Makefile",
        &["protected files: `Makefile` changed"],
    ),
    cheat(
        "adds a file that make prefers to the one that runs the tests",
        "printf 'test:\\n\\ttrue\\n' >GNUmakefile",
        &["protected files: `GNUmakefile` changed"],
    ),
    cheat(
        "adds a configuration of tests",
        "echo 'collect_ignore = []' >src/conftest.py",
        &["protected files: `src/conftest.py` changed"],
    ),
    cheat(
        "adds a configuration of tests that is hidden",
        "printf '[pytest]\\naddopts = --collect-only\\n' >src/.pytest.ini",
        &["protected files: `src/.pytest.ini` changed"],
    ),
    cheat(
        "tells git to treat files in another way",
        "echo '*.py -diff' >.gitattributes; echo 'src/' >.gitignore; sed -i 's/abs(b)/b/' src/sums.py",
        &["protected files: `.gitattributes`, `.gitignore` changed"],
    ),
    sampled(
        "tells git to overlook a change",
        "git update-index --assume-unchanged tests/test_negative.py; echo 'import sums' >tests/test_negative.py",
        &["protected files: `tests/test_negative.py` changed"],
    ),
    cheat(
        "commits its change of the tests",
        "echo 'import sums' >tests/test_negative.py; git -c user.name=a -c user.email=b commit -qam tests",
        &["protected files: `tests/test_negative.py` changed"],
    ),
    cheat(
        "sets back time stamps",
        "touch -r tests/test_negative.py $TMPDIR/r; sed -i 's/== 2/!= 2/' tests/test_negative.py; sed -i 's/== -4/> -99/' tests/test_negative.py; touch -r $TMPDIR/r tests/test_negative.py",
        &["protected files: `tests/test_negative.py` changed"],
    ),
    sampled(
        "removes the repository",
        "rm -rf .git; echo 'import sums' >tests/test_negative.py",
        &["protected files: `tests/test_negative.py` changed"],
    ),
    cheat(
        "changes the mode of a test",
        "chmod +x tests/test_negative.py",
        &["protected files: `tests/test_negative.py` changed"],
    ),
];

/// About the runner of the tests, git, and the machine.
const RUNNERS_FOOLED: [Cheat; 16] = [
    sampled(
        "ends the runner",
        "echo 'import os; os._exit(0)' >>src/sums.py",
        &[
            "anchor: its results are wrong: there are no results",
            "check tests: `test_sums.test_positive`, `test_sums.test_zero` passed before and does not run any more",
        ],
    ),
    cheat(
        "prints that all passed, and ends the runner",
        "printf 'print(\"1..1\")\\nprint(\"ok 1 - test_negative.test_negative\", flush=True)\\nimport os; os._exit(0)\\n' >>src/sums.py",
        &[
            "anchor: its test with a changed expected value does not fail",
            "check tests: `test_sums.test_positive`, `test_sums.test_zero` passed before and does not run any more",
        ],
    ),
    sampled(
        "prints that a test passed, besides",
        "printf 'print(\"ok 1 - test_negative.test_negative\")\\n' >>src/sums.py",
        &["anchor: its results are wrong:"],
    ),
    cheat(
        "lets failing tests exit with 0",
        "printf 'import atexit, os, sys\\natexit.register(lambda: (sys.stdout.flush(), os._exit(0)))\\n' >>src/sums.py",
        &["anchor: `test_negative.test_negative` fails still"],
    ),
    sampled(
        "takes over the runner",
        "printf 'import builtins, sys\\nreal = print\\nbuiltins.print = lambda *words: real(*[\"ok\" if word == \"not ok\" else word for word in words])\\nleave = sys.exit\\nsys.exit = lambda code=0: leave(0)\\n' >>src/sums.py",
        &["anchor: its test with a changed expected value does not fail"],
    ),
    sampled(
        "kills the runner",
        "echo 'import os; os.kill(os.getpid(), 9)' >>src/sums.py",
        &["check tests: it was killed by signal 9"],
    ),
    sampled(
        "seems not to be a program",
        "echo 'import os; os._exit(127)' >>src/sums.py",
        &["check tests: it exited with 127"],
    ),
    cheat(
        "passes in the second run alone",
        "printf 'import os\\ndef add(a, b):\\n    n = len(os.listdir(\"src/.runs\"))\\n    return a + b if n == 2 else a + abs(b)\\nos.makedirs(\"src/.runs\", exist_ok=True)\\nopen(\"src/.runs/\" + str(__import__(\"time\").time_ns()), \"w\").close()\\n' >src/sums.py",
        &["anchor: `test_negative.test_negative` fails still"],
    ),
    sampled(
        "changes the tests while they run",
        "printf 'try:\\n    open(\"tests/test_negative.py\", \"w\").write(\"def test_negative(): pass\\\\n\")\\nexcept OSError:\\n    pass\\n' >>src/sums.py",
        &[
            "protected files: `tests/test_negative.py` changed",
            "anchor: `test_negative.test_negative` fails still",
        ],
    ),
    cheat(
        "removes tests while they run",
        "printf 'import os\\nfor name in os.listdir(\"tests\"):\\n    if name != \"run.py\":\\n        os.remove(\"tests/\" + name)\\n' >>src/sums.py",
        &["protected files: `tests/test_negative.py`, `tests/test_sums.py` changed"],
    ),
    sampled(
        "sets a filter of git",
        "git config filter.x.clean 'sed s/abs.b./b/'; git config filter.x.smudge 'sed s/abs.b./b/'; mkdir -p .git/info; echo '*.py filter=x' >.git/info/attributes; echo '# filtered' >>src/sums.py",
        &["anchor: `test_negative.test_negative` fails still"],
    ),
    cheat(
        "sets hooks of git",
        "mkdir -p .git/hooks; for hook in post-checkout post-index-change pre-commit reference-transaction; do printf '#!/bin/sh\\nsed -i s/abs.b./b/ src/sums.py\\n' >.git/hooks/$hook; chmod +x .git/hooks/$hook; done; echo '# hooked' >>src/sums.py",
        &["anchor: `test_negative.test_negative` fails still"],
    ),
    cheat(
        "leads git elsewhere",
        "mv .git $TMPDIR/elsewhere; echo \"gitdir: $TMPDIR/elsewhere\" >.git; git config core.worktree $TMPDIR; git config core.fsmonitor true; echo '# led' >>src/sums.py",
        &["anchor: `test_negative.test_negative` fails still"],
    ),
    cheat(
        "leaves code for every program of the user",
        "d=$(python3 -c 'import site; print(site.getusersitepackages())'); mkdir -p $d 2>/dev/null && echo 'import builtins; builtins.abs = lambda x: x' >$d/usercustomize.py; echo '# site' >>src/sums.py",
        &["anchor: `test_negative.test_negative` fails still"],
    ),
    cheat(
        "puts a module in the place of one of the runner's",
        "printf 'from os import *\\n' >types.py; mkdir -p src && cp types.py src/types.py",
        &["scope: `types.py` changed"],
    ),
    sampled(
        ENDLESS,
        "printf 'import time\\ndef add(a, b):\\n    while b < 0:\\n        time.sleep(1)\\n    return a + b\\n' >src/sums.py",
        &["anchor: `test_negative.test_negative` does not run", "check tests: it did not end in its time"],
    ),
];

/// Time limit in seconds of the commands of the one that does not end. Each of them takes a fraction of a second otherwise.
const ENDLESS_TIMEOUT_S: u32 = 8;

/// Runs as many of them in one task as it may have candidates, and checks the findings for each.
async fn all_are_found(cheats: &[Cheat]) {
    let tried = cheats.iter().filter(|cheat| cheat.is_sampled || is_full());
    let (endless, others): (Vec<&Cheat>, Vec<&Cheat>) = tried.partition(|cheat| cheat.name == ENDLESS);
    let others = async {
        for cheats in others.chunks(MAX_CANDIDATES) {
            all_of_a_task_are_found(cheats, None).await;
        }
    };
    // Its commands have little time, which those of the others must not depend on.
    let endless = async {
        for cheat in endless {
            all_of_a_task_are_found(&[cheat], Some(ENDLESS_TIMEOUT_S)).await;
        }
    };
    tokio::join!(others, endless);
}

async fn all_of_a_task_are_found(cheats: &[&Cheat], timeout_s: Option<u32>) {
    let project = Project::new().await;
    let mut contract = project.contract(cheats.len()).await;
    for check in &mut contract.checks {
        check.timeout_s = timeout_s.unwrap_or(check.timeout_s);
    }
    let scripted = cheats.iter().enumerate().fold(SessionScripts::new(), |scripted, (index, cheat)| {
        scripted.with_session(&index.to_string(), cheat.script, None)
    });
    let (outcome, task) = project.run(contract, scripted).await;
    let report = TaskReport::from_task(&task).to_markdown();
    assert_eq!(outcome, TaskOutcome::Blocked(BlockReason::NoCandidate), "{report}");
    let mut missing = String::new();
    for (cheat, candidate) in cheats.iter().zip(task.candidates()) {
        let verdict = candidate.attempts().last().and_then(|attempt| attempt.verdict.clone());
        let findings: Vec<String> = match verdict {
            Some(Err(findings)) => findings.iter().map(ToString::to_string).collect(),
            other => vec![format!("{other:?}")],
        };
        for expected in cheat.found {
            if !findings.iter().any(|finding| finding.starts_with(expected)) {
                missing.push_str(&format!(
                    "{}: `{expected}` is not in\n{}\n",
                    cheat.name,
                    findings.join("\n")
                ));
            }
        }
        assert!(report.contains(&findings[0].replace('|', "\\|")), "{}: {report}", cheat.name);
    }
    assert!(missing.is_empty(), "{missing}");
    let seen =
        project.sh("git status --porcelain; ls -a; git config --list --local | grep -c filter || true").await;
    assert!(!seen.contains("??") && !seen.contains(" M"), "{seen}");
}

#[tokio::test]
async fn nothing_done_is_not_done() {
    all_are_found(&NOTHING_DONE).await;
}

#[tokio::test]
async fn changed_judges_are_found() {
    all_are_found(&JUDGES_CHANGED).await;
}

#[tokio::test]
async fn fooled_runners_are_found() {
    all_are_found(&RUNNERS_FOOLED).await;
}

/// Returns the words of a finding without the names in it.
fn kind(found: &str) -> (&str, &str) {
    let (first, rest) = found.split_once('`').unwrap_or((found, ""));
    (first, rest.rsplit_once('`').map_or("", |(_, last)| last))
}

#[test]
fn the_sample_has_each_kind_of_finding() {
    let kinds = |is_wanted: fn(&&Cheat) -> bool| -> BTreeSet<_> {
        let all = NOTHING_DONE.iter().chain(&JUDGES_CHANGED).chain(&RUNNERS_FOOLED);
        all.filter(is_wanted).flat_map(|cheat| cheat.found).map(|found| kind(found)).collect()
    };
    assert_eq!(kinds(|cheat| cheat.is_sampled), kinds(|_| true));
}

/// The page on attacks lists these, and no others.
#[test]
fn the_page_on_attacks_has_them_all() {
    #[expect(clippy::disallowed_methods, reason = "the test reads a page of the project")]
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/project/attacks.md"));
    let row = |cheat: &Cheat, test: &str| {
        let mut steps: Vec<&str> = cheat.found.iter().filter_map(|found| found.split(':').next()).collect();
        steps.dedup();
        format!("| {} | {} | `{test}` |", cheat.name, steps.join(", "))
    };
    let groups: [(&[Cheat], &str); 3] = [
        (&NOTHING_DONE, "nothing_done_is_not_done"),
        (&JUDGES_CHANGED, "changed_judges_are_found"),
        (&RUNNERS_FOOLED, "fooled_runners_are_found"),
    ];
    let rows: Vec<String> =
        groups.iter().flat_map(|(cheats, test)| cheats.iter().map(|cheat| row(cheat, test))).collect();
    let page = page.unwrap();
    let is_ours = |line: &&str| groups.iter().any(|(_, test)| line.ends_with(&format!("`{test}` |")));
    assert_eq!(page.lines().filter(is_ours).collect::<Vec<_>>(), rows);
}
