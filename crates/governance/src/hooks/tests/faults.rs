//! Commands that hang, flood, die, and answer nonsense.

use pintle_tools::gate::Permission;

use super::*;

/// Bound of what takes a second: a machine may be slow.
const PATIENCE: Duration = Duration::from_secs(60);

impl Fixture {
    /// Returns hooks of one command before calls, with a time-out.
    fn limited(&self, script: &str, timeout: Duration, is_required: bool) -> ExternalHooks {
        self.write("hook.sh", script);
        let command = HookCommand::new(HookEvent::PreToolUse, "sh hook.sh", "h").with_timeout(timeout);
        let mut commands = HookCommands::new();
        commands.add(if is_required { command.required() } else { command });
        self.hooks_of(commands)
    }

    /// Waits until a file has a line, and returns it.
    async fn line_of(&self, name: &str) -> String {
        let written = async {
            loop {
                let text = std::fs::read_to_string(self.path(name)).unwrap_or_default();
                if let Some((line, _)) = text.split_once('\n') {
                    return line.to_owned();
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(PATIENCE, written).await.unwrap()
    }
}

#[tokio::test]
async fn hooks_that_do_not_answer_are_ignored_unless_they_are_required() {
    let garbage = |text: &str| format!("cat <<'END'\n{text}\nEND\n");
    let wrong_event = r#"{"hookSpecificOutput": {"hookEventName": "Stop", "permissionDecision": "allow"}}"#;
    let no_object = r#"{"hookSpecificOutput": {"permissionDecision": "allow", "updatedInput": "rm -rf /"}}"#;
    let before_noise = "{\"decision\": \"block\"}\nbye";
    let between_noise = "npm notice: a new version\n{\"decision\": \"block\"}\nbye";
    let after_noise = "npm notice: a new version\n{\"decision\": \"block\"}";
    let cases = [
        ("exit 1".to_owned(), HookFailure::Exit, Some(1), "it failed"),
        ("exit 3".to_owned(), HookFailure::Exit, Some(3), "it failed"),
        ("no-such-program".to_owned(), HookFailure::Exit, Some(127), "it failed"),
        ("kill -9 $$".to_owned(), HookFailure::Exit, Some(137), "it failed"),
        ("kill -TERM $$".to_owned(), HookFailure::Exit, Some(143), "it failed"),
        ("exec sleep 1000".to_owned(), HookFailure::TimedOut, None, "it timed out"),
        ("yes | head -c 100M".to_owned(), HookFailure::Flooded, None, "it wrote too much"),
        ("yes | head -c 100M >&2".to_owned(), HookFailure::Flooded, None, "it wrote too much"),
        ("head -c 65537 /dev/zero".to_owned(), HookFailure::Flooded, None, "it wrote too much"),
        (garbage("{"), HookFailure::Garbage, Some(0), "its answer is not understood"),
        (garbage("{} {}"), HookFailure::Garbage, Some(0), "its answer is not understood"),
        (garbage(r#"{"decision": "yes"}"#), HookFailure::Garbage, Some(0), "its answer is not understood"),
        (garbage(r#"{"continue": "no"}"#), HookFailure::Garbage, Some(0), "its answer is not understood"),
        (garbage(wrong_event), HookFailure::Garbage, Some(0), "its answer is not understood"),
        (garbage(no_object), HookFailure::Garbage, Some(0), "its answer is not understood"),
        (garbage(after_noise), HookFailure::Garbage, Some(0), "its answer is not understood"),
        (garbage(before_noise), HookFailure::Garbage, Some(0), "its answer is not understood"),
        (garbage(between_noise), HookFailure::Garbage, Some(0), "its answer is not understood"),
    ];
    let fixture = Fixture::new();
    for (script, failure, exit_code, why) in cases {
        for is_required in [false, true] {
            let limit = if failure == HookFailure::TimedOut { Duration::from_millis(200) } else { PATIENCE };
            let hooks = fixture.limited(&script, limit, is_required);
            let answer = tokio::time::timeout(PATIENCE, fixture.before_call(&hooks)).await.unwrap();
            let reason = format!("the hook h is required and did not answer: {why}");
            let (expected, word) = if is_required {
                (CallAnswer::judge(Permission::Deny, Some(reason)).with_hook("h"), HookAnswer::Deny)
            } else {
                (CallAnswer::default(), HookAnswer::Nothing)
            };
            assert_eq!(answer, expected, "{script}");
            let [run] = fixture.runs().try_into().unwrap();
            assert_eq!(
                (run.failure, run.exit_code, run.answer),
                (Some(failure), exit_code, word),
                "{script}"
            );
        }
    }
    fixture.env.cleanup().await.unwrap();
}

#[tokio::test]
async fn a_required_hook_that_cannot_be_started_denies() {
    let fixture = Fixture::new();
    let hooks = fixture.limited("true", Duration::from_secs(60), true);
    assert_eq!(fixture.before_call(&hooks).await, CallAnswer::default());
    // Nothing starts in an environment that was shut down for good.
    let call = fixture.shell().await;
    fixture.env.kill_all();
    let answer = hooks.before_call(&fixture.session(), &call, &Judgement::new()).await;
    let reason = "the hook h is required and did not answer: it could not be run";
    assert_eq!((answer.permission, answer.reason.as_deref()), (Some(Permission::Deny), Some(reason)));
    let runs = fixture.runs();
    assert_eq!(runs.last().unwrap().failure, Some(HookFailure::Lost));
}

#[tokio::test]
async fn the_error_output_of_a_failure_is_reported() {
    let fixture = Fixture::new();
    let hooks = fixture.limited("echo 'no jq' >&2; exit 1", Duration::from_secs(60), false);
    fixture.before_call(&hooks).await;
    let [run] = fixture.runs().try_into().unwrap();
    assert_eq!(run.message.as_deref(), Some("no jq"));
}

/// The hook ignores the signal that asks it to end, and so does the process that it started.
#[tokio::test]
async fn all_processes_of_a_hook_that_hangs_are_gone() {
    let fixture = Fixture::new();
    let script = "trap '' TERM\n(trap '' TERM; exec sleep 1000) & echo $! > child\necho $$ > parent\nwait\nsleep 1000\n";
    let hooks = fixture.limited(script, Duration::from_secs(1), false);
    tokio::time::timeout(PATIENCE, fixture.before_call(&hooks)).await.unwrap();
    let [run] = fixture.runs().try_into().unwrap();
    assert_eq!(run.failure, Some(HookFailure::TimedOut));
    assert!(run.duration_ms >= 1_000, "{run:?}");
    for name in ["parent", "child"] {
        assert!(!is_alive(&fixture.read(name)), "{name}");
    }
}

#[tokio::test]
async fn a_flood_ends_with_its_hook() {
    let fixture = Fixture::new();
    let hooks = fixture.limited("echo $$ > parent\nexec yes", Duration::from_secs(600), false);
    tokio::time::timeout(PATIENCE, fixture.before_call(&hooks)).await.unwrap();
    assert_eq!(fixture.runs().first().unwrap().failure, Some(HookFailure::Flooded));
    fixture.env.cleanup().await.unwrap();
    assert!(!is_alive(&fixture.read("parent")));
}

#[tokio::test]
async fn background_processes_end_with_their_hook() {
    let fixture = Fixture::new();
    let script = "sleep 1000 & echo $! > child\nnohup setsid sleep 1000 > /dev/null 2>&1 & echo $! > daemon\necho 'no' >&2\nexit 2\n";
    let hooks = fixture.limited(script, Duration::from_secs(600), false);
    let answer = tokio::time::timeout(PATIENCE, fixture.before_call(&hooks)).await.unwrap();
    assert_eq!((answer.permission, answer.reason.as_deref()), (Some(Permission::Deny), Some("no")));
    for name in ["child", "daemon"] {
        assert!(!is_alive(&fixture.read(name)), "{name}");
    }
}

#[tokio::test]
async fn a_hook_that_is_dropped_is_terminated_and_reported() {
    let fixture = Fixture::new();
    let hooks = fixture.limited("echo $$ > parent\nsleep 1000\n", Duration::from_secs(600), true);
    let call = fixture.shell().await;
    let (session, judgement) = (fixture.session(), Judgement::new());
    let mut running = hooks.before_call(&session, &call, &judgement);
    let parent = tokio::select! {
        answer = &mut running => panic!("{answer:?}"),
        parent = fixture.line_of("parent") => parent,
    };
    assert!(is_alive(&parent));
    drop(running);
    let [run] = fixture.runs().try_into().unwrap();
    assert_eq!((run.failure, run.answer), (Some(HookFailure::Stopped), HookAnswer::Nothing));
    fixture.env.cleanup().await.unwrap();
    assert!(!is_alive(&parent));
}

/// The input is larger than a pipe, so that it cannot be written as a whole.
#[tokio::test]
async fn a_hook_need_not_read_its_input() {
    let fixture = Fixture::new();
    let arguments = json!({"file_path": "a", "content": "x".repeat(1 << 20)});
    let call = fixture.call("write_file", arguments).await;
    for (script, expected) in [
        ("exit 0", None),
        ("exec < /dev/null; sleep 0.1; echo no >&2; exit 2", Some(Permission::Deny)),
        ("head -c 10 > /dev/null; exit 2", Some(Permission::Deny)),
        ("[ $(wc -c) -gt 1048576 ] && exit 2", Some(Permission::Deny)),
    ] {
        let hooks = fixture.limited(script, PATIENCE, true);
        let answer = hooks.before_call(&fixture.session(), &call, &Judgement::new()).await;
        assert_eq!(answer.permission, expected, "{script}");
        assert_eq!(fixture.runs().first().unwrap().failure, None, "{script}");
    }
}

/// Each waits for all the others, so that they end only if they run at the same time.
#[tokio::test]
async fn many_hooks_run_in_parallel() {
    const HOOKS: usize = 20;
    let fixture = Fixture::new();
    let mut commands = HookCommands::new();
    for number in 0..HOOKS {
        let script = format!(
            "touch here.{number}; while [ $(ls here.* | wc -l) -lt {HOOKS} ]; do sleep 0.05; done; echo {number}"
        );
        commands.add(
            HookCommand::new(HookEvent::UserPromptSubmit, script, format!("{number}")).with_timeout(PATIENCE),
        );
    }
    let answer = fixture.hooks_of(commands).before_input(&fixture.session(), "x").await;
    let expected: Vec<String> = (0..HOOKS).map(|number| number.to_string()).collect();
    assert_eq!(answer.context.as_deref(), Some(expected.join("\n").as_str()));
    let runs = fixture.runs();
    assert_eq!((runs.len(), runs.iter().filter(|run| run.failure.is_none()).count()), (HOOKS, HOOKS));
}

/// The others are not lost with it.
#[tokio::test]
async fn one_hook_that_fails_leaves_the_answers_of_others() {
    let fixture = Fixture::new();
    let scripts = ["exit 1", "echo '{'", "echo no >&2; exit 2", "kill -9 $$"];
    let hooks = fixture.scripts(HookEvent::PreToolUse, &scripts);
    let answer = fixture.before_call(&hooks).await;
    assert_eq!(
        answer,
        CallAnswer::judge(Permission::Deny, Some("no".to_owned())).with_hook("hook 2"),
        "a failure is no answer"
    );
}

/// Each change of a program of a trusted hook: it does not run, and the call is denied.
#[tokio::test]
async fn a_hook_whose_program_has_changed_does_not_run_and_calls_are_denied() {
    type Change = fn(&Fixture);
    let changes: [(&str, Change); 4] = [
        ("rewritten", |fixture| fixture.write("check.sh", "echo changed >> ran\n")),
        ("removed", |fixture| std::fs::remove_file(fixture.path("check.sh")).unwrap()),
        ("replaced by a link", |fixture| {
            fixture.write("other.sh", "echo changed >> ran\n");
            std::fs::remove_file(fixture.path("check.sh")).unwrap();
            std::os::unix::fs::symlink("other.sh", fixture.path("check.sh")).unwrap();
        }),
        ("another one appears", |fixture| fixture.write("more.conf", "strict = false\n")),
    ];
    for (name, change) in changes {
        let fixture = Fixture::new();
        fixture.write("check.sh", "cat > /dev/null; echo \"$1\" >> ran\n");
        let mut commands = HookCommands::new();
        for event in [HookEvent::PreToolUse, HookEvent::Stop] {
            commands.add(HookCommand::new(event, format!("sh ./check.sh {event} ./more.conf"), "h"));
        }
        let env: Arc<dyn ExecutionEnvironment> = Arc::clone(&fixture.env) as _;
        let trusted = TrustedPrograms::read(&commands, fixture.root(), env.as_ref()).await;
        let hooks = fixture.hooks_of(HookCommands::new()).and_trusted(commands, env, trusted);
        assert_eq!(fixture.before_call(&hooks).await, CallAnswer::default());
        hooks.before_end(&fixture.session(), "done", 0).await;
        assert_eq!(fixture.read("ran"), "PreToolUse\nStop\n");
        assert!(fixture.runs().iter().all(|run| run.failure.is_none()));

        change(&fixture);
        let answer = fixture.before_call(&hooks).await;
        assert_eq!(answer.permission, Some(Permission::Deny), "{name}");
        let reason = "the hook h did not run: its program has changed since it was trusted";
        assert_eq!(answer.reason.as_deref(), Some(reason), "{name}");
        assert_eq!(hooks.before_end(&fixture.session(), "done", 0).await, EndAnswer::default());
        assert_eq!(fixture.read("ran"), "PreToolUse\nStop\n", "{name}");
        let runs = fixture.runs();
        assert!(runs.iter().all(|run| run.failure == Some(HookFailure::Changed)), "{runs:?}");
        let message = runs[0].message.as_deref().unwrap();
        assert!(message.ends_with("is not as it was when it was trusted"), "{message}");
    }
}
