use std::sync::Mutex as StdMutex;

use futures_util::FutureExt as _;
use pintle_agent::SessionId;
use pintle_llm::Fingerprint;
use pintle_tools::pipeline::DryRun;
use pintle_tools::{ChangeKind, Effect, FileChange, SandboxSide};
use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt as _, DuplexStream};

use super::*;

const PLAIN: Style = Style::PLAIN;
const WINDOW: TerminalSize = TerminalSize { columns: 80, rows: 24 };

const MOVES: Style = Style { terminal: true, colour: false, moves: true };

/// Prompter with a simulated keyboard and screen.
struct Harness {
    prompter: Prompter,
    keyboard: DuplexStream,
    screen: Arc<StdMutex<String>>,
}

impl Harness {
    fn new(style: Style) -> Self {
        let (keyboard, answers) = tokio::io::duplex(1024);
        let screen = Arc::new(StdMutex::new(String::new()));
        let written = Arc::clone(&screen);
        let output = move |event: PromptEvent<'_>| match event {
            PromptEvent::Shown(text) => written.lock().unwrap().push_str(text),
            PromptEvent::Answered => {}
            PromptEvent::Abandoned => written.lock().unwrap().push('\n'),
        };
        let prompter = Prompter::with_io(BufReader::new(answers), output, || WINDOW, style);
        Self { prompter, keyboard, screen }
    }

    fn screen(&self) -> String {
        self.screen.lock().unwrap().clone()
    }

    /// Types the answer once a question is on screen.
    async fn decide(&mut self, request: &ApprovalRequest, answer: &str) -> Decision {
        let before = self.screen().len();
        let prompter = self.prompter.clone();
        let typing = async {
            while self.screen.lock().unwrap().len() == before {
                tokio::task::yield_now().await;
            }
            self.keyboard.write_all(answer.as_bytes()).await.unwrap();
        };
        tokio::join!(prompter.decide(request), typing).0
    }
}

/// A question that belongs to no call may come while something moves below the transcript.
#[tokio::test]
async fn questions_of_no_call_take_the_place_of_what_moves() {
    let styles = [(Style::PLAIN, "\nit costs:\nPay? "), (MOVES, "\x1b[J\nit costs:\nPay? ")];
    for (style, expected) in styles {
        let mut harness = Harness::new(style);
        let prompter = harness.prompter.clone();
        let typing = async {
            while harness.screen().is_empty() {
                tokio::task::yield_now().await;
            }
            harness.keyboard.write_all(b"yes\n").await.unwrap();
        };
        let (answer, ()) = tokio::join!(prompter.ask_now("it costs", "Pay? "), typing);
        assert_eq!(answer.as_deref(), Some("yes"));
        assert_eq!(harness.screen(), expected);
    }
}

fn deny(reason: &str) -> Decision {
    Decision::Deny { reason: Some(reason.to_owned()) }
}

fn request(tool: &str, effect: Effect, arguments: Value) -> ApprovalRequest {
    let request = ApprovalRequest::new("call_1", tool, Fingerprint::from_bytes(b"call"));
    request.with_effect(effect).with_arguments(arguments).with_reason("because")
}

fn command() -> ApprovalRequest {
    request("shell", Effect::Execute, json!({"command": "make\n\x1b[2Jrm -rf x"}))
}

fn decided(decision: Decision) -> Answer {
    Answer::Decided(CallDecision::once(decision))
}

#[test]
fn only_a_plain_yes_approves() {
    let no = deny("the user denied the call");
    let cases = [
        ("y", Decision::Approve),
        (" YES ", Decision::Approve),
        ("n", no.clone()),
        ("No", no.clone()),
        ("", no),
        ("s", deny("the user says: s")),
        ("yes, but use make", deny("the user says: yes, but use make")),
    ];
    for (answer, expected) in cases {
        assert_eq!(Answer::parse(Some(answer), &command()), decided(expected), "{answer:?}");
    }
    let closed = deny("the terminal was closed without an answer");
    assert_eq!(Answer::parse(None, &command()), decided(closed));
}

