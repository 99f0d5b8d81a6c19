//! `pintle exec`: the command line and the stream of `codex exec --json`.

use std::process::Command;

use pintle_testkit::Dialect;
use serde_json::Value;

use crate::harness::{CommandOutput, Harness, pintle, run_with_input};

const TURNS: &str = r#"
    [[turn]]
    text = "I write it."
    [[turn.call]]
    tool = "shell"
    arguments = { command = "echo made >made; cat made" }
    [[turn]]
    text = '{"done": true}'
    "#;

fn exec(harness: &Harness, flags: &[&str], input: &str) -> CommandOutput {
    let mut command: Command = pintle(&["exec", "--experimental-json"]);
    command.args(flags).current_dir(harness.path(""));
    command.env("ANTHROPIC_API_KEY", crate::harness::KEY);
    command.env("ANTHROPIC_BASE_URL", harness.server.base_url(harness.dialect));
    command.env("PINTLE_PROVIDER", "anthropic").env("PINTLE_TOOLSET", "spec");
    command.env("PINTLE_STATE_DIR", harness.path(".state"));
    run_with_input(&mut command, input)
}

fn lines(output: &CommandOutput) -> Vec<Value> {
    output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn of_type<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line.get("type").and_then(Value::as_str) == Some(kind)).collect()
}

#[test]
fn a_run_is_told_as_codex_tells_it_and_can_be_resumed() {
    let harness =
        Harness::new(Dialect::AnthropicMessages, &format!("{TURNS}[[turn]]\ntext = \"Still here.\"\n"));
    std::fs::write(harness.path("schema.json"), r#"{"type": "object", "required": ["done"]}"#).unwrap();
    let flags = ["--sandbox", "workspace-write", "--output-schema", "schema.json", "--skip-git-repo-check"];
    let output = exec(&harness, &flags, "Write it");
    assert_eq!(output.code, Some(0), "{output:?}");
    assert_eq!(harness.read("made"), "made\n");
    let told = lines(&output);
    let id = told[0]["thread_id"].as_str().unwrap().to_owned();
    assert_eq!(
        (told[0]["type"].as_str(), told[1]["type"].as_str()),
        (Some("thread.started"), Some("turn.started"))
    );
    let items = of_type(&told, "item.completed");
    let command = items.iter().find(|line| line["item"]["type"] == "command_execution").unwrap();
    assert_eq!(command["item"]["exit_code"], 0, "{command}");
    assert!(command["item"]["aggregated_output"].as_str().unwrap().contains("made"), "{command}");
    let last = items.last().unwrap();
    assert_eq!(last["item"]["text"], r#"{"done":true}"#, "{last}");
    let completed = of_type(&told, "turn.completed");
    assert!(completed[0]["usage"]["input_tokens"].as_u64().unwrap() > 0, "{completed:?}");

    let output = exec(&harness, &["--sandbox", "workspace-write", "resume", &id], "And now?");
    assert_eq!(output.code, Some(0), "{output:?}");
    let told = lines(&output);
    assert_eq!(told[0]["thread_id"].as_str(), Some(id.as_str()));
    assert!(told.iter().any(|line| line["item"]["text"] == "Still here."), "{output:?}");
}

#[test]
fn a_run_that_says_nothing_only_reads_and_what_could_restrict_is_refused() {
    let harness = Harness::new(Dialect::AnthropicMessages, TURNS);
    let output = exec(&harness, &[], "Write it");
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(!harness.path("made").exists());
    let output = exec(&harness, &["--disallow-tools", "shell"], "Write it");
    assert_eq!(output.code, Some(2), "{output:?}");
    assert!(output.stdout.is_empty() && output.stderr.contains("--disallow-tools"), "{output:?}");
}

#[test]
fn the_last_message_is_written_to_a_file() {
    let harness = Harness::new(Dialect::AnthropicMessages, TURNS);
    let output = exec(&harness, &["--full-auto", "-o", "last.txt"], "Write it");
    assert_eq!((output.code, output.stderr.contains("--full-auto")), (Some(0), false), "{output:?}");
    assert_eq!(
        (harness.read("made").as_str(), harness.read("last.txt").as_str()),
        ("made\n", r#"{"done": true}"#)
    );
    let harness = Harness::new(Dialect::AnthropicMessages, TURNS);
    std::fs::write(harness.path("file"), "").unwrap();
    std::fs::create_dir(harness.path("directory")).unwrap();
    for (file, reason) in [
        ("no/such/directory/last.txt", "No such file or directory"),
        ("file/last.txt", "Not a directory"),
        ("directory", "is a directory"),
    ] {
        let output = exec(&harness, &["--full-auto", "-o", file], "Write it");
        assert_eq!(output.code, Some(2), "{output:?}");
        assert!(output.stderr.contains(&format!("cannot write {file}: {reason}")), "{output:?}");
    }
    assert!(harness.server.requests().is_empty(), "the model is not called");
    assert!(!harness.path("no").exists());
}

#[test]
fn an_unknown_option_leaves_the_prompt() {
    let cases: [(&[&str], &str); 3] = [
        (
            &["--nonsense", "do it"],
            "option --nonsense is ignored: it is unknown, and `do it` is not its value",
        ),
        (&["--user", "never", "do it"], "option --user is ignored with its value `never`: it is unknown"),
        (&["--search", "do it"], "option --search is ignored: use --config web_search"),
    ];
    for (flags, warning) in cases {
        let harness = Harness::new(Dialect::AnthropicMessages, TURNS);
        let output = exec(&harness, flags, "");
        assert_eq!(output.code, Some(0), "{output:?}");
        assert!(output.stderr.contains(warning), "{output:?}");
        let request = harness.server.requests()[0].body.to_string();
        assert!(request.contains("do it"), "{request}");
    }
}

#[test]
fn help_and_version_are_no_errors() {
    let print = |arguments: &[&str]| {
        let output = run_with_input(&mut pintle(arguments), "");
        assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{output:?}");
        output.stdout
    };
    assert!(print(&["exec", "--help"]).contains("Usage: pintle exec"));
    for flag in ["--version", "-V"] {
        assert_eq!(print(&["exec", flag]), print(&["--version"]));
    }
}

#[test]
fn the_key_of_the_sdk_is_that_of_openai() {
    let harness = Harness::new(Dialect::OpenAiResponses, "[[turn]]\ntext = \"Hello.\"\n");
    let ask = |subcommand: &[&str]| {
        let mut command = pintle(subcommand);
        command.current_dir(harness.path("")).env("PINTLE_PROVIDER", "openai");
        command.env("OPENAI_BASE_URL", harness.server.base_url(harness.dialect));
        command.env("CODEX_API_KEY", crate::harness::KEY).env("PINTLE_STATE_DIR", harness.path(".state"));
        run_with_input(&mut command, "Hi")
    };
    let output = ask(&["exec", "--experimental-json"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    // It is the key of another program, so nothing else uses it.
    assert_eq!(ask(&["run", "--no-session", "-"]).code, Some(4));
}
