//! The machine-readable outputs and the exit codes.

use pintle_testkit::Dialect;
use serde_json::Value;

use crate::lab::{Model, pintle, say};

const ROUND: &str =
    "[[turn]]\ntext = \"Looking.\"\n[[turn.call]]\ntool = \"glob\"\narguments = { pattern = \"*\" }\n";
const DONE: &str = "[[turn]]\ntext = \"Nothing there.\"\n";

fn lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

#[test]
fn stream_json_of_run_is_one_event_per_line_between_the_session_and_the_outcome() {
    let model = Model::new(Dialect::Gemini, &format!("{ROUND}{DONE}"));
    let said = say(&mut model.command("run", &["--output", "stream-json", "Look"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let lines = lines(&said.out);
    let id = lines[0]["session_id"].as_str().expect("the first line holds the session id");
    let last = lines.last().unwrap();
    assert!(last.to_string().contains("completed"), "{last}");
    let events: Vec<&Value> = lines.iter().filter(|line| line.get("kind").is_some()).collect();
    let kinds: Vec<&str> = events.iter().map(|event| event["kind"].as_str().unwrap()).collect();
    for kind in
        ["SESSION_START", "USER_INPUT", "TOOL_CALL_START", "TOOL_CALL_END", "PROCESSING_END", "SESSION_END"]
    {
        assert_eq!(kinds.iter().filter(|seen| **seen == kind).count(), 1, "{kind} in {kinds:?}");
    }
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
fn json_is_one_object_at_the_end() {
    let model = Model::new(Dialect::OpenAiResponses, &format!("{ROUND}{DONE}"));
    let said = say(&mut model.command("run", &["--output", "json", "Look"]));
    let lines = lines(&said.out);
    assert_eq!((said.code, lines.len()), (Some(0), 1), "{said:?}");
    assert!(said.out.contains("Nothing there."));
}

#[test]
fn stream_json_of_ask_is_one_stream_event_per_line() {
    for dialect in Dialect::ALL {
        let model =
            Model::new(dialect, "[[turn]]\nreasoning = \"Hm.\"\ntext = \"A short answer, in pieces.\"\n");
        let said = say(&mut model.command("ask", &["--output", "stream-json", "Well?"]));
        assert_eq!(said.code, Some(0), "{said:?}");
        let lines = lines(&said.out);
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
fn a_failure_of_ask_is_an_error_line_and_exit_code_1() {
    let model =
        Model::new(Dialect::OpenAiResponses, "[[turn]]\ntext = \"x\"\n[[turn.failure]]\nstatus = 500\n");
    let said = say(&mut model.command("ask", &["--output", "stream-json", "Well?"]));
    assert_eq!(said.code, Some(1), "{said:?}");
    let last = lines(&said.out).pop().unwrap();
    assert_eq!(
        (&last["type"], &last["error"]["kind"], &last["error"]["exit_code"]),
        (&"ERROR".into(), &"server".into(), &1.into())
    );

    let model =
        Model::new(Dialect::OpenAiResponses, "[[turn]]\ntext = \"x\"\n[[turn.failure]]\nstatus = 500\n");
    let said = say(&mut model.command("ask", &["--output", "json", "Well?"]));
    let lines = lines(&said.out);
    assert_eq!((lines.len(), &lines[0]["error"]["kind"]), (1, &"server".into()), "{said:?}");
}

/// Programs that read objects get one for every failure, the last line of what they read.
#[test]
fn every_failure_is_an_object_for_programs() {
    let rows: [(&[&str], i32, &str); 7] = [
        (&["run", "Hello"], 4, "authentication"),
        (&["ask", "Hello"], 4, "authentication"),
        (&["run", "--provider", "scripted", "Hello"], 2, "usage"),
        (&["run", "--dir", "/no/such/place", "Hello"], 2, "usage"),
        (&["ask", "--prompt-file", "/no/such/file"], 2, "usage"),
        (&["run", "--nonsense", "Hello"], 2, "usage"),
        (&["ask", "--max-turns", "3", "Hello"], 2, "usage"),
    ];
    for (arguments, code, kind) in rows {
        for format in ["json", "stream-json"] {
            let said = say(pintle(arguments).args(["--output", format]));
            let lines = lines(&said.out);
            assert_eq!((said.code, lines.len()), (Some(code), 1), "{said:?}");
            let error = &lines[0]["error"];
            assert_eq!((&error["kind"], &error["exit_code"]), (&kind.into(), &code.into()), "{said:?}");
            let message = error["message"].as_str().unwrap();
            assert!(!message.is_empty() && said.err.contains(message), "{said:?}");
            let hint = error["hint"].as_str().unwrap_or_default();
            assert!(said.err.contains(hint), "{said:?}");
            assert!(code != 4 || hint.contains("set OPENAI_API_KEY"), "{said:?}");
            let is_answer = arguments[0] == "ask" && format == "stream-json";
            assert_eq!(lines[0]["type"], if is_answer { "ERROR" } else { "error" }, "{said:?}");
        }
        assert_eq!(say(&mut pintle(arguments)).out, "");
    }
}

#[test]
fn a_failure_of_a_run_is_in_its_outcome() {
    let refused = "[[turn]]\ntext = \"x\"\n[[turn.failure]]\nstatus = 400\n";
    let rows: [(&str, &[&str], i32, &str); 4] = [
        (refused, &[], 1, "invalid_request"),
        (ROUND, &["--max-turns", "1"], 3, "limit_reached"),
        (ROUND, &["--max-tool-rounds", "1"], 3, "limit_reached"),
        (DONE, &[], 0, ""),
    ];
    for (turns, flags, code, kind) in rows {
        for format in ["json", "stream-json"] {
            let model = Model::new(Dialect::AnthropicMessages, turns);
            let said = say(&mut model.command("run", &[flags, &["--output", format, "Look"]].concat()));
            let lines = lines(&said.out);
            let outcomes = lines.iter().filter(|line| line["type"] == "outcome").count();
            assert_eq!((said.code, outcomes), (Some(code), 1), "{said:?}");
            let outcome = lines.last().unwrap();
            if code == 0 {
                assert_eq!(outcome.get("error"), None, "{outcome}");
                continue;
            }
            let error = &outcome["error"];
            assert_eq!((&error["kind"], &error["exit_code"]), (&kind.into(), &code.into()), "{outcome}");
            let message = error["message"].as_str().unwrap();
            assert!(!message.is_empty() && said.err.contains(message), "{said:?}");
        }
    }
}

#[test]
fn exit_codes_tell_how_it_ended() {
    let rows: [(&str, &[&str], i32); 4] = [
        (DONE, &[], 0),
        (ROUND, &["--max-tool-rounds", "1"], 3),
        (ROUND, &["--max-turns", "1"], 3),
        ("[[turn]]\ntext = \"x\"\n[[turn.failure]]\nstatus = 400\n", &[], 1),
    ];
    for (turns, flags, code) in rows {
        let model = Model::new(Dialect::AnthropicMessages, turns);
        let said = say(&mut model.command("run", &[flags, &["Look"]].concat()));
        assert_eq!(said.code, Some(code), "{turns}: {said:?}");
    }
    let model = Model::new(Dialect::AnthropicMessages, DONE);
    let said = say(model.command("run", &["Look"]).env("ANTHROPIC_API_KEY", "sk-wrong-secret"));
    assert_eq!(said.code, Some(4), "{said:?}");
    assert!(!format!("{said:?}").contains("sk-wrong-secret"), "{said:?}");
    assert!(said.err.contains("ANTHROPIC_API_KEY"), "{said:?}");
}

/// The transcript but for its last line, with what differs from run to run written alike: times and the folder.
fn alike(text: &str, folder: &str) -> String {
    let transcript = text.rsplit_once("\n\n[done]").expect("a closing line").0.replace(folder, "FOLDER");
    let words: Vec<&str> = transcript.split(' ').collect();
    let is_time = |index: usize| words.get(index + 1).is_some_and(|unit| unit.starts_with("ms"));
    let alike = words.iter().enumerate().map(|(index, word)| if is_time(index) { "0" } else { word });
    alike.collect::<Vec<_>>().join(" ")
}

#[test]
fn output_of_a_command_keeps_its_form() {
    let turns = r#"
        [[turn]]
        [[turn.call]]
        tool = "shell"
        arguments = { command = "printf 'def f():\\n    return 1\\n\\n\\tx\\n'" }
        [[turn]]
        text = "Done."
        "#;
    let model = Model::new(Dialect::AnthropicMessages, turns);
    let said = say(&mut model.command("run", &["Work"]));
    assert!(said.out.contains("\n    def f():\n        return 1\n\n    \tx\n"), "{said:?}");
}

#[test]
fn a_command_that_runs_over_its_time_says_so() {
    let rows = [
        (Dialect::AnthropicMessages, "spec", "shell", "timeout_ms"),
        (Dialect::AnthropicMessages, "native", "Bash", "timeout"),
    ];
    for (dialect, toolset, tool, limit) in rows {
        let turns = format!(
            "[[turn]]\n[[turn.call]]\ntool = \"{tool}\"\narguments = {{ command = \"echo begun; sleep 60\", {limit} = 250 }}\n[[turn]]\ntext = \"Done.\"\n"
        );
        let run = |format: &str| {
            let model = Model::new(dialect, &turns);
            say(&mut model.command("run", &["--toolset", toolset, "--output", format, "Work"]))
        };
        let said = run("text");
        let line = format!("[{tool}] echo begun; sleep 60 (timed out after 250 ms, ");
        assert!(said.out.contains(&line), "{said:?}");
        let said = run("stream-json");
        let events = lines(&said.out);
        let end = events.iter().find(|event| event["kind"] == "TOOL_CALL_END").unwrap();
        assert_eq!(
            (&end["data"]["error"], &end["data"]["timeout_ms"]),
            (&"timed_out".into(), &250.into()),
            "{end}"
        );
    }
}

#[test]
fn piped_text_is_plain_and_stable() {
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
    let model = Model::new(Dialect::AnthropicMessages, turns);
    // A terminal's name and colours that are wished for do not make a terminal of a pipe.
    let said = say(model.command("run", &["Work"]).env("TERM", "xterm-256color").env("CLICOLOR_FORCE", "1"));
    assert_eq!(said.code, Some(0), "{said:?}");
    insta::assert_snapshot!(alike(&said.out, &model.folder.path().display().to_string()), @r"
    I look, then I write.

    [shell] echo one; echo two (ok, 0 ms)
        one
        two
        Exit code: 0
        Duration: 0 ms
    [read_file] missing.txt (not found, 0 ms)
        Tool error (read_file): FOLDER/missing.txt does not exist
    [write_file] a.txt (ok, 0 ms)
        --- /dev/null
        +++ b/a.txt
        @@ -0,0 +1 @@
        +one

    Done.
    ");
}

#[test]
fn a_question_that_nobody_can_answer_is_told() {
    let turns = "[[turn]]\ntext = \"Which port shall I take?\"\n";
    let model = Model::new(Dialect::AnthropicMessages, turns);
    let said = say(&mut model.command("run", &["Go"]));
    assert!(said.out.contains("[done, with a question]"), "{said:?}");
    assert_eq!(said.err, "pintle: the model asks something, and nobody at a terminal can answer\n");
    let model = Model::new(Dialect::AnthropicMessages, turns);
    let said = say(&mut model.command("run", &["--output", "json", "Go"]));
    assert_eq!(said.code, Some(0));
    assert!(said.out.contains("\"status\":\"awaiting_input\""), "{said:?}");
}