#[test]
fn session_adds_the_suggested_rule_or_another_one() {
    let mut request = command();
    request.suggested_rules = vec!["shell(make)".to_owned(), "shell(ls)".to_owned()];
    for (answer, rules) in [
        ("s", &["shell(make)", "shell(ls)"][..]),
        ("SESSION", &["shell(make)", "shell(ls)"]),
        ("always", &["shell(make)", "shell(ls)"]),
        ("a shell(make *)", &["shell(make *)"]),
        ("s shell(make *)", &["shell(make *)"]),
        ("session  @execute(make *)", &["@execute(make *)"]),
    ] {
        let rules = rules.iter().map(|rule| (*rule).to_owned()).collect();
        let expected = Answer::Decided(CallDecision::allowed_by(rules));
        assert_eq!(Answer::parse(Some(answer), &request), expected, "{answer}");
    }
    for instead in ["session (make) has its own", "a better name is load(path)"] {
        let expected = decided(deny(&format!("the user says: {instead}")));
        assert_eq!(Answer::parse(Some(instead), &request), expected);
    }
}

#[tokio::test]
async fn an_accepted_rule_holds_from_then_on_and_a_wrong_one_is_asked_about_again() {
    use pintle_governance::{Mode, Rules};
    let mut harness = Harness::new(PLAIN);
    let policy = Policy::new(Mode::Edit, Rules::new(), "/w");
    harness.prompter.set_policy(policy.clone());
    harness.prompter.mark_shown(&call_key(None, "call_1"));
    let mut request = command();
    request.suggested_rules = vec!["shell(make)".to_owned()];
    assert_eq!(harness.decide(&request, "s\n").await, Decision::Approve);
    assert!(harness.screen().contains("[s]ession shell(make), or"), "{}", harness.screen());
    let rules: Vec<String> = policy
        .rules()
        .on_record()
        .map(|rule| format!("{} {} {}", rule.permission, rule.rule, rule.source))
        .collect();
    assert_eq!(rules, ["allow shell(make) approval of call_1"]);
    let denied = harness.decide(&request, "s shell(make; rm)\n");
    let denied = tokio::time::timeout(std::time::Duration::from_millis(500), denied).await;
    assert!(denied.is_err(), "it is asked about again: {denied:?}");
    assert_eq!(policy.rules().len(), 1);
}

