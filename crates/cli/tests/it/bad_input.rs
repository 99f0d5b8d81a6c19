//! One clear sentence that says what was expected, the right exit code, no panic.

use pintle_testkit::Dialect;

use crate::lab::{Model, Said, pintle, say, say_with_input};

fn is_clear(said: &Said, code: i32, parts: &[&str]) {
    assert_eq!(said.code, Some(code), "{said:?}");
    assert!(said.out.is_empty(), "nothing on standard output: {said:?}");
    for part in parts {
        assert!(said.err.contains(part), "`{part}` in {said:?}");
    }
    for trace in ["panicked", "backtrace", "RUST_"] {
        assert!(!said.err.contains(trace), "{said:?}");
    }
}

#[test]
fn without_a_key_the_ways_forward_are_named() {
    let said = say(&mut pintle(&["run", "Hello"]));
    is_clear(
        &said,
        4,
        &[
            "OPENAI_API_KEY",
            "ANTHROPIC_API_KEY",
            "GEMINI_API_KEY",
            "openai-compatible",
            "--base-url",
            "pintle demo",
        ],
    );
    let said = say(&mut pintle(&["ask", "--provider", "gemini", "Hello"]));
    is_clear(&said, 4, &["GEMINI_API_KEY"]);
}

#[test]
fn flags_with_wrong_values_name_the_right_ones() {
    let rows: [(&[&str], &[&str]); 9] = [
        (&["run", "--provider", "gork", "x"], &["gork", "openai", "anthropic", "gemini"]),
        (&["run", "--output", "yaml", "x"], &["yaml", "text", "stream-json"]),
        (&["run", "--max-turns", "many", "x"], &["many"]),
        (&["run", "--toolset", "foreign", "x"], &["foreign", "native", "spec"]),
        (
            &["run", "--env", "podman:x", "x"],
            &["podman:x", "local", "docker:CONTAINER", "ssh:[USER@]HOST[:PORT]"],
        ),
        (&["run", "--provider", "scripted", "x"], &["--script"]),
        (&["run", "--dir", "/no/such/place", "--provider", "openai", "x"], &["/no/such/place"]),
        (&["ask", "--prompt-file", "/no/such/file"], &["/no/such/file"]),
        (&["fly"], &["fly"]),
    ];
    for (arguments, parts) in rows {
        let said = say(pintle(arguments).env("OPENAI_API_KEY", "sk-x"));
        is_clear(&said, 2, parts);
    }
}

#[test]
fn a_task_without_its_command_is_told_the_command() {
    is_clear(&say(&mut pintle(&["fix it"])), 2, &["fix it", "pintle run \"fix it\""]);
    is_clear(&say(&mut pintle(&["run", "fix", "it"])), 2, &["pintle run \"fix it\""]);
    for near_miss in ["rnu", "mdels"] {
        let said = say(&mut pintle(&[near_miss]));
        is_clear(&said, 2, &[near_miss]);
        assert!(!said.err.contains("pintle run"), "{said:?}");
    }
}

#[test]
fn an_empty_prompt_is_refused() {
    for (arguments, input) in
        [(&["run", ""][..], ""), (&["run", "  "], ""), (&["run", "-"], "\n"), (&["ask", "-"], "")]
    {
        let said = say_with_input(pintle(arguments).env("OPENAI_API_KEY", "sk-x"), input);
        is_clear(&said, 2, &["empty"]);
    }
}

#[test]
fn what_is_no_text_is_refused() {
    use std::os::unix::ffi::OsStrExt as _;
    let odd = std::ffi::OsStr::from_bytes(b"caf\xE9");
    is_clear(&say(pintle(&["ask"]).arg(odd)), 2, &["UTF-8"]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(odd);
    std::fs::write(&file, b"caf\xE9").unwrap();
    is_clear(&say(pintle(&["ask", "--prompt-file"]).arg(&file)), 2, &["UTF-8", "byte 4"]);
    is_clear(&say(pintle(&["ask", "--prompt-file"]).arg(folder.path())), 2, &["prompt file", "directory"]);
}

#[test]
fn a_server_that_refuses_is_named() {
    // A port that was free a moment ago, and that nobody listens on.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}/v1");
    let mut command =
        pintle(&["ask", "--provider", "openai-compatible", "--model", "m", "--base-url", &url, "Hello"]);
    is_clear(&say(&mut command), 1, &[&format!("127.0.0.1:{port}")]);
}

#[test]
fn an_unknown_model_is_said_to_be_unknown() {
    let model = Model::new(Dialect::OpenAiResponses, "model = \"real\"\n[[turn]]\ntext = \"x\"\n");
    let said = say(&mut model.command("ask", &["--model", "imaginary", "Hello"]));
    is_clear(&said, 1, &["imaginary"]);
}

#[test]
fn a_script_that_does_not_parse_is_told_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("bad.toml");
    std::fs::write(&script, "name = \"x\"\n[[turn]]\nspeech = \"hello\"\n").unwrap();
    for command in [&["run", "--provider", "scripted", "Hello"][..], &["mock", "serve"]] {
        let said = say(pintle(command).arg("--script").arg(&script));
        is_clear(&said, 2, &["bad.toml", "speech", "3"]);
    }
}

#[test]
fn a_script_whose_expectation_fails_cannot_succeed() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("strict.toml");
    std::fs::write(
        &script,
        "name = \"strict\"\n[[turn]]\n[[turn.call]]\ntool = \"shell\"\narguments = { command = \"echo no\" }\n[[turn]]\ntext = \"Yes.\"\n[[turn.expect]]\ncall = 0\ncontains = \"yes\"\n",
    )
    .unwrap();
    let mut command = pintle(&["run", "--provider", "scripted", "--quiet", "--script"]);
    let said = say(command.arg(&script).arg("--dir").arg(folder.path()).arg("Go"));
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.err.contains("strict") && said.err.contains("expected"), "{said:?}");
}

#[test]
fn a_rate_limit_says_how_long_to_wait() {
    let failing = "[[turn]]\ntext = \"never\"\n[[turn.failure]]\nstatus = 429\nretry_after = \"86400\"\n";
    for dialect in Dialect::ALL {
        for subcommand in ["run", "ask"] {
            let said = say(&mut Model::new(dialect, failing).command(subcommand, &["Hello"]));
            assert_eq!(said.code, Some(1), "{dialect}: {said:?}");
            assert!(said.err.contains("retry after 24 h"), "{dialect}: {said:?}");
            assert!(!said.err.contains("a little"), "{dialect}: {said:?}");
        }
    }
}
