//! What a person at a terminal is asked, and what comes of the answer.

use pintle_testkit::Dialect;
use serde_json::{Value, json};

use crate::lab::Model;
use crate::terminal::Terminal;

/// A script whose one call is asked about.
fn call(tool: &str, arguments: &Value) -> String {
    let arguments: String =
        arguments.as_object().unwrap().iter().map(|(name, value)| format!("{name} = {value}, ")).collect();
    let arguments = arguments.trim_end_matches(", ");
    format!(
        "[[turn]]\n[[turn.call]]\ntool = \"{tool}\"\narguments = {{ {arguments} }}\n[[turn]]\ntext = \"Done.\"\n"
    )
}

/// Whatever a call has in its middle, its beginning and its end are on the screen when a person decides.
#[test]
fn an_approval_shows_head_amount_and_tail_beside_the_question() {
    let blank = "\n".repeat(6_001);
    let lines: String = (0..400).map(|number| format!("\n: line {number}")).collect();
    let rows = [
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
    for (tool, arguments, amount) in rows {
        let model = Model::new(Dialect::AnthropicMessages, &call(tool, &arguments));
        let mut terminal = Terminal::start(&model.command("run", &["--approve", "all", "Go"]));
        let screen = terminal.wait_for_text("what to do instead: ");
        for part in ["echo head", "echo tail", amount, "  … "] {
            assert!(screen.contains(part), "{part} in\n{screen}");
        }
        terminal.types("y\n");
        let (code, screen, _) = terminal.ends();
        assert_eq!((code, model.path("b.txt").exists()), (Some(0), true), "{screen}");
    }
}

/// Five answers of a model and four rounds of calls, the third of them a question.
const ASKS_IN_THE_MIDDLE: &str = r#"
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

/// A run in which the question is answered: exit code and everything that was written.
fn answered(arguments: &[&str]) -> (Option<i32>, String) {
    let model = Model::new(Dialect::ChatCompletions, ASKS_IN_THE_MIDDLE);
    // Wide enough that no line is broken.
    let mut terminal = Terminal::run(&model.command("run", arguments), 4_000, 24, |_| {});
    terminal.wait_for_text("\n> ");
    terminal.types("8080\n");
    let (code, _, bytes) = terminal.ends();
    (code, bytes)
}

/// The objects among the lines of an output.
fn objects(output: &str) -> Vec<Value> {
    output.lines().filter_map(|line| serde_json::from_str(line).ok()).filter(Value::is_object).collect()
}

/// The runs before and after the answer are one run for a person, in counts, tokens and limits.
#[test]
fn what_follows_an_answered_question_is_counted_with_what_came_before() {
    let rows = [
        ("--max-turns=0", 0, "completed", 5, 4),
        ("--max-turns=3", 3, "turn_limit", 3, 3),
        ("--max-turns=4", 3, "turn_limit", 4, 4),
        ("--max-tool-rounds=4", 3, "round_limit", 4, 4),
    ];
    for (limit, code, status, model_calls, tool_calls) in rows {
        let (ended, output) = answered(&[limit, "Go"]);
        let counts = format!("] {model_calls} model calls, {tool_calls} tool calls, ");
        assert!(ended == Some(code) && output.contains(&counts), "{counts} in {output}");

        for format in ["json", "stream-json"] {
            let (ended, output) = answered(&[limit, "--output", format, "Go"]);
            let objects = objects(&output);
            let outcome = objects.last().unwrap();
            assert_eq!(
                (ended, &outcome["status"], &outcome["model_calls"], &outcome["tool_calls"]),
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
    }
}

#[test]
fn a_question_whose_answer_no_round_is_left_for_is_not_put() {
    let model = Model::new(Dialect::ChatCompletions, ASKS_IN_THE_MIDDLE);
    let command = model.command("run", &["--max-tool-rounds", "3", "Go"]);
    let (code, screen, _) = Terminal::run(&command, 200, 24, |_| {}).ends();
    assert_eq!(code, Some(3), "{screen}");
    assert!(screen.contains("[stopped at the limit of tool rounds] 3 model calls, 3 tool calls"), "{screen}");
}
