//! Questions to the user at a terminal, and their answers.

use pintle_testkit::Dialect;
use serde_json::{Value, json};

use crate::harness::Harness;
use crate::terminal::Terminal;

/// Scripts one call that needs approval.
fn call(tool: &str, arguments: &Value) -> String {
    let arguments: String =
        arguments.as_object().unwrap().iter().map(|(name, value)| format!("{name} = {value}, ")).collect();
    let arguments = arguments.trim_end_matches(", ");
    format!(
        "[[turn]]\n[[turn.call]]\ntool = \"{tool}\"\narguments = {{ {arguments} }}\n[[turn]]\ntext = \"Done.\"\n"
    )
}

/// Whatever is in the middle of a call, its start and its end are on screen next to the prompt.
#[test]
fn approval_shows_head_size_and_tail() {
    let blank = "\n".repeat(6_001);
    let lines: String = (0..400).map(|number| format!("\n: line {number}")).collect();
    let cases = [
        (
            "shell",
            json!({ "command": format!("echo head{blank}echo tail > b.txt") }),
            "6,002 lines, 6,027 bytes",
        ),
        ("shell", json!({ "command": format!("echo head{lines}\necho tail > b.txt") }), "402 lines"),
        (
            "shell",
            json!({ "command": format!("echo head;{}echo tail > b.txt", " ".repeat(9_000)) }),
            "1 line",
        ),
        (
            "write_file",
            json!({ "file_path": "b.txt", "content": format!("echo head{blank}echo tail") }),
            "lines",
        ),
        (
            "write_file",
            json!({ "file_path": "b.txt", "content": format!("echo head{lines}\necho tail") }),
            "lines",
        ),
    ];
    for (tool, arguments, amount) in cases {
        let harness = Harness::new(Dialect::AnthropicMessages, &call(tool, &arguments));
        let mut terminal = Terminal::start(&harness.command("run", &["--mode", "ask", "Go"]));
        let screen = terminal.wait_for_text("what to do instead: ");
        for part in ["echo head", "echo tail", amount, "  … "] {
            assert!(screen.contains(part), "{part} in\n{screen}");
        }
        terminal.type_keys("y\n");
        let (code, screen, _) = terminal.finish();
        assert_eq!((code, harness.path("b.txt").exists()), (Some(0), true), "{screen}");
    }
}

/// Five responses and four tool rounds, the third of which is a question.
const QUESTION_IN_THE_MIDDLE: &str = r#"
    [[turn]]
    [[turn.call]]
    tool = "glob"
    arguments = { pattern = "*" }
    [[turn]]
    [[turn.call]]
    tool = "glob"
    arguments = { pattern = "*.rs" }
    [[turn]]
    [[turn.call]]
    tool = "ask_user"
    arguments = { question = "Which port?" }
    [[turn]]
    [[turn.call]]
    tool = "glob"
    arguments = { pattern = "*.toml" }
    [[turn]]
    text = "Done."
    "#;

/// Answers the question and returns the exit code and all output.
fn run_and_answer(arguments: &[&str]) -> (Option<i32>, String) {
    let harness = Harness::new(Dialect::ChatCompletions, QUESTION_IN_THE_MIDDLE);
    // Wide enough that no line wraps.
    let mut terminal = Terminal::run(&harness.command("run", arguments), 4_000, 24, |_| {});
    terminal.wait_for_text("\n> ");
    terminal.type_keys("8080\n");
    let (code, _, bytes) = terminal.finish();
    (code, bytes)
}

/// Returns the JSON objects in an output.
fn objects(output: &str) -> Vec<Value> {
    output.lines().filter_map(|line| serde_json::from_str(line).ok()).filter(Value::is_object).collect()
}

/// To the user, the runs before and after the answer are one run.
#[test]
fn totals_and_limits_span_an_answered_question() {
    let cases = [
        ("--max-turns=0", 0, "completed", 5, 4),
        ("--max-turns=3", 3, "turn_limit", 3, 3),
        ("--max-turns=4", 3, "turn_limit", 4, 4),
        ("--max-tool-rounds=4", 3, "round_limit", 4, 4),
    ];
    let check = |(limit, code, status, model_calls, tool_calls): (&str, i32, &str, usize, usize)| {
        let (exit, output) = run_and_answer(&[limit, "Go"]);
        let counts = format!("] {model_calls} model calls, {tool_calls} tool calls, ");
        assert!(exit == Some(code) && output.contains(&counts), "{counts} in {output}");

        for format in ["json", "stream-json"] {
            let (exit, output) = run_and_answer(&[limit, "--output", format, "Go"]);
            let objects = objects(&output);
            let outcome = objects.last().unwrap();
            assert_eq!(
                (exit, &outcome["status"], &outcome["model_calls"], &outcome["tool_calls"]),
                (Some(code), &status.into(), &model_calls.into(), &tool_calls.into())
            );
            let answers = objects.iter().filter(|event| event["kind"] == "MODEL_RESPONSE");
            let tokens: Vec<u64> =
                answers.map(|event| event["data"]["usage"]["total_tokens"].as_u64().unwrap()).collect();
            if format == "stream-json" {
                assert_eq!(tokens.len(), model_calls);
                assert_eq!(outcome["usage"]["total_tokens"], tokens.iter().sum::<u64>(), "{outcome}");
            }
        }
    };
    std::thread::scope(|scope| {
        for case in cases {
            scope.spawn(move || check(case));
        }
    });
}

#[test]
fn question_is_skipped_without_remaining_rounds() {
    let harness = Harness::new(Dialect::ChatCompletions, QUESTION_IN_THE_MIDDLE);
    let command = harness.command("run", &["--max-tool-rounds", "3", "Go"]);
    let (code, screen, _) = Terminal::run(&command, 200, 24, |_| {}).finish();
    assert_eq!(code, Some(3), "{screen}");
    assert!(screen.contains("[stopped: tool round limit] 3 model calls, 3 tool calls"), "{screen}");
}
