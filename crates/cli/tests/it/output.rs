//! Machine-readable output and exit codes.

use pintle_testkit::Dialect;
use serde_json::Value;

use crate::harness::{CommandOutput, Harness, pintle, run, without_level_notice};

const ROUND: &str =
    "[[turn]]\ntext = \"Looking.\"\n[[turn.call]]\ntool = \"glob\"\narguments = { pattern = \"*\" }\n";
const DONE: &str = "[[turn]]\ntext = \"Nothing there.\"\n";

fn lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

#[test]
fn session_that_is_not_kept_ends_with_its_run() {
    let harness = Harness::new(Dialect::Gemini, DONE);
    let output = run(&mut harness.command("run", &["--output", "stream-json", "--no-session", "Look"]));
    let lines = lines(&output.stdout);
    let kinds: Vec<&str> = lines.iter().filter_map(|line| line.get("kind")?.as_str()).collect();
    assert_eq!(kinds.last(), Some(&"SESSION_END"));
}

#[test]
fn run_stream_has_header_events_and_outcome() {
    let harness = Harness::new(Dialect::Gemini, &format!("{ROUND}{DONE}"));
    let output = run(&mut harness.command("run", &["--output", "stream-json", "Look"]));
    assert_eq!(output.code, Some(0), "{output:?}");
    let lines = lines(&output.stdout);
    let id = lines[0]["session_id"].as_str().expect("the first line holds the session id");
    let last = lines.last().unwrap();
    assert!(last.to_string().contains("completed"), "{last}");
    let events: Vec<&Value> = lines.iter().filter(|line| line.get("kind").is_some()).collect();
    let kinds: Vec<&str> = events.iter().map(|event| event["kind"].as_str().unwrap()).collect();
    for kind in ["SESSION_START", "USER_INPUT", "TOOL_CALL_START", "TOOL_CALL_END", "PROCESSING_END"] {
        assert_eq!(kinds.iter().filter(|seen| **seen == kind).count(), 1, "{kind} in {kinds:?}");
    }
    assert_eq!(kinds.last(), Some(&"PROCESSING_END"), "the session goes on later");
    assert!(events.iter().all(|event| event["session_id"] == id && event["timestamp"].is_string()));
    let numbers: Vec<u64> = events
        .iter()
        .filter(|event| event.get("offset").is_none())
        .map(|event| event["seq"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>(), "gapless");
    assert_eq!(events.len() + 2, lines.len(), "nothing else");
    let schema = jsonschema::draft202012::new(&pintle_agent::event_schema()).unwrap();
    for event in events {
        schema.validate(event).unwrap_or_else(|error| panic!("{error}: {event}"));
    }
}

#[test]
fn run_json_is_one_object() {
    let harness = Harness::new(Dialect::OpenAiResponses, &format!("{ROUND}{DONE}"));
    let output = run(&mut harness.command("run", &["--output", "json", "Look"]));
    let lines = lines(&output.stdout);
    assert_eq!((output.code, lines.len()), (Some(0), 1), "{output:?}");
    assert!(output.stdout.contains("Nothing there."));
}

#[test]
fn ask_stream_has_one_event_per_line() {
    for dialect in Dialect::ALL {
        let harness =
            Harness::new(dialect, "[[turn]]\nreasoning = \"Hm.\"\ntext = \"A short answer, in pieces.\"\n");
        let output = run(&mut harness.command("ask", &["--output", "stream-json", "Well?"]));
        assert_eq!(output.code, Some(0), "{output:?}");
        let lines = lines(&output.stdout);
        let text: String = lines
            .iter()
            .filter(|line| line["type"] == "TEXT_DELTA")
            .map(|line| line["delta"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(text, "A short answer, in pieces.");
        assert_eq!(lines[0]["type"], "STREAM_START");
        let last = lines.last().unwrap();
        assert_eq!((&last["type"], &last["finish_reason"]["reason"]), (&"FINISH".into(), &"stop".into()));
        assert!(last["usage"]["output_tokens"].as_u64().unwrap() > 0);
        assert!(last["response"]["message"]["content"].is_array());
    }
}

#[test]
fn ask_failure_is_an_error_event() {
    let harness =
        Harness::new(Dialect::OpenAiResponses, "[[turn]]\ntext = \"x\"\n[[turn.failure]]\nstatus = 500\n");
    let output = run(&mut harness.command("ask", &["--output", "stream-json", "Well?"]));
    assert_eq!(output.code, Some(1), "{output:?}");
    let last = lines(&output.stdout).pop().unwrap();
    assert_eq!(
        (&last["type"], &last["error"]["kind"], &last["error"]["exit_code"]),
        (&"ERROR".into(), &"server".into(), &1.into())
    );

    let harness =
        Harness::new(Dialect::OpenAiResponses, "[[turn]]\ntext = \"x\"\n[[turn.failure]]\nstatus = 500\n");
    let output = run(&mut harness.command("ask", &["--output", "json", "Well?"]));
    let lines = lines(&output.stdout);
    assert_eq!((lines.len(), &lines[0]["error"]["kind"]), (1, &"server".into()), "{output:?}");
}

/// Every failure ends JSON output with an error object.
#[test]
fn every_failure_has_an_error_object() {
    let cases: [(&[&str], i32, &str); 7] = [
        (&["run", "Hello"], 4, "authentication"),
        (&["ask", "Hello"], 4, "authentication"),
        (&["run", "--provider", "scripted", "Hello"], 2, "usage"),
        (&["run", "--dir", "/no/such/place", "Hello"], 2, "usage"),
        (&["ask", "--prompt-file", "/no/such/file"], 2, "usage"),
        (&["run", "--nonsense", "Hello"], 2, "usage"),
        (&["ask", "--max-turns", "3", "Hello"], 2, "usage"),
    ];
    for (arguments, code, kind) in cases {
        for format in ["json", "stream-json"] {
            let output = run(pintle(arguments).args(["--output", format]));
            let lines = lines(&output.stdout);
            assert_eq!((output.code, lines.len()), (Some(code), 1), "{output:?}");
            let error = &lines[0]["error"];
            assert_eq!((&error["kind"], &error["exit_code"]), (&kind.into(), &code.into()), "{output:?}");
            let message = error["message"].as_str().unwrap();
            assert!(!message.is_empty() && output.stderr.contains(message), "{output:?}");
            let hint = error["hint"].as_str().unwrap_or_default();
            assert!(hint.split("; ").all(|part| output.stderr.contains(part)), "{output:?}");
            assert!(code != 4 || hint.contains("set OPENAI_API_KEY"), "{output:?}");
            let is_ask_stream = arguments[0] == "ask" && format == "stream-json";
            assert_eq!(lines[0]["type"], if is_ask_stream { "ERROR" } else { "error" }, "{output:?}");
        }
        assert_eq!(run(&mut pintle(arguments)).stdout, "");
    }
}

#[test]
fn run_failure_is_part_of_the_outcome() {
    let refused = "[[turn]]\ntext = \"x\"\n[[turn.failure]]\nstatus = 400\n";
    let cases: [(&str, &[&str], i32, &str); 4] = [
        (refused, &[], 1, "invalid_request"),
        (ROUND, &["--max-turns", "1"], 3, "limit_reached"),
        (ROUND, &["--max-tool-rounds", "1"], 3, "limit_reached"),
        (DONE, &[], 0, ""),
    ];
    for (turns, flags, code, kind) in cases {
        for format in ["json", "stream-json"] {
            let harness = Harness::new(Dialect::AnthropicMessages, turns);
            let output = run(&mut harness.command("run", &[flags, &["--output", format, "Look"]].concat()));
            let lines = lines(&output.stdout);
            let outcomes = lines.iter().filter(|line| line["type"] == "outcome").count();
            assert_eq!((output.code, outcomes), (Some(code), 1), "{output:?}");
            let outcome = lines.last().unwrap();
            if code == 0 {
                assert_eq!(outcome.get("error"), None, "{outcome}");
                continue;
            }
            let error = &outcome["error"];
            assert_eq!((&error["kind"], &error["exit_code"]), (&kind.into(), &code.into()), "{outcome}");
            let message = error["message"].as_str().unwrap();
            assert!(!message.is_empty() && output.stderr.contains(message), "{output:?}");
        }
    }
}

#[test]
fn exit_codes_tell_how_it_ended() {
    let cases: [(&str, &[&str], i32); 4] = [
        (DONE, &[], 0),
        (ROUND, &["--max-tool-rounds", "1"], 3),
        (ROUND, &["--max-turns", "1"], 3),
        ("[[turn]]\ntext = \"x\"\n[[turn.failure]]\nstatus = 400\n", &[], 1),
    ];
    for (turns, flags, code) in cases {
        let harness = Harness::new(Dialect::AnthropicMessages, turns);
        let output = run(&mut harness.command("run", &[flags, &["Look"]].concat()));
        assert_eq!(output.code, Some(code), "{turns}: {output:?}");
    }
    let harness = Harness::new(Dialect::AnthropicMessages, DONE);
    let output = run(harness.command("run", &["Look"]).env("ANTHROPIC_API_KEY", "sk-wrong-secret"));
    assert_eq!(output.code, Some(4), "{output:?}");
    assert!(!format!("{output:?}").contains("sk-wrong-secret"), "{output:?}");
    assert!(output.stderr.contains("ANTHROPIC_API_KEY"), "{output:?}");
}

/// Returns the transcript without its footer, with times and the directory normalised.
fn normalized(text: &str, directory: &str) -> String {
    let transcript = text.rsplit_once("\n\n[done]").expect("a footer").0.replace(directory, "DIRECTORY");
    let words: Vec<&str> = transcript.split(' ').collect();
    let is_time = |index: usize| words.get(index + 1).is_some_and(|unit| unit.starts_with("ms"));
    let normalized = words.iter().enumerate().map(|(index, word)| if is_time(index) { "0" } else { word });
    normalized.collect::<Vec<_>>().join(" ")
}

#[test]
fn command_output_keeps_its_form() {
    let turns = r#"
        [[turn]]
        [[turn.call]]
        tool = "shell"
        arguments = { command = "printf 'def f():\\n    return 1\\n\\n\\tx\\n'" }
        [[turn]]
        text = "Done."
        "#;
    let harness = Harness::new(Dialect::AnthropicMessages, turns);
    let output = run(&mut harness.command("run", &["Work"]));
    assert!(output.stdout.contains("\n    def f():\n        return 1\n\n    \tx\n"), "{output:?}");
}

#[test]
fn command_timeout_is_reported() {
    let cases = [
        (Dialect::AnthropicMessages, "spec", "shell", "timeout_ms"),
        (Dialect::AnthropicMessages, "native", "Bash", "timeout"),
    ];
    for (dialect, toolset, tool, limit) in cases {
        let turns = format!(
            "[[turn]]\n[[turn.call]]\ntool = \"{tool}\"\narguments = {{ command = \"echo begun; sleep 60\", {limit} = 250 }}\n[[turn]]\ntext = \"Done.\"\n"
        );
        let run = |format: &str| {
            let harness = Harness::new(dialect, &turns);
            run(&mut harness.command("run", &["--toolset", toolset, "--output", format, "Work"]))
        };
        let output = run("text");
        let line = format!("[{tool}] echo begun; sleep 60 (timed out after 250 ms, ");
        assert!(output.stdout.contains(&line), "{output:?}");
        let output = run("stream-json");
        let events = lines(&output.stdout);
        let end = events.iter().find(|event| event["kind"] == "TOOL_CALL_END").unwrap();
        assert_eq!(
            (&end["data"]["error"], &end["data"]["timeout_ms"]),
            (&"timed_out".into(), &250.into()),
            "{end}"
        );
    }
}

#[test]
fn piped_text_is_plain() {
    let turns = r#"
        [[turn]]
        text = "I look, then I write."
        [[turn.call]]
        tool = "shell"
        arguments = { command = "echo one; echo two" }
        [[turn]]
        [[turn.call]]
        tool = "read_file"
        arguments = { file_path = "missing.txt" }
        [[turn]]
        [[turn.call]]
        tool = "write_file"
        arguments = { file_path = "a.txt", content = "one\n" }
        [[turn]]
        text = "Done."
        "#;
    let harness = Harness::new(Dialect::AnthropicMessages, turns);
    // Neither `TERM` nor `CLICOLOR_FORCE` turns a pipe into a terminal.
    let output =
        run(harness.command("run", &["Work"]).env("TERM", "xterm-256color").env("CLICOLOR_FORCE", "1"));
    assert_eq!(output.code, Some(0), "{output:?}");
    insta::assert_snapshot!(normalized(&output.stdout, &harness.directory.path().display().to_string()), @r"
    I look, then I write.

    [shell] echo one; echo two (ok, 0 ms)
        one
        two
        Exit code: 0
        Duration: 0 ms
    [read_file] missing.txt (not found, 0 ms)
        Tool error (read_file): DIRECTORY/missing.txt does not exist
    [write_file] a.txt (ok, 0 ms)
        --- /dev/null
        +++ b/a.txt
        @@ -0,0 +1 @@
        +one

    Done.
    ");
}

#[test]
fn unanswerable_question_is_reported() {
    let turns = "[[turn]]\ntext = \"Which port shall I take?\"\n";
    let harness = Harness::new(Dialect::AnthropicMessages, turns);
    let output = run(&mut harness.command("run", &["Go"]));
    assert!(output.stdout.contains("[done, with a question]"), "{output:?}");
    assert_eq!(
        without_level_notice(&output.stderr),
        "pintle: the model asked a question, but no terminal is available to answer it\n"
    );
    let harness = Harness::new(Dialect::AnthropicMessages, turns);
    let output = run(&mut harness.command("run", &["--output", "json", "Go"]));
    assert_eq!(output.code, Some(0));
    assert!(output.stdout.contains("\"status\":\"awaiting_input\""), "{output:?}");
}

/// Writes a schema for a number of apples, and runs with it.
fn run_with_schema(turns: &str, flags: &[&str]) -> (CommandOutput, Harness) {
    let harness = Harness::new(Dialect::AnthropicMessages, turns);
    let schema =
        r#"{"type": "object", "properties": {"apples": {"type": "integer"}}, "required": ["apples"]}"#;
    std::fs::write(harness.path("schema.json"), schema).unwrap();
    let path = harness.path("schema.json").display().to_string();
    let output = run(harness.command("run", &["Count", "--output-schema", &path]).args(flags));
    (output, harness)
}

#[test]
fn a_final_response_is_repaired_until_it_matches_the_schema() {
    let turns = "[[turn]]\n[[turn.call]]\ntool = \"shell\"\narguments = { command = \"true\" }\n\
                 [[turn]]\ntext = \"There are four apples. Do you want more?\"\n\
                 [[turn]]\ntext = '{\"apples\": \"four\"}'\n\
                 [[turn]]\ntext = \"```json\\n{\\\"apples\\\": 4}\\n```\"\n";
    let (output, harness) = run_with_schema(turns, &["--quiet"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert_eq!(output.stdout, "{\"apples\":4}\n");
    let requests = harness.server.requests();
    assert_eq!(requests.len(), 4);
    let said = |request: usize| requests[request].body["messages"].to_string();
    assert!(said(0).contains("JSON Schema") && said(0).contains("apples"), "{}", said(0));
    assert!(said(2).contains("it is not JSON"), "{}", said(2));
    assert!(said(3).contains("`/apples`"), "{}", said(3));

    let (output, _harness) = run_with_schema("[[turn]]\ntext = '{\"apples\": 5}'\n", &["--output", "json"]);
    let outcome: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!((&outcome["answer"]["apples"], &outcome["exit_code"]), (&5.into(), &0.into()), "{outcome}");
}

#[test]
fn a_response_that_never_matches_has_its_own_exit_code() {
    let turns = "[[turn]]\ntext = \"Four.\"\n".repeat(4);
    let (output, harness) = run_with_schema(&turns, &["--output", "json"]);
    assert_eq!(output.code, Some(6), "{output:?}");
    assert_eq!(harness.server.requests().len(), 4);
    let outcome: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(outcome["error"]["kind"], "unmatched", "{outcome}");
    assert!(
        outcome["error"]["message"].as_str().unwrap().contains("after 3 repairs: it is not JSON"),
        "{outcome}"
    );
    assert!(outcome.get("answer").is_none());
}

#[test]
fn a_schema_is_read_before_anything_starts() {
    let harness = Harness::new(Dialect::AnthropicMessages, "[[turn]]\ntext = \"x\"\n");
    for (text, problem) in [
        ("{", "expected a JSON Schema"),
        (r#"{"type": "apple"}"#, "expected a JSON Schema"),
        (r#"{"$ref": "http://127.0.0.1:9/s.json"}"#, "expected a JSON Schema"),
    ] {
        std::fs::write(harness.path("schema.json"), text).unwrap();
        let path = harness.path("schema.json").display().to_string();
        let output = run(&mut harness.command("run", &["Count", "--output-schema", &path]));
        assert_eq!(output.code, Some(2), "{text}: {output:?}");
        assert!(output.stderr.contains(problem), "{text}: {output:?}");
    }
    let output = run(&mut harness.command("run", &["Count", "--output-schema", "no-such-file"]));
    assert_eq!(output.code, Some(2), "{output:?}");
    assert_eq!(harness.server.requests().len(), 0);
}
