use std::sync::Mutex as Screen;

use pintle_agent::SessionId;
use pintle_llm::Fingerprint;
use pintle_tools::pipeline::DryRun;
use pintle_tools::{ChangeKind, FileChange};
use serde_json::json;
use tokio::io::{AsyncWriteExt as _, DuplexStream};

use super::*;

const PLAIN: Style = Style::PLAIN;
const WINDOW: Size = Size { columns: 80, rows: 24 };

/// A terminal at which a test types.
struct Bench {
    terminal: Terminal,
    keyboard: DuplexStream,
    screen: Arc<Screen<String>>,
}

impl Bench {
    fn new(style: Style) -> Self {
        let (keyboard, answers) = tokio::io::duplex(1024);
        let screen = Arc::new(Screen::new(String::new()));
        let said = Arc::clone(&screen);
        let say = move |saying: Saying<'_>| match saying {
            Saying::Question(text) => said.lock().unwrap().push_str(text),
            Saying::Answered => {}
            Saying::Unanswered => said.lock().unwrap().push('\n'),
        };
        let terminal = Terminal::of(BufReader::new(answers), say, || WINDOW, style);
        Self { terminal, keyboard, screen }
    }

    fn screen(&self) -> String {
        self.screen.lock().unwrap().clone()
    }

    /// Types the lines as soon as a question stands there.
    async fn decide(&mut self, request: &ApprovalRequest, answer: &str) -> Decision {
        let before = self.screen().len();
        let terminal = self.terminal.clone();
        let typing = async {
            while self.screen.lock().unwrap().len() == before {
                tokio::task::yield_now().await;
            }
            self.keyboard.write_all(answer.as_bytes()).await.unwrap();
        };
        tokio::join!(terminal.decide(request), typing).0
    }
}

fn request(tool: &str, effect: Effect, arguments: Value) -> ApprovalRequest {
    let request = ApprovalRequest::new("call_1", tool, effect, arguments, Fingerprint::of(b"call"));
    request.with_reason("because")
}

fn command() -> ApprovalRequest {
    request("shell", Effect::Execute, json!({"command": "make\n\x1b[2Jrm -rf x"}))
}

#[test]
fn only_a_plain_yes_is_one() {
    let said_no = deny("the user said no");
    let rows = [
        ("y", Decision::Approve),
        (" YES ", Decision::Approve),
        ("n", said_no.clone()),
        ("No", said_no.clone()),
        ("", said_no),
        ("yes, but use make", deny("the user says: yes, but use make")),
    ];
    for (answer, expected) in rows {
        assert_eq!(decision(answer), expected, "{answer:?}");
    }
}

