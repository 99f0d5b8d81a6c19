//! `pintle acp`: a conversation in an editor, with the sessions of the store.

mod editor;

use pintle_testkit::Dialect;
use serde_json::{Value, json};

use self::editor::{Editor, session_of};
use crate::harness::{Harness, pintle, run, run_with_input};

fn start(harness: &Harness, flags: &[&str]) -> Editor {
    start_with(harness, flags, Some(crate::harness::KEY))
}

/// Starts the agent with this key in its environment.
fn start_with(harness: &Harness, flags: &[&str], key: Option<&str>) -> Editor {
    let mut command = pintle(&["acp", "--provider", harness.dialect.name(), "--toolset", "spec"]);
    command.args(["--base-url", &harness.server.base_url(harness.dialect)]).args(flags);
    command.envs(key.map(|key| ("ANTHROPIC_API_KEY", key)));
    command.env("PINTLE_STATE_DIR", harness.path(".state"));
    command.env("PINTLE_CONFIG_DIR", harness.path(".config"));
    Editor::start(&mut command, &json!({}))
}

/// Returns code and message of an error.
fn error_of(answer: &Value) -> (i64, &str) {
    let code = answer.pointer("/error/code").and_then(Value::as_i64).unwrap_or_else(|| panic!("{answer}"));
    (code, answer.pointer("/error/message").and_then(Value::as_str).unwrap_or_default())
}

const TURNS: &str = r#"
    [[turn]]
    text = "I write it."
    [[turn.call]]
    tool = "shell"
    arguments = { command = "echo made >made" }
    [[turn]]
    text = "It is written."
    [[turn]]
    text = "Hello again, in the terminal."
    [[turn]]
    text = "And in the editor."
    "#;

#[test]
fn a_conversation_goes_on_between_an_editor_and_a_terminal() {
    let harness = Harness::new(Dialect::AnthropicMessages, TURNS);
    let mut editor = start(&harness, &[]);
    let opened = editor.open("session/new", &harness.path(""), None);
    let id = session_of(&opened);
    assert_eq!(opened.pointer("/result/modes/currentModeId"), Some(&json!("edit")), "{opened}");
    let answer = editor.prompt(&id, "Write it");
    assert_eq!(answer.pointer("/result/stopReason"), Some(&json!("end_turn")), "{answer}");
    let (said, kinds) = (editor.said(), editor.kinds());
    assert!(said.contains("I write it.") && kinds.contains(&"tool_call"), "{said}: {kinds:?}");
    assert_eq!(harness.read("made"), "made\n");
    editor.end();

    let mut command = pintle(&["run", "--resume", &id, "And now?"]);
    command.env("ANTHROPIC_API_KEY", crate::harness::KEY).env("PINTLE_STATE_DIR", harness.path(".state"));
    let output = run(&mut command);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.stdout.contains("Hello again, in the terminal."), "{output:?}");

    let mut editor = start(&harness, &[]);
    let listed = editor.request("session/list", &json!({"cwd": harness.path("")}));
    assert_eq!(listed.pointer("/result/sessions/0/sessionId"), Some(&json!(id)), "{listed}");
    let loaded = editor.open("session/load", &harness.path(""), Some(&id));
    assert!(loaded.get("error").is_none(), "{loaded}");
    let replayed = editor.said();
    assert!(replayed.contains("Hello again, in the terminal."), "{replayed}");
    editor.prompt(&id, "And here?");
    assert!(editor.said().contains("And in the editor."));
    editor.end();
    assert_eq!(harness.server.requests().len(), 4);
}

#[test]
fn denials_modes_and_wrong_sessions_are_told() {
    let harness = Harness::new(Dialect::AnthropicMessages, TURNS);
    let mut editor = start(&harness, &[]);
    let id = session_of(&editor.open("session/new", &harness.path(""), None));
    editor.choice = "reject_once";
    let answer = editor.prompt(&id, "Write it");
    assert_eq!(answer.pointer("/result/stopReason"), Some(&json!("end_turn")), "{answer}");
    assert!(!harness.path("made").exists());
    let set = editor.request("session/set_mode", &json!({"sessionId": id, "modeId": "plan"}));
    assert!(set.get("error").is_none(), "{set}");
    for (method, params, problem) in [
        ("session/set_mode", json!({"sessionId": id, "modeId": "fast"}), "there is no mode `fast`"),
        (
            "session/load",
            json!({"sessionId": "none", "cwd": harness.path(""), "mcpServers": []}),
            "no session `none`",
        ),
        ("session/new", json!({"cwd": "/no/such/directory", "mcpServers": []}), "/no/such/directory"),
    ] {
        let answer = editor.request(method, &params);
        let message = answer.pointer("/error/message").and_then(Value::as_str).unwrap_or_default();
        assert!(message.contains(problem), "{method} {params}: {answer}");
    }
    // A second editor does not get a session that the first one has.
    let mut other = start(&harness, &[]);
    let answer = other.open("session/load", &harness.path(""), Some(&id));
    let message = answer.pointer("/error/message").and_then(Value::as_str).unwrap_or_default();
    assert!(message.contains("is in use by pintle with process id"), "{answer}");
    other.end();
    editor.end();
}

