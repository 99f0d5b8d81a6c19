use std::sync::{Arc, Mutex};

use pintle_env::ExecutionEnvironmentExt as _;
use pintle_llm::ToolCall;

use super::*;
use crate::builtin::{ApplyPatch, EditFile, WriteFile};
use crate::context::ToolContext;
use crate::error::ToolErrorKind;
use crate::native;
use crate::pipeline::{JudgedCall, execute, prepare};
use crate::registry::ToolRegistry;
use crate::tests::harness::Harness;
use crate::tool::DynTool;
use crate::truncate::TruncationLimits;

/// Keeps the declaration of a call, and fails if it is told to.
#[derive(Default)]
struct RecordingSink {
    files: Mutex<Vec<FileIntent>>,
    fails: bool,
}

#[async_trait]
impl IntentSink for RecordingSink {
    async fn declare(&self, files: Vec<FileIntent>) -> Result<(), ToolError> {
        self.files.lock().unwrap().extend(files);
        if self.fails { Err(ToolError::new(ToolErrorKind::Cancelled, "not recorded")) } else { Ok(()) }
    }
}

/// A call: its name in failures, its tool, and its arguments, in which `DIR` is the directory.
struct Case(&'static str, ToolRegistry, &'static str);

fn case(name: &'static str, tool: impl DynTool, arguments: &'static str) -> Case {
    let mut registry = ToolRegistry::new();
    registry.register(tool).unwrap();
    Case(name, registry, arguments)
}

