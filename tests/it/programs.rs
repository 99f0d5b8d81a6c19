//! Small programs with one planted bug each (`tests/programs`). Each fix is converted to calls of an editing tool, played
//! with a profile, and checked by the program's own tests.
//!
//! The long run plays each program with every profile. By default the profiles share the programs.
//!
//! A program is a directory: `program/` holds its files with the bug, `fixed/` the files that the fix changes, and
//! `program.toml` the language, the bug, the test command (exit code 0 means success), the files that the fix deletes,
//! and the editing tools that cannot express the fix byte for byte.

mod change;
mod program;
mod rewrite;

use futures_util::StreamExt;
use futures_util::stream::iter;
use pintle_agent::EventKind;
use pintle_test_conditions::is_full;
use pintle_testkit::{Dialect, Script, Turn};

use self::change::{Change, changes};
use self::program::{Program, Tree};
use crate::test_profile::{ScriptRun, TestProfile};

/// Number of programs played concurrently.
const AT_ONCE: usize = 4;

/// Number of profiles with their own tools.
const PROFILES: usize = 8;

macro_rules! every_fix_is_played {
    ($($name:ident: $profile_under_test:expr;)+) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                every_fix_is_played($profile_under_test).await;
            }
        )+
    };
}

every_fix_is_played! {
    openai_with_the_specs_tools: TestProfile::spec(Dialect::OpenAiResponses);
    openai_with_native_tools: TestProfile::native(Dialect::OpenAiResponses);
    anthropic_with_the_specs_tools: TestProfile::spec(Dialect::AnthropicMessages);
    anthropic_with_native_tools: TestProfile::native(Dialect::AnthropicMessages);
    gemini_with_the_specs_tools: TestProfile::spec(Dialect::Gemini);
    gemini_with_native_tools: TestProfile::native(Dialect::Gemini);
    compatible_servers_with_the_specs_tools: TestProfile::spec(Dialect::ChatCompletions);
    compatible_servers_with_native_tools: TestProfile::native(Dialect::ChatCompletions);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_program_fails_only_with_its_bug() {
    let programs = Program::all();
    assert!(programs.len() >= 40, "{} programs", programs.len());
    let judged = iter(&programs).map(async |program| {
        let (buggy, fixed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        program.buggy.write(buggy.path());
        program.fixed.write(fixed.path());
        if program.run_tests(buggy.path()).await.is_ok() {
            return Some(format!("{}: the tests do not see the bug", program.name));
        }
        let verdict = program.run_tests(fixed.path()).await;
        verdict.err().map(|output| format!("{}: the fix fails: {output}", program.name))
    });
    none_failed(judged.buffer_unordered(AT_ONCE).collect().await);
}

/// An application may give any tools to any profile. The combinations share out the programs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_profile_can_use_every_toolset() {
    let profiles = Dialect::ALL.into_iter();
    let own = profiles.flat_map(|dialect| [TestProfile::spec(dialect), TestProfile::native(dialect)]);
    let lent: Vec<TestProfile> = own
        .flat_map(|profile_under_test| Dialect::ALL.map(|dialect| (profile_under_test, dialect)))
        .filter(|(profile_under_test, dialect)| profile_under_test.dialect != *dialect)
        .map(|(profile_under_test, dialect)| profile_under_test.used_by(dialect))
        .collect();
    let programs = Program::all();
    let pairs: Vec<_> = if is_full() {
        programs.iter().chain(&programs).zip(lent.iter().cycle()).collect()
    } else {
        programs.iter().step_by(2).zip(&lent).collect()
    };
    assert!(pairs.len() >= lent.len(), "{} programs for {} combinations", pairs.len(), lent.len());
    let played = iter(pairs).map(async |(program, profile_under_test)| {
        let problem = play(*profile_under_test, program).await.err();
        problem.map(|problem| format!("{profile_under_test:?}: {problem}"))
    });
    none_failed(played.buffer_unordered(AT_ONCE).collect().await);
}

async fn every_fix_is_played(profile_under_test: TestProfile) {
    let own_share = profile_under_test.number();
    let programs = Program::all().into_iter().enumerate().filter(|(number, program)| {
        number % PROFILES == own_share || !program.beyond.is_empty() || is_full()
    });
    let programs: Vec<Program> = programs.map(|(_, program)| program).collect();
    assert!(programs.len() >= 5, "{} programs", programs.len());
    let played = iter(&programs).map(async |program| play(profile_under_test, program).await.err());
    none_failed(played.buffer_unordered(AT_ONCE).collect().await);
}

/// Plays the fix of one program. Returns an error if it fails.
async fn play(profile_under_test: TestProfile, program: &Program) -> Result<(), String> {
    let complain = |problem: String| Err(format!("{}: {problem}", program.name));
    let directory = tempfile::tempdir().unwrap();
    program.buggy.write(directory.path());
    let changes = changes(&program.buggy, &program.fixed);
    let calls = match Change::calls(&changes, profile_under_test, directory.path()) {
        Ok(calls) => calls,
        Err(problem) => return complain(problem),
    };
    let edits = calls.into_iter().fold(Turn::new(), Turn::with_call);
    let script = Script::new(&program.name).with_turn(edits).with_turn(Turn::text("Done."));
    let played = profile_under_test.play(directory.path(), script, |builder, _| builder).await;
    if let Some(problem) = problem(&played) {
        return complain(problem);
    }
    let found = Tree::read(directory.path());
    match (program.beyond.get(profile_under_test.editing_tool()), found == program.fixed) {
        (None, true) | (Some(_), false) => {}
        (None, false) => return complain(format!("found {found:?}, expected {:?}", program.fixed)),
        (Some(reason), true) => return complain(format!("it can be said after all: {reason}")),
    }
    program.run_tests(directory.path()).await.or_else(complain)
}

/// Returns a call that failed, or that matched only loosely.
fn problem(played: &ScriptRun) -> Option<String> {
    let failed = played.events.iter().find_map(|event| match &event.kind {
        EventKind::ToolCallEnd { error: Some(_), output, .. } => Some(output.to_text_lossy().unwrap()),
        _ => None,
    });
    failed.or_else(|| played.results().into_iter().find(|result| result.contains("\nNote: ")))
}

fn none_failed(problems: Vec<Option<String>>) {
    let mut problems: Vec<String> = problems.into_iter().flatten().collect();
    problems.sort();
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
}