#[test]
fn the_outcome_of_a_compaction_is_told() {
    const FAILED: &str = "the conversation was not compacted: ";
    let summary = "[[turn]]\ntext = \"The summary.\"\n";
    for (failure, outcome) in [("", "summarized, ~"), ("[[turn.failure]]\nstatus = 400\n", FAILED)] {
        let turns = format!("[[turn]]\ntext = \"Hello.\"\n{summary}{failure}");
        let harness = Harness::new(Dialect::AnthropicMessages, &turns);
        let mut editor = start(&harness, &[]);
        let id = session_of(&editor.open("session/new", &harness.path(""), None));
        let compact = |editor: &mut Editor| {
            let answer = editor.prompt(&id, "/compact");
            assert_eq!(answer.pointer("/result/stopReason"), Some(&json!("end_turn")), "{answer}");
            editor.said()
        };
        let said = compact(&mut editor);
        assert!(said.contains(FAILED) && said.contains("there is nothing to summarize yet"), "{said}");
        editor.prompt(&id, "Hi");
        let said = compact(&mut editor);
        assert!(said.contains(outcome), "{outcome}: {said}");
        assert_eq!(harness.server.requests().len(), 2);
        editor.end();
    }
}

#[test]
fn commands_say_what_a_terminal_would() {
    let harness = Harness::new(Dialect::AnthropicMessages, TURNS);
    std::fs::create_dir_all(harness.path(".claude/commands")).unwrap();
    std::fs::write(harness.path(".claude/commands/review.md"), "Review $ARGUMENTS closely.").unwrap();
    let mut editor = start(&harness, &[]);
    let id = session_of(&editor.open("session/new", &harness.path(""), None));
    editor.prompt(&id, "Write it\nnow");
    let update = |editor: &Editor, kind: &str| {
        let updates = editor.received.iter().filter_map(|update| update.pointer("/params/update"));
        updates.rev().find(|update| update["sessionUpdate"] == kind).cloned().unwrap_or_default()
    };
    assert_eq!(update(&editor, "session_info_update")["title"], "Write it");
    let cost = update(&editor, "usage_update")["cost"].clone();
    assert!(cost["amount"].as_f64().unwrap() > 0.0 && cost["currency"] == "USD", "{cost}");
    let offered = update(&editor, "available_commands_update");
    let names: Vec<&str> = offered["availableCommands"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|command| command["name"].as_str())
        .collect();
    let expected =
        ["compact", "context", "cost", "diff", "init", "login", "mode", "permissions", "plan", "status"];
    assert_eq!(names[..10], expected);
    assert_eq!(names[10..], ["tools", "review"]);

    let requests = harness.server.requests().len();
    for (command, words) in [
        ("/status", vec![format!("session: {id}"), "mode: edit".to_owned()]),
        ("/cost", vec!["cost: $0.0".to_owned()]),
        ("/context", vec!["context: about ".to_owned()]),
        ("/diff", vec!["```diff\n".to_owned(), "+made".to_owned()]),
        ("/tools", vec!["shell".to_owned()]),
        ("/permissions", vec!["no rules: the mode decides".to_owned()]),
        ("/mode", vec!["mode: edit".to_owned()]),
    ] {
        let answer = editor.prompt(&id, command);
        assert_eq!(answer.pointer("/result/stopReason"), Some(&json!("end_turn")), "{command}: {answer}");
        let said = editor.said();
        assert!(words.iter().all(|word| said.contains(word)), "{command}: {said}");
    }
    editor.prompt(&id, "/mode plan");
    assert_eq!(update(&editor, "current_mode_update")["currentModeId"], "plan");
    assert_eq!(error_of(&editor.prompt(&id, "/mode fast")), (-32602, "there is no mode `fast` here"));
    assert_eq!(error_of(&editor.prompt(&id, "/status now")), (-32602, "/status takes no arguments"));
    assert_eq!(harness.server.requests().len(), requests, "the model is not asked");

    editor.prompt(&id, "/review src/a.rs");
    editor.prompt(&id, "/undo everything");
    let sent = harness.server.requests();
    let last = |index: usize| sent[index].body["messages"].as_array().unwrap().last().unwrap().to_string();
    assert!(last(requests).contains("Review src/a.rs closely."), "{}", last(requests));
    assert!(
        last(requests + 1).contains("/undo everything"),
        "no command of an editor: {}",
        last(requests + 1)
    );
    editor.end();
}

