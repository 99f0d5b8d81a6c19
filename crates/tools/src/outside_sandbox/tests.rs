use pintle_env::{
    Command, EnvError, ExecRequest, ExecResult, ExecutionEnvironment, ExecutionEnvironmentExt as _,
    LocalEnvironment, Process, forward,
};
use pintle_llm::ToolCall;
use tempfile::TempDir;

use super::*;
use crate::builtin::{self, BackgroundCommands};
use crate::gate::{EffectGate, Gate, Judgement, Permission, Verdict, judge};
use crate::native::{anthropic, gemini, openai};
use crate::pipeline::{Execution, JudgedCall, PreparedCall, RunOptions, prepare, run};

/// An environment that holds its commands to another directory than those outside.
#[derive(Debug)]
struct Held {
    inner: LocalEnvironment,
    outside: Option<Arc<LocalEnvironment>>,
    _directories: [TempDir; 2],
}

impl Held {
    fn new() -> Self {
        let directories = [(); 2].map(|()| TempDir::new().unwrap());
        let [inner, outside] = directories.each_ref().map(|directory| {
            let path = [("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())];
            LocalEnvironment::with_host_env(directory.path(), path).unwrap()
        });
        Self { inner, outside: Some(Arc::new(outside)), _directories: directories }
    }
}

#[async_trait]
impl ExecutionEnvironment for Held {
    forward! {
        inner:
        working_directory, platform, os_version, initialize, cleanup, read, write, metadata, list, remove, rename,
        canonicalize,
    }

    fn command_limits(&self) -> Option<String> {
        Some("they run in a sandbox.".to_owned())
    }

    fn outside_sandbox(&self) -> Option<Arc<dyn ExecutionEnvironment>> {
        self.outside.clone().map(|outside| outside as _)
    }

    async fn spawn(&self, command: Command) -> Result<Box<dyn Process>, EnvError> {
        self.inner.spawn(command).await
    }

    async fn exec_command(&self, request: ExecRequest) -> Result<ExecResult, EnvError> {
        self.inner.exec_command(request).await
    }
}

fn registry() -> ToolRegistry {
    let mut registry = ToolRegistry::new();
    builtin::register_core(&mut registry).unwrap();
    builtin::register_background(&mut registry).unwrap();
    registry.register(anthropic::Bash::new()).unwrap();
    registry.register(gemini::RunShellCommand::new()).unwrap();
    registry.register(openai::ExecCommand::new()).unwrap();
    registry
}

fn offering() -> ToolRegistry {
    let mut registry = registry();
    registry.offer_outside_sandbox().unwrap();
    registry
}

fn shell(line: &str, outside: Option<bool>) -> ToolCall {
    let mut arguments = json!({ "command": line });
    if let Some(outside) = outside {
        arguments[OUTSIDE_SANDBOX] = outside.into();
    }
    ToolCall::from_raw("c", "shell", arguments.to_string())
}

async fn prepared(env: &dyn ExecutionEnvironment, call: &ToolCall) -> (PreparedCall, Judgement) {
    match prepare(&offering(), &[], env, call).await {
        JudgedCall::Ready { call, judgement } | JudgedCall::Ask { call, judgement } => (call, judgement),
        refused => panic!("{refused:?}"),
    }
}

async fn run_in(env: Arc<Held>, call: ToolCall, approves: bool) -> Execution {
    let options = RunOptions::new().with_approval(move |_, reason| async move {
        assert_eq!(reason, "it runs outside of the sandbox");
        approves
    });
    run(&offering(), &call, &ToolContext::new(env, "c"), &options).await
}

#[test]
fn tools_that_run_commands_get_the_argument_and_nothing_else_changes() {
    let (before, mut after) = (registry(), offering());
    let names = |registry: &ToolRegistry| registry.names().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(names(&before), names(&after));
    let mut changed = Vec::new();
    for name in before.names() {
        let (old, new) = (before.get(name).unwrap(), after.get(name).unwrap());
        assert_eq!(
            (old.kind(), old.effect(), old.truncation()),
            (new.kind(), new.effect(), new.truncation())
        );
        assert_eq!(old.aliases(), new.aliases());
        let mut definition = new.definition().clone();
        let properties = definition.parameters["properties"].as_object_mut().unwrap();
        if properties.remove(OUTSIDE_SANDBOX).is_some() {
            changed.push(name);
        }
        assert_eq!(&definition, old.definition());
    }
    assert_eq!(changed, ["shell", "shell_start", "Bash", "run_shell_command", "exec_command"]);
    let definitions = after.definitions();
    after.offer_outside_sandbox().unwrap();
    assert_eq!(definitions, after.definitions());
}

#[tokio::test]
async fn a_call_runs_on_the_side_that_it_names() {
    let env = Arc::new(Held::new());
    let directory = |env: &dyn ExecutionEnvironment| env.working_directory().display().to_string();
    let (inside, outside) = (directory(&env.inner), directory(env.outside.as_deref().unwrap()));
    for (wish, side, expected) in [
        (None, SandboxSide::Inside, inside.as_str()),
        (Some(false), SandboxSide::Inside, inside.as_str()),
        (Some(true), SandboxSide::Outside, outside.as_str()),
    ] {
        let (call, _) = prepared(env.as_ref(), &shell("pwd", wish)).await;
        assert_eq!(call.sandbox(), Some(side), "{wish:?}");
        let ran = run_in(Arc::clone(&env), shell("pwd", wish), true).await;
        assert!(ran.result.text().contains(expected), "{wish:?}: {}", ran.result.text());
    }
    let (reading, _) = prepared(env.as_ref(), &ToolCall::from_raw("c", "glob", r#"{"pattern":"*"}"#)).await;
    assert_eq!(reading.sandbox(), None);
    let (call, judgement) = prepared(&env.inner, &shell("pwd", None)).await;
    assert_eq!((call.sandbox(), judgement.permission()), (None, Permission::Allow));
}

#[tokio::test]
async fn a_call_outside_that_nobody_allows_does_not_run() {
    let env = Arc::new(Held::new());
    let denied = run_in(Arc::clone(&env), shell("touch made", Some(true)), false).await;
    assert!(denied.result.is_error, "{}", denied.result.text());
    let outside = env.outside.as_deref().unwrap();
    assert!(!outside.file_exists("made".as_ref()).await.unwrap());
    assert!(!env.inner.file_exists("made".as_ref()).await.unwrap());
}

#[tokio::test]
async fn an_environment_without_a_way_out_runs_nothing_instead() {
    let mut env = Held::new();
    env.outside = None;
    let env = Arc::new(env);
    let ran = run_in(Arc::clone(&env), shell("touch made", Some(true)), true).await;
    assert!(ran.result.text().contains("make the call without outside_sandbox"), "{}", ran.result.text());
    assert!(!env.inner.file_exists("made".as_ref()).await.unwrap());
}

#[derive(Debug)]
struct Fixed(Verdict);

#[async_trait]
impl Gate for Fixed {
    async fn check(&self, _call: &PreparedCall) -> Verdict {
        self.0.clone()
    }
}

#[tokio::test]
async fn only_a_person_lets_a_call_leave_the_sandbox() {
    let env = Held::new();
    let (call, _) = prepared(&env, &shell("make", Some(true))).await;
    let gates: [(Arc<dyn Gate>, Permission); 6] = [
        (Arc::new(Fixed(Verdict::ALLOW)), Permission::Ask),
        (Arc::new(EffectGate::new().with_permission(Effect::Execute, Permission::Allow)), Permission::Ask),
        (Arc::new(Fixed(Verdict::ask("by default").by_default())), Permission::Ask),
        (Arc::new(Fixed(Verdict::ask("by name"))), Permission::Ask),
        (Arc::new(Fixed(Verdict::ALLOW.answering())), Permission::Ask),
        (Arc::new(Fixed(Verdict::deny("no"))), Permission::Deny),
    ];
    for (gate, expected) in gates {
        let hook: Arc<dyn Gate> = Arc::new(Fixed(Verdict::ALLOW.answering()));
        let judgement = judge(&[Arc::clone(&gate), hook], &call).await;
        assert_eq!(judgement.permission(), expected, "{gate:?}: {judgement:?}");
    }
    let judgement = judge(&[], &call).await;
    assert_eq!(judgement.reason(), "it runs outside of the sandbox");
    assert_eq!(judgement.steps()[0].rule.as_deref(), Some("outside of the sandbox"));
}

#[tokio::test]
async fn a_background_command_outside_takes_no_input() {
    let env = Arc::new(Held::new());
    let background = BackgroundCommands::new();
    let cx = ToolContext::new(env, "c").with_background(background.clone());
    let options = RunOptions::new().with_approval(|_, _| async { true });
    for (outside, takes_input) in [(false, true), (true, false)] {
        let arguments = json!({"command": "sleep 60", OUTSIDE_SANDBOX: outside});
        let call = ToolCall::from_raw("c", "shell_start", arguments.to_string());
        let started = run(&offering(), &call, &cx, &options).await;
        assert!(!started.result.is_error, "{}", started.result.text());
        let id = background.list().last().unwrap().id;
        assert_eq!(background.write(id, b"id\n", false).await.is_ok(), takes_input, "{outside}");
    }
    background.close().await;
}

#[tokio::test]
async fn a_command_that_was_held_back_says_how_to_ask_for_more() {
    let mut env = Held::new();
    let line = "echo 'touch: /x: Read-only file system' >&2; exit 1";
    for leavable in [true, false] {
        env.outside = env.outside.take().filter(|_| leavable);
        let cx = ToolContext::new(Arc::new(std::mem::replace(&mut env, Held::new())), "c");
        for (tool, argument) in [("shell", "command"), ("Bash", "command"), ("exec_command", "cmd")] {
            let call = ToolCall::from_raw("c", tool, json!({ argument: line }).to_string());
            let text = run(&offering(), &call, &cx, &RunOptions::new()).await.result.text();
            assert!(text.contains("they run in a sandbox."), "{text}");
            assert_eq!(text.contains("with outside_sandbox set to true"), leavable, "{tool}: {text}");
        }
    }
}

#[test]
fn the_argument_is_described_as_reviewed() {
    assert_eq!(
        DESCRIPTION,
        "Runs the command outside of the sandbox, with everything that the user can do. The user is asked each time. \
         Only for a command that the sandbox stops; say why before the call."
    );
}
