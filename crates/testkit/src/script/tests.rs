//! Parsing of scripts and their errors.

use serde_json::json;

use super::*;
use crate::history::History;

const FULL: &str = r#"
name = "full"
dialect = "anthropic"
model = "scripted-1"

[[turn]]
only = ["openai"]
reasoning = "think"
text = "say"
pause_ms = 20
finish = "length"

[[turn.call]]
tool = "read_file"
arguments = { file_path = "src/lib.rs", limit = 3 }

[[turn.call]]
tool = "broken"
arguments_raw = "not json"

[[turn.call]]
tool = "apply_patch"
input = '''
*** Begin Patch
'''

[[turn.failure]]
status = 429
retry_after = "0"

[[turn.failure]]
cut_after_events = 3
stall_ms = 5

[[turn.failure]]
error_event = "rate_limit"

[[turn.failure]]
stall_ms = 7

[[turn]]
text = "done"
only = ["openai"]

[[turn.expect]]
call = 2
contains = "ok"
is_error = false

[[turn.expect]]
request_contains = "please"
"#;

#[test]
fn scripts_are_parsed() {
    let script = Script::parse(FULL).unwrap();
    let first = &script.turns[0];
    assert_eq!(
        (script.dialect, script.model.as_deref()),
        (Some(Dialect::AnthropicMessages), Some("scripted-1"))
    );
    assert_eq!(first.finish, Some(Finish::Length));
    let expected = [
        Call::new("read_file", json!({"file_path": "src/lib.rs", "limit": 3})),
        Call::raw("broken", "not json"),
        Call::freeform("apply_patch", "*** Begin Patch\n"),
    ];
    assert_eq!(first.calls, expected);
    let mut cut = Failure::cut_after_events(3);
    cut.stall = std::time::Duration::from_millis(5);
    let expected = [
        Failure::status(429).with_retry_after("0"),
        cut,
        Failure::error_event(ErrorEvent::RateLimit),
        Failure::silence(std::time::Duration::from_millis(7)),
    ];
    assert_eq!(first.failures, expected);
    assert_eq!(script.turns[1].expectations[1], Expectation::request_contains("please"));
}

#[test]
fn invalid_scripts_name_position_and_expectation() {
    let cases = [
        ("", "invalid script at line 1, column 1: missing field `name`"),
        (
            "name = \"x\"\nturm = 1\n",
            "invalid script at line 2, column 1: unknown field `turm`, expected one of",
        ),
        (
            "name = \"x\"\n[[turn]]\ntext = 1\n",
            "invalid script at line 3, column 8: invalid type: integer `1`, expected a string",
        ),
        (
            "name = \"x\"\n[[turn]]\nonly = [\"claude\"]\n",
            "invalid script at line 3, column 9: unknown variant `claude`, expected one of `openai`, `anthropic`",
        ),
        ("name = \"x\"\n", "script `x` has no turn; expected at least one [[turn]]"),
        ("name = \"x\"\n[[turn]]\n", "turn 1 says nothing: expected `text`, a [[turn.call]], or"),
        ("name = \"x\"\n[[turn]]\ntext = \"a\"\nonly = []\n", "turn 1 is for no dialect"),
        (
            "name = \"x\"\n[[turn]]\ntext = \"a\"\npause_ms = 60001\n",
            "turn 1 has pause_ms = 60001; expected at most 60000",
        ),
        (
            "name = \"x\"\n[[turn]]\n[[turn.call]]\ntool = \"p\"\ninput = \"i\"\n",
            "turn 1 calls the custom tool `p` with `input`, which only one dialect has: expected only = [\"openai\"]",
        ),
        (
            "name = \"x\"\n[[turn]]\n[[turn.call]]\ntool = \"p\"\ninput = \"i\"\narguments = {}\n",
            "invalid script at line 3, column 1: call of `p` has several inputs; expected one of arguments",
        ),
        (
            "name = \"x\"\n[[turn]]\ntext = \"a\"\n[[turn.failure]]\nstatus = 200\n",
            "invalid script at line 4, column 1: status is 200; expected 400 to 599",
        ),
        (
            "name = \"x\"\n[[turn]]\ntext = \"a\"\n[[turn.failure]]\nstatus = 500\ncut_after_events = 1\n",
            "invalid script at line 4, column 1: a failure has one kind; expected one of status",
        ),
        (
            "name = \"x\"\n[[turn]]\ntext = \"a\"\n[[turn.failure]]\nretry_after = \"1\"\n",
            "invalid script at line 4, column 1: retry_after and body belong to a status",
        ),
        (
            "name = \"x\"\n[[turn]]\ntext = \"a\"\n[[turn.expect]]\ncall = 0\n",
            "invalid script at line 4, column 1: expectation checks nothing or too much",
        ),
        (
            "name = \"x\"\n[[turn]]\ntext = \"a\"\n[[turn.when]]\nrequest_contains = []\ntext = \"b\"\n",
            "turn 1 has a variant for each request: expected texts in `request_contains`",
        ),
        (
            "name = \"x\"\n[[turn]]\ntext = \"a\"\n[[turn.when]]\nrequest_contains = [\"b\"]\n",
            "turn 1 has a variant without content: expected `text` or a call",
        ),
        (
            "name = \"x\"\n[[turn]]\ntext = \"a\"\n[[turn]]\ntext = \"b\"\n[[turn.expect]]\ncall = 0\ncontains = \"c\"\n",
            "turn 2 expects a result of call 0, but the turn before it in dialect openai makes 0 calls",
        ),
    ];
    for (text, expected) in cases {
        let message = Script::parse(text).unwrap_err().to_string();
        assert!(message.starts_with(expected), "{text}\nfound:    {message}\nexpected: {expected}");
        assert!(!message.contains('\n'), "{message}");
    }
}

#[test]
fn turns_are_filtered_by_dialect() {
    let script = Script::new("mixed")
        .with_turn(Turn::text("all"))
        .with_turn(Turn::text("one").with_only([Dialect::Gemini]))
        .with_turn(Turn::text("three").with_only([Dialect::OpenAiResponses, Dialect::AnthropicMessages]));
    let texts = |dialect| -> Vec<&str> {
        script.turns_for(dialect).filter_map(|turn| turn.text.as_deref()).collect()
    };
    assert_eq!(texts(Dialect::Gemini), ["all", "one"]);
    assert_eq!(texts(Dialect::AnthropicMessages), ["all", "three"]);
    assert_eq!(texts(Dialect::ChatCompletions), ["all"]);
}

#[test]
fn a_turn_depends_on_its_request() {
    let script = Script::parse(
        "name = \"x\"\n[[turn]]\ntext = \"other\"\n\
         [[turn.when]]\nrequest_contains = [\"review\", \"+bad\"]\ntext = \"fault\"\n\
         [[turn.when]]\nrequest_contains = [\"review\"]\n[[turn.when.call]]\ntool = \"look\"\n",
    )
    .unwrap();
    let content = |system: &str, message: &str| {
        let body = json!({"system": system, "messages": [{"role": "user", "content": message}]});
        let history = History::read(Dialect::AnthropicMessages, "/v1/messages", &body);
        let turn = script.turns[0].for_request(&history).into_owned();
        (turn.text, turn.calls.len())
    };
    assert_eq!(content("", "work"), (Some("other".to_owned()), 0));
    assert_eq!(content("review", "+good"), (None, 1));
    assert_eq!(content("review", "x +bad"), (Some("fault".to_owned()), 0));
}
