//! A session in an editor, over ACP.

use pintle_testkit::Dialect;
use serde_json::json;

use super::acp::{Editor, session_of};
use super::repository::{add_history, git};
use super::sessions::listed;
use super::user::{User, assert_once, wait_until_ended, wait_until_running};
use super::worktrees::is_confined;

/// Changes a file, writes one that the editor rejects, runs a command, and runs one that sleeps.
fn turns(seconds: &str) -> String {
    format!(
        r#"
    [[turn]]
    text = "I change it."
    [[turn.call]]
    tool = "Edit"
    arguments = {{ file_path = "file", old_string = "two", new_string = "three" }}
    [[turn]]
    [[turn.call]]
    tool = "Write"
    arguments = {{ file_path = "notes/rejected", content = "not wanted" }}
    [[turn]]
    [[turn.call]]
    tool = "Bash"
    arguments = {{ command = "touch ../outside; cp file checked" }}
    [[turn]]
    text = "Changed."
    [[turn]]
    [[turn.call]]
    tool = "Bash"
    arguments = {{ command = "touch started; sleep {seconds}" }}
    [[turn]]
    text = "Still here."
    "#
    )
}

/// Starts the agent of an editor that reads and writes files. An editor starts it in any directory.
fn start(user: &User) -> Editor {
    let url = user.model.base_url(Dialect::AnthropicMessages);
    let mut command = user.command(&["acp", "--provider", "anthropic", "--base-url", &url]);
    let capabilities = json!({"fs": {"readTextFile": true, "writeTextFile": true}});
    Editor::start(command.current_dir(user.at("")), &capabilities)
}

#[test]
fn a_session_in_an_editor_is_approved_cancelled_and_loaded() {
    if !is_confined() {
        return;
    }
    let seconds = format!("2{:07}", std::process::id());
    let user = User::new(&turns(&seconds));
    add_history(&user);
    let read = |name: &str| std::fs::read_to_string(user.project().join(name)).ok();
    let mut editor = start(&user);
    let id = session_of(&editor.open("session/new", &user.project(), None));
    let answer = editor.prompt(&id, "turn two into three");
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    let requests = |method: &str| editor.received.iter().filter(|sent| sent["method"] == method).count();
    // The default mode asks about commands and not about edits.
    assert_eq!(requests("session/request_permission"), 1, "{:?}", editor.received);
    assert_eq!(requests("fs/write_text_file"), 2, "{:?}", editor.received);
    assert_eq!(read("file").as_deref(), Some("three"));
    assert!(!user.project().join("notes").exists() && user.request(2).contains("rejected by the user"));
    assert_eq!(read("checked").as_deref(), Some("three"));
    assert!(!user.at("outside").exists(), "the sandbox is off");

    let number = editor.send_prompt(&id, "wait a while");
    editor.wait_for(|message| message["method"] == "session/request_permission");
    user.wait_for_file("started");
    wait_until_running(&seconds);
    editor.send(&json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": id}}));
    let answer = editor.answer_to(number);
    assert_eq!(answer["result"]["stopReason"], "cancelled", "{answer}");
    wait_until_ended(&seconds);
    editor.end();
    assert_eq!(git(&user, &["log", "--format=%s"]), "two\none\n");
    assert_eq!(git(&user, &["status", "--porcelain"]), " M file\n?? checked\n?? started\n");

    let mut editor = start(&user);
    let loaded = editor.open("session/load", &user.project(), Some(&id));
    assert!(loaded["error"].is_null(), "{loaded}");
    let messages = ["turn two into three", "I change it.", "Changed.", "wait a while"];
    assert_once(&editor.said(), &messages);
    let calls = editor.kinds().into_iter().filter(|kind| *kind == "tool_call").count();
    assert_eq!(calls, 4, "{:?}", editor.received);
    let answer = editor.prompt(&id, "are you there?");
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    assert_eq!(editor.said(), "Still here.");
    editor.end();
    let request = user.request(user.model.requests().len() - 1);
    assert_once(&request, &messages);
    assert_eq!(listed(&user, "project"), [id]);
}

#[test]
fn an_editor_shows_a_failure_a_warning_and_a_full_context() {
    let failing = |status: u16, kind: &str, message: &str| {
        let body = json!({"type": "error", "error": {"type": kind, "message": message}});
        format!("[[turn]]\nfailure = [{{ status = {status}, body = '{body}' }}]\ntext = 'one'\n")
    };
    let call = "[[turn]]\n[[turn.call]]\ntool = \"Glob\"\narguments = { pattern = '*' }\n";
    let empty = "[[turn]]\ntext = ' '\n";
    let (too_long, invalid) = ("prompt is too long: 300000 tokens > 200000 maximum", "invalid x-api-key");
    for (turns, stop_reason, shown) in [
        (failing(400, "invalid_request_error", too_long), Some("max_tokens"), too_long),
        ([call, empty, empty].concat(), Some("end_turn"), "the final response is empty"),
        (failing(401, "authentication_error", invalid), None, invalid),
    ] {
        let user = User::new(&turns);
        let mut editor = start(&user);
        let id = session_of(&editor.open("session/new", &user.project(), None));
        let answer = editor.prompt(&id, "Go");
        if let Some(reason) = stop_reason {
            assert_eq!(answer["result"]["stopReason"], reason, "{answer}");
            assert_once(&editor.said(), &[shown]);
        } else {
            assert_eq!(answer["error"]["message"], format!("the turn failed: {shown}"), "{answer}");
            // The provider would reject the key again. The session has ended, and the next one is another.
            let answer = editor.prompt(&id, "Go on");
            assert_eq!(answer["error"]["data"]["reason"], "session_ended", "{answer}");
            assert!(answer["error"]["message"].as_str().unwrap().contains("start a new session"), "{answer}");
            let other = session_of(&editor.open("session/new", &user.project(), None));
            let answer = editor.prompt(&other, "Go");
            assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
        }
        editor.end();
    }
}
