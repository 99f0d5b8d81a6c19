//! Scripts of the model for offline runs.

use pintle_testkit::{Call, Dialect, Expectation, Script, Turn};
use serde_json::{Value, json};

/// The program that the session creates, and its change.
const FIRST: &str = "print('Hello World')";
const SECOND: &str = "print('Goodbye')";

/// Returns a script with these turns.
pub(crate) fn of(turns: impl IntoIterator<Item = Turn>) -> Script {
    turns.into_iter().fold(Script::new("smoke"), Script::with_turn)
}

fn call(tool: &str, arguments: Value) -> Turn {
    Turn::new().with_call(Call::new(tool, arguments))
}

/// Returns the script of the session's smoke test. The subagent starts with the same first turns, and creates the file
/// again.
pub(crate) fn session(dialect: Dialect) -> Script {
    let after =
        |text: &str, result: &str| Turn::text(text).with_expectation(Expectation::result_contains(0, result));
    // Without Python, the two lines are run by a shell command.
    let run = "command -v python3 >/dev/null && python3 hello.py || sed -n \"s/^print('\\(.*\\)')$/\\1/p\" hello.py";
    let first = format!("{FIRST}\n");
    of([
        call("write_file", json!({ "file_path": "hello.py", "content": first })),
        Turn::text("I made hello.py."),
        call("read_file", json!({ "file_path": "hello.py" })),
        edit(dialect),
        Turn::text("It says goodbye as well."),
        call("shell", json!({ "command": run, "timeout_ms": 20_000 })),
        after("It prints both.", "Hello World"),
        call("read_file", json!({ "file_path": "big.txt" })),
        after("It is one letter, many times.", "[WARNING: Tool output was truncated."),
        call("glob", json!({ "pattern": "*" })),
        Turn::text("Just /health then.")
            .with_expectation(Expectation::request_contains("single /health endpoint")),
        call("spawn_agent", json!({ "task": "Write tests for hello.py." })),
        call("wait", json!({ "agent_id": "agent_1" })),
        after("The subagent has done it.", "success: true"),
        call("shell", sleep(dialect)),
        after("It took too long, so it was stopped.", "timed out after"),
    ])
}

/// Anthropic's default is longer than this, so the call has a time limit.
fn sleep(dialect: Dialect) -> Value {
    match dialect {
        Dialect::AnthropicMessages => json!({ "command": "sleep 30", "timeout_ms": 500 }),
        Dialect::OpenAiResponses | Dialect::Gemini | Dialect::ChatCompletions => {
            json!({ "command": "sleep 30" })
        }
    }
}

fn edit(dialect: Dialect) -> Turn {
    match dialect {
        Dialect::OpenAiResponses => {
            let patch = format!(
                "*** Begin Patch\n*** Update File: hello.py\n@@\n {FIRST}\n+{SECOND}\n*** End Patch\n"
            );
            call("apply_patch", json!({ "patch": patch }))
        }
        Dialect::AnthropicMessages | Dialect::Gemini | Dialect::ChatCompletions => {
            let new = format!("{FIRST}\n{SECOND}");
            call("edit_file", json!({ "file_path": "hello.py", "old_string": FIRST, "new_string": new }))
        }
    }
}

/// Returns two parallel weather calls and the final response.
pub(crate) fn weather() -> Script {
    let city = |city: &str| Call::new("get_weather", json!({ "city": city }));
    let both = Turn::new().with_call(city("San Francisco")).with_call(city("New York"));
    of([both, Turn::text("San Francisco has fog, and New York has sun.")])
}