#[test]
fn what_would_happen_is_shown_whole() {
    let diff = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+t\rwo\n";
    let change = |diff: &str| FileChange::new("a.txt", ChangeKind::Modified, diff);
    let edit = || request("edit_file", Effect::Write, json!({"file_path": "a.txt"}));
    insta::assert_snapshot!(question(&edit().with_dry_run(Some(DryRun::new(vec![change(diff)]))), WINDOW, PLAIN), @r"

    edit_file (because):
        --- a/a.txt
        +++ b/a.txt
        @@ -1 +1 @@
        -one
        +t\rwo
    Run it? [y]es, [n]o, or what to do instead: 
    ");
    insta::assert_snapshot!(question(&command(), WINDOW, PLAIN), @r"

    shell (because):
        make
        \u{1b}[2Jrm -rf x
    Run it? [y]es, [n]o, or what to do instead: 
    ");
    // Where a command runs is part of what happens, and it cannot pretend to say so itself.
    let arguments =
        json!({"cmd": "make\nworkdir: \"/w\"", "tty": true, "workdir": "/srv\x1b", "yield_time_ms": null});
    insta::assert_snapshot!(question(&request("exec_command", Effect::Execute, arguments), WINDOW, PLAIN), @r#"

    exec_command (because):
        tty: true
        workdir: "/srv\u001b"
        make
        workdir: "/w"
    Run it? [y]es, [n]o, or what to do instead: 
    "#);
    let failing = DryRun::default().with_failure(Some("Tool error (edit_file): no".to_owned()));
    insta::assert_snapshot!(question(&edit().with_dry_run(Some(failing)), WINDOW, PLAIN), @r#"

    edit_file (because):
        as things are, it would fail:
        Tool error (edit_file): no
        its arguments:
        {
          "file_path": "a.txt"
        }
    Run it? [y]es, [n]o, or what to do instead: 
    "#);
    // A change that has no diff must not hide behind one that has.
    let hidden = DryRun::new(vec![change(diff), change("")]);
    insta::assert_snapshot!(question(&edit().with_dry_run(Some(hidden)), WINDOW, PLAIN), @r#"

    edit_file (because):
        {
          "file_path": "a.txt"
        }
    Run it? [y]es, [n]o, or what to do instead: 
    "#);
    // Nor does a name that speaks of another file in the head of the diff.
    let name = "a.txt\n--- a/b.txt\n+++ b/b.txt";
    let named = DryRun::new(vec![FileChange::new(name, ChangeKind::Modified, diff)]);
    let shown = question(&edit().with_dry_run(Some(named)), WINDOW, PLAIN);
    assert!(shown.contains("\"file_path\"") && !shown.contains("+++"), "{shown}");
    let coloured = Style { terminal: true, colour: true, moves: true };
    let shown = question(&edit().with_dry_run(Some(DryRun::new(vec![change(diff)]))), WINDOW, coloured);
    assert!(shown.contains("\x1b[31m-one\x1b[0m"), "{shown:?}");
}

#[tokio::test]
async fn an_answer_is_read_after_the_question() {
    let mut bench = Bench::new(PLAIN);
    bench.terminal.shown("call_1");
    bench.keyboard.write_all(b"y\ny\n").await.unwrap();
    assert_eq!(bench.decide(&command(), "n\n").await, deny("the user said no"), "not what was typed ahead");
    assert!(bench.screen().ends_with("what to do instead: "), "{}", bench.screen());
    assert_eq!(bench.decide(&command(), "y\n").await, Decision::Approve);
    assert!(bench.terminal.failure().is_none(), "somebody was asked");
}

#[tokio::test]
async fn a_question_waits_for_what_comes_before_it() {
    let mut bench = Bench::new(PLAIN);
    let terminal = bench.terminal.clone();
    let early = tokio::time::timeout(Duration::from_millis(50), terminal.decide(&command())).await;
    assert!(early.is_err() && bench.screen().is_empty());
    bench.terminal.shown("call_1");
    assert_eq!(bench.decide(&command(), "y\n").await, Decision::Approve);
}

/// The same call, of a subagent's session.
fn of_subagent(agent: &str, depth: u32) -> ApprovalRequest {
    let origin = json!({"agent_id": agent, "session_id": "below", "parent": "above", "depth": depth});
    command().with_origin(Some(serde_json::from_value(origin).unwrap()))
}

/// Calls of two sessions may have the same id.
#[tokio::test]
async fn a_question_of_a_subagent_waits_for_what_comes_before_it_there() {
    let below = mark(Some(&SessionId::new("below")), "call_1");
    let rows = [(of_subagent("agent_1", 1), "call_1", below.as_str()), (command(), below.as_str(), "call_1")];
    for (request, of_other, own) in rows {
        let mut bench = Bench::new(PLAIN);
        let terminal = bench.terminal.clone();
        terminal.shown(of_other);
        let early = tokio::time::timeout(Duration::from_millis(50), terminal.decide(&request)).await;
        assert!(early.is_err() && bench.screen().is_empty(), "{}", bench.screen());
        terminal.shown(own);
        assert_eq!(bench.decide(&request, "y\n").await, Decision::Approve);
    }
}

#[test]
fn a_question_says_whose_it_is() {
    let rows = [
        (command(), "\nshell (because):\n"),
        (of_subagent("agent_1", 1), "\nagent_1: shell (because):\n"),
        (of_subagent("a\x1b[2J", 2), "\na\\u{1b}[2J at depth 2: shell (because):\n"),
    ];
    for (request, expected) in rows {
        let text = question(&request, WINDOW, PLAIN);
        assert!(text.starts_with(expected), "{text:?}");
    }
}

#[tokio::test]
async fn who_goes_away_says_no() {
    let mut bench = Bench::new(PLAIN);
    bench.terminal.shown("call_1");
    bench.keyboard.shutdown().await.unwrap();
    assert_eq!(bench.terminal.decide(&command()).await, deny("the person who was asked is gone"));
    assert!(bench.screen().ends_with("what to do instead: \n"), "{}", bench.screen());
}

#[tokio::test]
async fn a_question_that_nobody_wants_answered_ends_its_line() {
    let bench = Bench::new(PLAIN);
    bench.terminal.shown("call_1");
    let asked = async {
        while bench.screen().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    let command = command();
    tokio::select! {
        decision = bench.terminal.decide(&command) => panic!("{decision:?}"),
        () = asked => {}
    }
    assert!(bench.screen().ends_with("what to do instead: \n"), "{}", bench.screen());
}

#[tokio::test]
async fn without_a_terminal_a_question_is_a_denial_and_exit_code_5() {
    let terminal = Terminal::with(None);
    assert!(terminal.failure().is_none());
    let denied = deny("it needs approval, and nobody can be asked");
    assert_eq!(terminal.decide(&command()).await, denied);
    let failure = terminal.failure().unwrap();
    assert_eq!(
        (failure.exit().code(), failure.sentence().as_str()),
        (
            5,
            "a call was denied: it needed approval, and there is no terminal to ask at; --approve says what needs approval"
        )
    );
    assert_eq!(terminal.decide(&command()).await, denied);
    assert!(terminal.failure().unwrap().sentence().starts_with("2 calls were denied"));
}

#[tokio::test]
async fn a_question_of_the_model_is_put_once_all_before_it_is_shown() {
    let mut bench = Bench::new(PLAIN);
    assert!(bench.terminal.can_ask() && !Terminal::with(None).can_ask());
    for (typed, expected) in [("8080\n", Some("8080".to_owned())), ("  \n", None)] {
        let terminal = bench.terminal.clone();
        let before = bench.screen().len();
        let typing = async {
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            assert_eq!(bench.screen.lock().unwrap().len(), before, "nothing is asked yet");
            terminal.shown(typed);
            while bench.screen.lock().unwrap().len() == before {
                tokio::task::yield_now().await;
            }
            bench.keyboard.write_all(typed.as_bytes()).await.unwrap();
        };
        let (answer, ()) = tokio::join!(bench.terminal.ask(typed, Some("Which port?\n1. 80\x1b[2J")), typing);
        assert_eq!(answer, expected);
    }
    assert!(bench.screen().starts_with("\nWhich port?\n1. 80\\u{1b}[2J\n> "), "{:?}", bench.screen());
    assert_eq!(Terminal::with(None).ask("a", Some("Why?")).await, None);
}