#[test]
fn approval_shows_the_complete_effect() {
    let diff = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+t\rwo\n";
    let change = |diff: &str| FileChange::new("a.txt", ChangeKind::Modified, diff);
    let edit = || request("edit_file", Effect::Write, json!({"file_path": "a.txt"}));
    insta::assert_snapshot!(approval_question(&edit().with_dry_run(Some(DryRun::new(vec![change(diff)]))), WINDOW, PLAIN), @r"

    edit_file (because):
        --- a/a.txt
        +++ b/a.txt
        @@ -1 +1 @@
        -one
        +t\rwo
    Run it? [y]es, [n]o, or what to do instead: 
    ");
    insta::assert_snapshot!(approval_question(&command(), WINDOW, PLAIN), @r"

    shell (because):
        make
        \u{1b}[2Jrm -rf x
    Run it? [y]es, [n]o, or what to do instead: 
    ");
    // The working directory is shown, and a command cannot fake it.
    let arguments =
        json!({"cmd": "make\nworkdir: \"/w\"", "tty": true, "workdir": "/srv\x1b", "yield_time_ms": null});
    insta::assert_snapshot!(approval_question(&request("exec_command", Effect::Execute, arguments), WINDOW, PLAIN), @r#"

    exec_command (because):
        tty: true
        workdir: "/srv\u001b"
        make
        workdir: "/w"
    Run it? [y]es, [n]o, or what to do instead: 
    "#);
    let failing = DryRun::default().with_failure(Some("Tool error (edit_file): no".to_owned()));
    insta::assert_snapshot!(approval_question(&edit().with_dry_run(Some(failing)), WINDOW, PLAIN), @r#"

    edit_file (because):
        a dry run failed:
        Tool error (edit_file): no
        arguments:
        {
          "file_path": "a.txt"
        }
    Run it? [y]es, [n]o, or what to do instead: 
    "#);
    // A change without a diff must not hide behind one with a diff.
    let hidden = DryRun::new(vec![change(diff), change("")]);
    insta::assert_snapshot!(approval_question(&edit().with_dry_run(Some(hidden)), WINDOW, PLAIN), @r#"

    edit_file (because):
        {
          "file_path": "a.txt"
        }
    Run it? [y]es, [n]o, or what to do instead: 
    "#);
    // A file name must not pose as another diff header.
    let name = "a.txt\n--- a/b.txt\n+++ b/b.txt";
    let named = DryRun::new(vec![FileChange::new(name, ChangeKind::Modified, diff)]);
    let shown = approval_question(&edit().with_dry_run(Some(named)), WINDOW, PLAIN);
    assert!(shown.contains("\"file_path\"") && !shown.contains("+++"), "{shown}");
    let coloured = Style { terminal: true, colour: true, moves: true };
    let shown =
        approval_question(&edit().with_dry_run(Some(DryRun::new(vec![change(diff)]))), WINDOW, coloured);
    assert!(shown.contains("\x1b[31m-one\x1b[0m"), "{shown:?}");
}

#[tokio::test]
async fn typeahead_is_not_an_answer() {
    let mut harness = Harness::new(PLAIN);
    harness.prompter.mark_shown("call_1");
    harness.keyboard.write_all(b"y\ny\n").await.unwrap();
    assert_eq!(
        harness.decide(&command(), "n\n").await,
        deny("the user denied the call"),
        "typeahead is discarded"
    );
    assert!(harness.screen().ends_with("what to do instead: "), "{}", harness.screen());
    assert_eq!(harness.decide(&command(), "y\n").await, Decision::Approve);
    assert!(harness.prompter.failure().is_none(), "the user was asked");
}

#[tokio::test]
async fn question_waits_for_earlier_output() {
    let mut harness = Harness::new(PLAIN);
    let prompter = harness.prompter.clone();
    let early = tokio::time::timeout(Duration::from_millis(50), prompter.decide(&command())).await;
    assert!(early.is_err() && harness.screen().is_empty());
    harness.prompter.mark_shown("call_1");
    assert_eq!(harness.decide(&command(), "y\n").await, Decision::Approve);
}

/// Returns the same call made by a subagent.
fn from_subagent(agent: &str, depth: u32) -> ApprovalRequest {
    let origin = json!({"agent_id": agent, "session_id": "below", "parent": "above", "depth": depth});
    command().with_origin(Some(serde_json::from_value(origin).unwrap()))
}

/// Calls of different sessions may share an id.
#[tokio::test]
async fn subagent_question_waits_for_its_own_output() {
    let key = call_key(Some(&SessionId::new("below")), "call_1");
    let cases = [(from_subagent("agent_1", 1), "call_1", key.as_str()), (command(), key.as_str(), "call_1")];
    for (request, other, own) in cases {
        let mut harness = Harness::new(PLAIN);
        let prompter = harness.prompter.clone();
        prompter.mark_shown(other);
        let early = tokio::time::timeout(Duration::from_millis(50), prompter.decide(&request)).await;
        assert!(early.is_err() && harness.screen().is_empty(), "{}", harness.screen());
        prompter.mark_shown(own);
        assert_eq!(harness.decide(&request, "y\n").await, Decision::Approve);
    }
}

#[test]
fn question_names_its_subagent() {
    let cases = [
        (command(), "\nshell (because):\n"),
        (from_subagent("agent_1", 1), "\nagent_1: shell (because):\n"),
        (from_subagent("a\x1b[2J", 2), "\na\\u{1b}[2J at depth 2: shell (because):\n"),
    ];
    for (request, expected) in cases {
        let text = approval_question(&request, WINDOW, PLAIN);
        assert!(text.starts_with(expected), "{text:?}");
    }
}

#[tokio::test]
async fn closed_input_denies() {
    let mut harness = Harness::new(PLAIN);
    harness.prompter.mark_shown("call_1");
    harness.keyboard.shutdown().await.unwrap();
    assert_eq!(harness.prompter.decide(&command()).await, deny("the terminal was closed without an answer"));
    assert!(harness.screen().ends_with("what to do instead: \n"), "{}", harness.screen());
}

#[tokio::test]
async fn dropped_question_ends_its_line() {
    let harness = Harness::new(PLAIN);
    harness.prompter.mark_shown("call_1");
    let is_shown = async {
        while harness.screen().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    let command = command();
    tokio::select! {
        decision = harness.prompter.decide(&command) => panic!("{decision:?}"),
        () = is_shown => {}
    }
    assert!(harness.screen().ends_with("what to do instead: \n"), "{}", harness.screen());
}

#[tokio::test]
async fn missing_terminal_denies_with_its_own_kind() {
    let prompter = Prompter::new(None);
    assert!(prompter.failure().is_none());
    let denied = deny("it needs approval, but no terminal is available");
    assert_eq!(prompter.decide(&command()).await, denied);
    let failure = prompter.failure().unwrap();
    assert_eq!(
        (failure.kind(), failure.message().as_str()),
        (
            FailureKind::Denied,
            "1 call was denied: it needed approval, but no terminal was available; --allow RULE lets such calls run, and --mode selects what needs approval"
        )
    );
    assert_eq!(prompter.decide(&command()).await, denied);
    assert!(prompter.failure().unwrap().message().starts_with("2 calls were denied"));
}

#[tokio::test]
async fn model_question_waits_for_earlier_output() {
    let mut harness = Harness::new(PLAIN);
    assert!(harness.prompter.is_attended() && !Prompter::new(None).is_attended());
    for (typed, expected) in [("8080\n", Some("8080".to_owned())), ("  \n", None)] {
        let prompter = harness.prompter.clone();
        let before = harness.screen().len();
        let typing = async {
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            assert_eq!(harness.screen.lock().unwrap().len(), before, "asked too early");
            prompter.mark_shown(typed);
            while harness.screen.lock().unwrap().len() == before {
                tokio::task::yield_now().await;
            }
            harness.keyboard.write_all(typed.as_bytes()).await.unwrap();
        };
        let (answer, ()) =
            tokio::join!(harness.prompter.ask(typed, Some("Which port?\n1. 80\x1b[2J")), typing);
        assert_eq!(answer, expected);
    }
    assert!(harness.screen().starts_with("\nWhich port?\n1. 80\\u{1b}[2J\n> "), "{:?}", harness.screen());
    assert_eq!(Prompter::new(None).ask("a", Some("Why?")).await, None);
}

#[tokio::test]
async fn conversation_decides_calls_through_the_handle() {
    let (prompter, _questions) = Prompter::in_conversation(None);
    assert!(prompter.is_attended());
    assert_eq!(prompter.decide(&command()).now_or_never(), None);
    assert!(prompter.failure().is_none());
}

#[tokio::test]
async fn conversation_answers_questions_that_belong_to_no_call() {
    let (prompter, mut questions) = Prompter::in_conversation(None);
    let answering = async {
        let question = questions.recv().await.unwrap();
        assert_eq!((question.text.as_str(), question.details.as_slice()), ("Which?", &["a".to_owned()][..]));
        question.answer("b");
    };
    let details = ["a".to_owned()];
    let (answer, ()) = tokio::join!(prompter.ask_for_text("Which?", &details, "> "), answering);
    assert_eq!(answer.as_deref(), Some("b"));
    drop(questions);
    assert_eq!(prompter.ask_for_text("Which?", &[], "> ").await, None);
}

fn outside() -> ApprovalRequest {
    let arguments = json!({"command": "make", "outside_sandbox": true});
    let mut request = request("shell", Effect::Execute, arguments);
    request.sandbox = Some(SandboxSide::Outside);
    request
}

#[tokio::test]
async fn a_command_outside_of_the_sandbox_can_run_inside_instead() {
    for (answer, expected) in [
        ("y\n", Decision::Approve),
        ("i\n", Decision::Change { arguments: json!({"command": "make"}) }),
        ("inside\n", Decision::Change { arguments: json!({"command": "make"}) }),
        ("n\n", deny("the user denied the call")),
    ] {
        let mut harness = Harness::new(PLAIN);
        harness.prompter.mark_shown(&call_key(None, "call_1"));
        assert_eq!(harness.decide(&outside(), answer).await, expected, "{answer}");
        let screen = harness.screen();
        assert!(screen.contains("Run it outside of the sandbox? [y]es, [i]nside instead"), "{screen}");
        assert!(screen.contains("outside_sandbox: true"), "{screen}");
    }
    // Elsewhere the word is what to do instead.
    let mut harness = Harness::new(PLAIN);
    harness.prompter.mark_shown(&call_key(None, "call_1"));
    let mut held = outside();
    held.sandbox = Some(SandboxSide::Inside);
    assert_eq!(harness.decide(&held, "inside\n").await, deny("the user says: inside"));
    assert!(harness.screen().contains("Run it in the sandbox? [y]es, [n]o"), "{}", harness.screen());
}

#[tokio::test]
async fn whoever_accepts_a_plan_can_choose_the_mode() {
    let plan = || request(PresentPlan::NAME, Effect::Read, json!({"plan": "# Plan\n1. Do it."}));
    for (answer, allows_auto, expected) in [
        ("y\n", true, Mode::Ask),
        ("auto\n", true, Mode::Auto),
        ("Edit\n", true, Mode::Edit),
        ("auto\nedit\n", false, Mode::Edit),
    ] {
        let mut harness = Harness::new(PLAIN);
        harness.prompter.mark_shown(&call_key(None, "call_1"));
        let policy = Policy::new(Mode::Plan, pintle_governance::Rules::new(), "/w");
        policy.set_after_plan(Mode::Ask);
        harness.prompter.set_policy(policy.clone());
        if !allows_auto {
            harness.prompter.refuse_auto();
        }
        // The second line answers the question that is asked again.
        let (first, second) = answer.split_at(answer.find('\n').unwrap() + 1);
        let decision = if second.is_empty() {
            harness.decide(&plan(), first).await
        } else {
            let prompter = harness.prompter.clone();
            let screen = Arc::clone(&harness.screen);
            let asked = |times: usize| {
                let screen = Arc::clone(&screen);
                async move {
                    while screen.lock().unwrap().matches("Accept it?").count() < times {
                        tokio::task::yield_now().await;
                    }
                }
            };
            let typing = async {
                asked(1).await;
                harness.keyboard.write_all(first.as_bytes()).await.unwrap();
                asked(2).await;
                harness.keyboard.write_all(second.as_bytes()).await.unwrap();
            };
            let plan = plan();
            tokio::join!(prompter.decide(&plan), typing).0
        };
        assert_eq!((decision, policy.after_plan()), (Decision::Approve, expected), "{answer}");
        assert!(harness.screen().contains("1. Do it.\n"), "{}", harness.screen());
    }
    let mut harness = Harness::new(PLAIN);
    harness.prompter.mark_shown(&call_key(None, "call_1"));
    assert_eq!(harness.decide(&plan(), "plan\n").await, deny("the user says: plan"));
}

#[test]
fn all_choices_that_apply_are_offered() {
    let mut request = outside();
    request.suggested_rules = vec!["shell(make)".to_owned()];
    let shown = approval_question(&request, WINDOW, PLAIN);
    let prompt =
        "Run it outside of the sandbox? [y]es, [i]nside instead, [n]o, [s]ession shell(make), or what";
    assert!(shown.contains(prompt), "{shown}");
    let rule = format!("shell(make {})", "x".repeat(MAX_RULES));
    request.suggested_rules = vec![rule.clone()];
    let shown = approval_question(&request, WINDOW, PLAIN);
    assert!(shown.contains(&format!("    for this session: {rule}\n")), "{shown}");
    assert!(shown.contains("[n]o, [s]ession as above, or what"), "{shown}");
    let choices: Vec<Choice> = Choice::for_call(&request).collect();
    assert!(choices.iter().all(|choice| Choice::by_name(choice.key()) == Some(*choice)), "{choices:?}");
}