#[cfg(feature = "mcp")]
#[test]
fn prompts_of_servers_are_commands() {
    let harness = Harness::new(Dialect::AnthropicMessages, TURNS);
    let server = crate::mcp::server_in(&harness);
    for arguments in [&["add", "test", "--", "python3", &server, "offers"][..], &["tools"]] {
        let mut command = pintle(&["mcp"]);
        command.args(arguments).current_dir(harness.path(""));
        command.env("PINTLE_STATE_DIR", harness.path(".state"));
        command.env("PINTLE_CONFIG_DIR", harness.path(".config"));
        assert_eq!(run(&mut command).code, Some(0), "{arguments:?}");
    }
    let mut editor = start(&harness, &[]);
    let id = session_of(&editor.open("session/new", &harness.path(""), None));
    let refused = editor.prompt(&id, "/mcp__test__review");
    let offered = editor
        .received
        .iter()
        .filter_map(|update| update.pointer("/params/update/availableCommands")?.as_array())
        .flatten()
        .find(|command| command["name"] == "mcp__test__review");
    assert_eq!(offered.unwrap()["input"]["hint"], "file [tone]");
    let (code, message) = error_of(&refused);
    assert_eq!(code, -32602, "{refused}");
    assert_eq!(message, "/mcp__test__review: `file` is missing; expected file [tone]");
    editor.prompt(&id, "/mcp__test__review 'src/a b.rs'");
    let request = harness.server.requests()[0].body.to_string();
    assert!(request.contains("Review src/a b.rs.") && request.contains("Assistant: Gladly."), "{request}");
    assert!(request.contains("iVBORw0KGgpyZXN0"), "{request}");
    editor.end();
}

#[test]
fn sessions_are_deleted_unless_another_process_has_them() {
    let harness = Harness::new(Dialect::AnthropicMessages, TURNS);
    let mut editor = start(&harness, &[]);
    let id = session_of(&editor.open("session/new", &harness.path(""), None));
    editor.prompt(&id, "Write it");
    let mut other = start(&harness, &[]);
    let refused = other.request("session/delete", &json!({"sessionId": id}));
    let (code, message) = error_of(&refused);
    assert!(code == -32010 && message.contains("is in use by pintle with process id"), "{refused}");
    // An open session is closed first.
    let deleted = editor.request("session/delete", &json!({"sessionId": id}));
    assert_eq!(deleted.get("result"), Some(&json!({})), "{deleted}");
    for editor in [&mut editor, &mut other] {
        let listed = editor.request("session/list", &json!({}));
        assert_eq!(listed.pointer("/result/sessions"), Some(&json!([])), "{listed}");
        let again = editor.request("session/delete", &json!({"sessionId": id}));
        assert_eq!(again.get("result"), Some(&json!({})), "{again}");
    }
    other.end();
    editor.end();
}

#[test]
fn keys_are_stored_and_removed_beside_the_editor() {
    let harness = Harness::new(Dialect::AnthropicMessages, TURNS);
    let mut editor = start_with(&harness, &[], None);
    let refused = editor.open("session/new", &harness.path(""), None);
    assert_eq!(error_of(&refused).0, -32000, "{refused}");
    let key = json!({"methodId": "api-key"});
    let refused = editor.request("authenticate", &key);
    let (_, message) = error_of(&refused);
    assert!(message.contains("pintle login") && message.contains("ANTHROPIC_API_KEY"), "{refused}");
    let refused = editor.request("authenticate", &json!({"methodId": "browser"}));
    assert_eq!(error_of(&refused).0, -32602, "{refused}");

    let mut login = pintle(&["login", "anthropic", "--stdin"]);
    login.env("PINTLE_CONFIG_DIR", harness.path(".config"));
    let stored = run_with_input(&mut login, crate::harness::KEY);
    assert_eq!(stored.code, Some(0), "{stored:?}");
    assert_eq!(editor.request("authenticate", &key).get("result"), Some(&json!({})));
    session_of(&editor.open("session/new", &harness.path(""), None));

    assert_eq!(editor.request("logout", &json!({})).get("result"), Some(&json!({})));
    let refused = editor.request("logout", &json!({}));
    assert!(error_of(&refused).1.starts_with("there is no key to remove"), "{refused}");
    let refused = editor.open("session/new", &harness.path(""), None);
    assert_eq!(error_of(&refused).0, -32000, "{refused}");
    editor.end();

    let mut editor = start(&harness, &[]);
    let refused = editor.request("logout", &json!({}));
    assert_eq!(error_of(&refused).1, "the key of anthropic in ANTHROPIC_API_KEY is still used", "{refused}");
    editor.end();
}

#[test]
fn flags_about_one_task_are_refused() {
    for flags in [&["a prompt"][..], &["--continue"], &["--dir", "/"], &["--env", "docker:x"]] {
        let output = run(pintle(&["acp"]).args(flags));
        assert_eq!(output.code, Some(2), "{flags:?}: {output:?}");
        assert!(output.stderr.contains("the editor decides on that"), "{flags:?}: {output:?}");
    }
}
