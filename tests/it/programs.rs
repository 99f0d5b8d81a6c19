//! Small programs with one planted bug each (`tests/programs`): the fix is turned into the calls of every editing tool,
//! played in every profile, and judged by the program's own tests.
//!
//! A program is a folder. `program/` holds its files with the bug, `fixed/` those that differ once it is mended, and
//! `program.toml` says in which language it is, what the bug is, which command judges (exit code 0 is good), which files
//! the fix deletes, and which editing tools cannot say it to the byte.

mod change;
mod program;
mod rewrite;

use futures_util::StreamExt;
use futures_util::stream::iter;
use pintle_agent::EventKind;
use pintle_testkit::{Dialect, Script, Turn};

use self::change::{Change, changes};
use self::program::{Program, Tree};
use crate::kit::{Kit, Played};

/// How many programs are played side by side.
const AT_ONCE: usize = 4;

macro_rules! every_fix_is_played {
    ($($name:ident: $kit:expr;)+) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                every_fix_is_played($kit).await;
            }
        )+
    };
}

every_fix_is_played! {
    openai_with_the_specs_tools: Kit::spec(Dialect::OpenAiResponses);
    openai_with_native_tools: Kit::native(Dialect::OpenAiResponses);
    anthropic_with_the_specs_tools: Kit::spec(Dialect::AnthropicMessages);
    anthropic_with_native_tools: Kit::native(Dialect::AnthropicMessages);
    gemini_with_the_specs_tools: Kit::spec(Dialect::Gemini);
    gemini_with_native_tools: Kit::native(Dialect::Gemini);
    compatible_servers_with_the_specs_tools: Kit::spec(Dialect::ChatCompletions);
    compatible_servers_with_native_tools: Kit::native(Dialect::ChatCompletions);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_program_fails_its_tests_with_the_bug_and_passes_them_without() {
    let programs = Program::all();
    assert!(programs.len() >= 40, "{} programs", programs.len());
    let judged = iter(&programs).map(async |program| {
        let (buggy, fixed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        program.buggy.write(buggy.path());
        program.fixed.write(fixed.path());
        if program.judge(buggy.path()).await.is_ok() {
            return Some(format!("{}: the tests do not see the bug", program.name));
        }
        let verdict = program.judge(fixed.path()).await;
        verdict.err().map(|output| format!("{}: the fix fails: {output}", program.name))
    });
    none_failed(judged.buffer_unordered(AT_ONCE).collect().await);
}

/// Tools are no matter of the profile: a host may give any to any. The programs take turns.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_tools_of_each_profile_work_in_every_other() {
    let profiles = Dialect::ALL.into_iter();
    let own = profiles.flat_map(|dialect| [Kit::spec(dialect), Kit::native(dialect)]);
    let lent: Vec<Kit> = own
        .flat_map(|kit| Dialect::ALL.map(|dialect| (kit, dialect)))
        .filter(|(kit, dialect)| kit.dialect != *dialect)
        .map(|(kit, dialect)| kit.lent_to(dialect))
        .collect();
    let programs = Program::all();
    let pairs = programs.iter().chain(&programs).zip(lent.iter().cycle());
    let played = iter(pairs).map(async |(program, kit)| {
        let problem = play(*kit, program).await.err();
        problem.map(|problem| format!("{kit:?}: {problem}"))
    });
    none_failed(played.buffer_unordered(AT_ONCE).collect().await);
}

async fn every_fix_is_played(kit: Kit) {
    let programs = Program::all();
    let played = iter(&programs).map(async |program| play(kit, program).await.err());
    none_failed(played.buffer_unordered(AT_ONCE).collect().await);
}

/// Plays the fix of one program, and says what went wrong.
async fn play(kit: Kit, program: &Program) -> Result<(), String> {
    let complain = |problem: String| Err(format!("{}: {problem}", program.name));
    let folder = tempfile::tempdir().unwrap();
    program.buggy.write(folder.path());
    let changes = changes(&program.buggy, &program.fixed);
    let calls = match Change::calls(&changes, kit, folder.path()) {
        Ok(calls) => calls,
        Err(problem) => return complain(problem),
    };
    let edits = calls.into_iter().fold(Turn::new(), Turn::with_call);
    let script = Script::new(&program.name).with_turn(edits).with_turn(Turn::text("Done."));
    let played = kit.play(folder.path(), script, |builder, _| builder).await;
    if let Some(problem) = mishap(&played) {
        return complain(problem);
    }
    let found = Tree::read(folder.path());
    match (program.beyond.get(kit.editing_tool()), found == program.fixed) {
        (None, true) | (Some(_), false) => {}
        (None, false) => return complain(format!("found {found:?}, expected {:?}", program.fixed)),
        (Some(reason), true) => return complain(format!("it can be said after all: {reason}")),
    }
    program.judge(folder.path()).await.or_else(complain)
}

/// A call that failed, or that found its place only by being lenient.
fn mishap(played: &Played) -> Option<String> {
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