/// One call of each tool that declares its changes, in a directory with `a`, `b` and a notebook.
fn cases() -> Vec<Case> {
    const PATCH: &str = "*** Begin Patch\\n*** Update File: a\\n@@\\n-one\\n+two\\n*** Add File: new/c\\n+c\\n\
                         *** Delete File: b\\n*** Update File: d\\n*** Move to: e\\n@@\\n-four\\n+five\\n*** End Patch";
    let patch: &'static str = Box::leak(format!(r#"{{"patch": "{PATCH}"}}"#).into_boxed_str());
    let native_patch: &'static str = Box::leak(format!(r#"{{"input": "{PATCH}"}}"#).into_boxed_str());
    vec![
        case("write_file", WriteFile::new(), r#"{"file_path": "a", "content": "two\n"}"#),
        case("write_file, new", WriteFile::new(), r#"{"file_path": "new/c", "content": "two\n"}"#),
        case("edit_file", EditFile::new(), r#"{"file_path": "a", "old_string": "one", "new_string": "two"}"#),
        case(
            "edit_file of Gemini",
            EditFile::gemini(),
            r#"{"file_path": "a", "old_string": "one", "new_string": "two"}"#,
        ),
        case("apply_patch", ApplyPatch::new(), patch),
        case("apply_patch of Codex", native::openai::ApplyPatch::new(), native_patch),
        case("Write", native::anthropic::Write::new(), r#"{"file_path": "DIR/new/c", "content": "two\n"}"#),
        case(
            "write_file of Gemini",
            native::gemini::WriteFile::new(),
            r#"{"file_path": "DIR/a", "content": "two\n"}"#,
        ),
        case(
            "replace",
            native::gemini::Replace::new(),
            r#"{"file_path": "DIR/a", "old_string": "one", "new_string": "two", "instruction": "x"}"#,
        ),
    ]
}

fn workspace() -> Harness {
    let harness = Harness::new();
    for (name, content) in [("a", "one\n"), ("b", "three\n"), ("d", "four\n")] {
        harness.write(name, content);
    }
    harness
}

fn state(harness: &Harness) -> Vec<Option<Vec<u8>>> {
    ["a", "b", "d", "e", "new/c"].iter().map(|name| harness.read(name)).collect()
}

/// Runs a call, with its declaration recorded or refused, and returns the declaration.
async fn declared(harness: &Harness, case: &Case, fails: bool) -> Vec<FileIntent> {
    let sink = Arc::new(RecordingSink { fails, ..RecordingSink::default() });
    let cx = ToolContext::new(harness.env.clone(), "call_1").with_intents(sink.clone());
    let Case(name, registry, arguments) = case;
    let arguments = arguments.replace("DIR", harness.path("").to_str().unwrap().trim_end_matches('/'));
    let call = ToolCall::from_raw("call_1", registry.names().next().unwrap(), arguments);
    let JudgedCall::Ready { call, .. } = prepare(registry, &[], harness.env.as_ref(), &call).await else {
        panic!("{name} cannot be prepared");
    };
    let execution = execute(&call, &cx, &TruncationLimits::new()).await;
    assert_eq!(execution.error.is_some(), fails, "{name}: {}", execution.result.text());
    let files = sink.files.lock().unwrap().clone();
    // What is recorded is what was declared.
    serde_json::from_str(&serde_json::to_string(&files).unwrap()).unwrap()
}

#[tokio::test]
async fn a_declaration_that_is_not_recorded_leaves_the_files_alone() {
    for case in cases() {
        let harness = workspace();
        let before = state(&harness);
        let files = declared(&harness, &case, true).await;
        assert_eq!(state(&harness), before, "{}", case.0);
        assert_eq!(reconcile(harness.env.as_ref(), &files).await, Reconciliation::Untouched, "{}", case.0);
    }
}

#[tokio::test]
async fn a_finished_call_is_recognised() {
    for case in cases() {
        let harness = workspace();
        let files = declared(&harness, &case, false).await;
        assert_eq!(reconcile(harness.env.as_ref(), &files).await, Reconciliation::Done, "{}", case.0);
    }
}

/// What others do between the crash and the resumption is never overwritten, even if the content is the same again.
#[tokio::test]
async fn a_third_state_is_a_conflict() {
    type Meddle = fn(&Harness, &FileIntent);
    let others: [(&str, Meddle); 3] = [
        ("another content", |harness, file| harness.write(file.path.to_str().unwrap(), "theirs\n")),
        ("a directory in its place", |harness, file| {
            harness.write(file.path.join("below").to_str().unwrap(), "theirs\n");
        }),
        ("the same content, written again", |harness, file| {
            let content = harness.read(file.path.to_str().unwrap());
            harness.write("other", content.unwrap());
            harness.rename("other", file.path.to_str().unwrap());
        }),
    ];
    for case in cases() {
        for (how, meddle) in &others {
            let harness = workspace();
            let files = declared(&harness, &case, true).await;
            let existing = harness.read(files[0].path.to_str().unwrap()).is_some();
            // A file is no directory, and one that does not exist has no content to repeat.
            if existing == how.starts_with("a directory") || (!existing && how.starts_with("the same")) {
                continue;
            }
            meddle(&harness, &files[0]);
            let result = reconcile(harness.env.as_ref(), &files).await;
            let Reconciliation::Conflict { changed, done, .. } = &result else {
                panic!("{}, {how}: {result:?}", case.0);
            };
            assert_eq!((changed.len(), done.len()), (1, 0), "{}, {how}", case.0);
        }
    }
}

/// Of several files, all or none go on.
#[tokio::test]
async fn a_patch_that_was_cut_in_the_middle_is_a_conflict() {
    let case = &cases()[4];
    let harness = workspace();
    let files = declared(&harness, case, true).await;
    assert_eq!(files.len(), 5, "{files:?}");
    harness.write("a", "two\n");
    let result = reconcile(harness.env.as_ref(), &files).await;
    let Reconciliation::Conflict { done, untouched, changed } = result else { panic!("{result:?}") };
    assert_eq!((done.len(), untouched.len(), changed.len()), (1, 4, 0));
}

#[tokio::test]
async fn a_place_without_identities_counts_as_conflict() {
    let env = pintle_env::MemoryEnvironment::new("/p").with_file("a", "one");
    let change = DeclaredChange { path: Path::new("a"), before: Some(b"one"), after: Some(b"two") };
    let files = [change.intent(&env).await];
    assert!(matches!(reconcile(&env, &files).await, Reconciliation::Conflict { .. }));
    env.write(Path::new("a"), b"two").await.unwrap();
    assert_eq!(reconcile(&env, &files).await, Reconciliation::Done);
}

/// A process can die in the instant in which a new content has a name and the file has not taken it yet.
#[tokio::test]
async fn temporary_files_of_an_interrupted_call_are_removed() {
    let env = pintle_env::MemoryEnvironment::new("/p").with_file("a", "two");
    let change = DeclaredChange { path: Path::new("a"), before: Some(b"one"), after: Some(b"two") };
    let files = [change.intent(&env).await];
    for (name, content, stays) in [
        (".pintle-0011", "two", false),
        (".pintle-0022", "one", false),
        (".pintle-0033", "of somebody else", true),
        ("pintle-0044", "two", true),
        ("b", "two", true),
    ] {
        env.write(Path::new(name), content.as_bytes()).await.unwrap();
        assert_eq!(reconcile(&env, &files).await, Reconciliation::Done);
        assert_eq!(env.file_exists(Path::new(name)).await.unwrap(), stays, "{name}: {content}");
    }
    // In a conflict, the content before the call may be nowhere else.
    env.write(Path::new("a"), b"three").await.unwrap();
    env.write(Path::new(".pintle-0055"), b"one").await.unwrap();
    env.write(Path::new(".pintle-0066"), b"two").await.unwrap();
    assert!(matches!(reconcile(&env, &files).await, Reconciliation::Conflict { .. }));
    for (name, stays) in [(".pintle-0055", true), (".pintle-0066", false)] {
        assert_eq!(env.file_exists(Path::new(name)).await.unwrap(), stays, "{name}");
    }
}

/// Other users can put files into the directory for copies.
#[tokio::test]
async fn only_own_private_copies_count_in_the_shared_directory() {
    use std::io::Write as _;
    use std::os::unix::fs::PermissionsExt as _;
    const CONTENT: &str = "a content of no other test\n";
    let change =
        DeclaredChange { path: Path::new("a"), before: Some(b"before\n"), after: Some(CONTENT.as_bytes()) };
    for (mode, stays) in [(0o600, false), (0o604, true), (0o644, true), (0o700, true)] {
        let harness = Harness::new();
        harness.write("a", CONTENT);
        let env = harness.env.as_ref();
        let files = [change.intent(env).await];
        let mut builder = tempfile::Builder::new();
        let mut copy = builder.prefix(TEMPORARY_PREFIX).tempfile_in(COPIES_DIRECTORY).unwrap();
        copy.write_all(CONTENT.as_bytes()).unwrap();
        std::fs::set_permissions(copy.path(), std::fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(reconcile(env, &files).await, Reconciliation::Done);
        assert_eq!(copy.path().exists(), stays, "{mode:o}");
    }
    // This environment has no owners.
    let env = pintle_env::MemoryEnvironment::new("/p").with_file("a", CONTENT);
    let files = [change.intent(&env).await];
    let copy = Path::new(COPIES_DIRECTORY).join(".pintle-0011");
    env.write(&copy, CONTENT.as_bytes()).await.unwrap();
    assert_eq!(reconcile(&env, &files).await, Reconciliation::Done);
    assert!(env.file_exists(&copy).await.unwrap());
}

#[tokio::test]
async fn temporary_files_are_read_within_limits() {
    for (others, stays) in [(MAX_LEFTOVERS - 1, false), (MAX_LEFTOVERS, true)] {
        let env = pintle_env::MemoryEnvironment::new("/p").with_file("a", "two");
        let change = DeclaredChange { path: Path::new("a"), before: Some(b"one"), after: Some(b"two") };
        let files = [change.intent(&env).await];
        for number in 0..others {
            env.write(Path::new(&format!(".pintle-{number:04}")), b"theirs").await.unwrap();
        }
        let last = Path::new(".pintle-9999");
        env.write(last, b"two").await.unwrap();
        assert_eq!(reconcile(&env, &files).await, Reconciliation::Done);
        assert_eq!(env.file_exists(last).await.unwrap(), stays, "{others}");
    }
}

/// A process can die while a file is written in place. The copies of both contents decide.
#[tokio::test]
async fn a_torn_file_is_restored_from_its_copies() {
    const COPIES: [(&str, &str); 2] = [(".pintle-0011", "old content\n"), (".pintle-0022", "NEW\n")];
    for (found, copies, is_restored) in [
        ("NEW content\n", 2, true),
        ("NEW\ncontent\n", 2, true),
        ("NE", 2, true),
        ("", 2, true),
        ("NEW con\0\0\0\0\0", 2, true),
        ("NEW content\n", 1, false),
        ("NEW content\n", 0, false),
        ("theirs\n", 2, false),
        ("NEW content\nand theirs\n", 2, false),
    ] {
        let harness = Harness::new();
        harness.write("a", "old content\n");
        let env = harness.env.as_ref();
        let (before, after) = (COPIES[0].1.as_bytes(), COPIES[1].1.as_bytes());
        let change = DeclaredChange { path: Path::new("a"), before: Some(before), after: Some(after) };
        let files = [change.intent(env).await];
        harness.write("a", found);
        for (name, content) in &COPIES[..copies] {
            harness.write(name, content);
        }
        let result = reconcile(env, &files).await;
        assert_eq!(result == Reconciliation::Untouched, is_restored, "{found:?} {copies}: {result:?}");
        assert_eq!(harness.text("a"), if is_restored { "old content\n" } else { found }, "{copies}");
        let is_left = harness.read(COPIES[0].0).is_some();
        assert_eq!(is_left, !is_restored && copies > 0, "{found:?} {copies}");
    }
}

const CHILD: &str = "PINTLE_TEST_CHILD_OF_A_TORN_WRITE";
const SIZE: usize = 8 << 20;

/// Writes a file in place until it is killed. Started by the next test only.
#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "the test passes the directory to its own process")]
async fn child_writes_in_place_until_it_is_killed() {
    let Some(directory) = std::env::var_os(CHILD) else { return };
    let env = pintle_env::LocalEnvironment::with_host_env(PathBuf::from(directory), []).unwrap();
    for byte in [b'o', b'n'].into_iter().cycle().skip(1) {
        env.write(Path::new("a"), &vec![byte; SIZE]).await.unwrap();
    }
}

/// A process is killed at any point of a write in place. The file has one of both contents after the reconciliation.
#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "the test kills a process of its own")]
async fn a_killed_process_leaves_no_torn_file() {
    for round in 0..8_u64 {
        let harness = Harness::new();
        let (old, new) = (vec![b'o'; SIZE], vec![b'n'; SIZE]);
        harness.write("a", &old);
        std::fs::hard_link(harness.path("a"), harness.path("b")).unwrap();
        let env = harness.env.as_ref();
        let intent = |before, after| DeclaredChange { path: Path::new("a"), before, after };
        // The child writes both contents in turns, so either can be the one before.
        let changes = [intent(Some(&old[..]), Some(&new[..])), intent(Some(&new[..]), Some(&old[..]))];
        let files = [changes[0].intent(env).await, changes[1].intent(env).await];
        let name = concat!(module_path!(), "::child_writes_in_place_until_it_is_killed");
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name.split_once("::").unwrap().1])
            .env(CHILD, harness.path(""))
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let has_copies = || std::fs::read_dir(harness.path("")).unwrap().count() > 3;
        let started = std::time::Instant::now();
        while !has_copies() {
            assert!(started.elapsed().as_secs() < 30, "the child does not write");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        std::thread::sleep(std::time::Duration::from_millis(round * 3));
        child.kill().unwrap();
        child.wait().unwrap();
        for file in &files {
            reconcile(env, std::slice::from_ref(file)).await;
        }
        let found = harness.read("a").unwrap();
        assert!(found == old || found == new, "round {round}: {} bytes", found.len());
        assert_eq!(harness.read("b").unwrap(), found, "round {round}");
    }
}
