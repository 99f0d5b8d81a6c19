//! `--approve` where nobody can be asked: a question is a denial, the run goes on, the exit code is 5.

use pintle_testkit::Dialect;

use crate::lab::{Model, say};
use crate::subagents::BOTH_WRITE;

const TURNS: &str = r#"
    [[turn]]
    [[turn.call]]
    tool = "write_file"
    arguments = { file_path = "a.txt", content = "hello\n" }
    [[turn.call]]
    tool = "shell"
    arguments = { command = "touch b.txt" }
    [[turn]]
    text = "So be it."
    "#;

#[test]
fn what_needs_approval_is_denied_without_a_terminal() {
    let both = "2 calls were denied: they needed approval, and there is no terminal to ask at";
    let one = "a call was denied: it needed approval, and there is no terminal to ask at";
    let rows = [
        ("never", 0, true, true, ""),
        ("writes", 5, false, true, one),
        ("commands", 5, true, false, one),
        ("all", 5, false, false, both),
    ];
    for (approve, code, wrote, ran, told) in rows {
        let model = Model::new(Dialect::AnthropicMessages, TURNS);
        let said = say(&mut model.command("run", &["--approve", approve, "--output", "json", "Go"]));
        assert_eq!(said.code, Some(code), "{approve}: {said:?}");
        assert_eq!((model.path("a.txt").exists(), model.path("b.txt").exists()), (wrote, ran), "{approve}");
        let outcome: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        assert_eq!(
            (&outcome["exit_code"], &outcome["text"]),
            (&code.into(), &"So be it.".into()),
            "{approve}"
        );
        assert!(said.err.contains(told), "{approve}: {said:?}");
    }
}

#[test]
fn what_a_subagent_needs_approval_for_is_denied_without_a_terminal_too() {
    let model = Model::new(Dialect::AnthropicMessages, BOTH_WRITE);
    std::fs::create_dir(model.path("sub")).unwrap();
    let said = say(&mut model.command("run", &["--approve", "writes", "Go"]));
    assert_eq!(said.code, Some(5), "{said:?}");
    assert!(!model.path("a.txt").exists() && !model.path("sub/a.txt").exists(), "{said:?}");
    assert!(said.err.contains("2 calls were denied: they needed approval"), "{said:?}");
}

#[test]
fn all_means_pages_of_the_web_too() {
    let turns = r#"
        [[turn]]
        [[turn.call]]
        tool = "web_fetch"
        arguments = { url = "http://127.0.0.1:9/" }
        [[turn]]
        text = "So be it."
        "#;
    let rows = [
        ("commands", 0, "127.0.0.1 may not be reached"),
        ("all", 5, "it needs approval, and nobody can be asked"),
    ];
    for (approve, code, told) in rows {
        let model = Model::new(Dialect::AnthropicMessages, turns);
        let said = say(&mut model.command("run", &["--approve", approve, "Go"]));
        assert_eq!(said.code, Some(code), "{approve}: {said:?}");
        assert!(
            said.out.contains("[web_fetch] http://127.0.0.1:9/ (") && said.out.contains(told),
            "{said:?}"
        );
    }
}

#[test]
fn another_failure_is_more_than_a_denial() {
    let model = Model::new(Dialect::AnthropicMessages, TURNS);
    let said = say(&mut model.command("run", &["--approve", "all", "--max-tool-rounds", "1", "Go"]));
    assert_eq!(said.code, Some(3), "{said:?}");
    let said = say(&mut model.command("run", &["--approve", "sometimes", "Go"]));
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains("[possible values: never, writes, commands, all]"), "{said:?}");
}
