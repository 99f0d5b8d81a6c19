//! Invalid input: one clear message, the documented exit code, no panic.

use pintle_testkit::Dialect;

use crate::harness::{CommandOutput, Harness, pintle, run, run_with_input};

fn assert_clear(output: &CommandOutput, code: i32, parts: &[&str]) {
    assert_eq!(output.code, Some(code), "{output:?}");
    assert!(output.stdout.is_empty(), "nothing on standard output: {output:?}");
    for part in parts {
        assert!(output.stderr.contains(part), "`{part}` in {output:?}");
    }
    for trace in ["panicked", "backtrace", "RUST_"] {
        assert!(!output.stderr.contains(trace), "{output:?}");
    }
}

#[test]
fn missing_key_suggests_alternatives() {
    let output = run(&mut pintle(&["run", "Hello"]));
    assert_clear(
        &output,
        4,
        &[
            "OPENAI_API_KEY",
            "ANTHROPIC_API_KEY",
            "GEMINI_API_KEY",
            "openai-compatible",
            "--base-url",
            "with cargo in PATH: pintle demo",
        ],
    );
    let output = run(&mut pintle(&["ask", "--provider", "gemini", "Hello"]));
    assert_clear(&output, 4, &["GEMINI_API_KEY"]);
}

#[test]
fn invalid_flag_values_list_valid_ones() {
    let cases: [(&[&str], &[&str]); 9] = [
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
        (&["rules", "fly"], &["fly"]),
    ];
    for (arguments, parts) in cases {
        let output = run(pintle(arguments).env("OPENAI_API_KEY", "sk-x"));
        assert_clear(&output, 2, parts);
    }
}

#[test]
fn prompts_without_quotes_get_a_hint() {
    assert_clear(&run(&mut pintle(&["fix", "it"])), 2, &["pintle \"fix it\""]);
    assert_clear(&run(&mut pintle(&["run", "fix", "it"])), 2, &["pintle run \"fix it\""]);
    for typo in ["rnu", "mdels"] {
        let output = run(&mut pintle(&[typo]));
        assert_clear(&output, 2, &[typo]);
        assert!(!output.stderr.contains("pintle run"), "{output:?}");
    }
}

#[test]
fn empty_prompt_is_rejected() {
    for (arguments, input) in
        [(&["run", ""][..], ""), (&["run", "  "], ""), (&["run", "-"], "\n"), (&["ask", "-"], "")]
    {
        let output = run_with_input(pintle(arguments).env("OPENAI_API_KEY", "sk-x"), input);
        assert_clear(&output, 2, &["empty"]);
    }
}

#[test]
fn invalid_utf8_is_rejected() {
    use std::os::unix::ffi::OsStrExt as _;
    let odd = std::ffi::OsStr::from_bytes(b"caf\xE9");
    assert_clear(&run(pintle(&["ask"]).arg(odd)), 2, &["UTF-8"]);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join(odd);
    std::fs::write(&file, b"caf\xE9").unwrap();
    assert_clear(&run(pintle(&["ask", "--prompt-file"]).arg(&file)), 2, &["UTF-8", "byte 4"]);
    assert_clear(
        &run(pintle(&["ask", "--prompt-file"]).arg(directory.path())),
        2,
        &["prompt file", "directory"],
    );
}

#[test]
fn refused_connection_names_the_server() {
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}/v1");
    let mut command =
        pintle(&["ask", "--provider", "openai-compatible", "--model", "m", "--base-url", &url, "Hello"]);
    assert_clear(&run(&mut command), 1, &[&format!("127.0.0.1:{port}")]);
}

#[test]
fn unknown_model_is_named() {
    let harness = Harness::new(Dialect::OpenAiResponses, "model = \"real\"\n[[turn]]\ntext = \"x\"\n");
    let output = run(&mut harness.command("ask", &["--model", "imaginary", "Hello"]));
    assert_clear(&output, 1, &["imaginary"]);
}

#[test]
fn script_errors_have_a_line_number() {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("bad.toml");
    std::fs::write(&script, "name = \"x\"\n[[turn]]\nspeech = \"hello\"\n").unwrap();
    for command in [&["run", "--provider", "scripted", "Hello"][..], &["mock", "serve"]] {
        let output = run(pintle(command).arg("--script").arg(&script));
        assert_clear(&output, 2, &["bad.toml", "speech", "3"]);
    }
}

#[test]
fn failed_script_expectation_fails_the_run() {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("strict.toml");
    std::fs::write(
        &script,
        "name = \"strict\"\n[[turn]]\n[[turn.call]]\ntool = \"shell\"\narguments = { command = \"echo no\" }\n[[turn]]\ntext = \"Yes.\"\n[[turn.expect]]\ncall = 0\ncontains = \"yes\"\n",
    )
    .unwrap();
    let mut command = pintle(&["run", "--provider", "scripted", "--quiet", "--script"]);
    let output = run(command.arg(&script).arg("--dir").arg(directory.path()).arg("Go"));
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(output.stderr.contains("strict") && output.stderr.contains("expected"), "{output:?}");
}

#[test]
fn rate_limit_reports_the_delay() {
    let failing = "[[turn]]\ntext = \"never\"\n[[turn.failure]]\nstatus = 429\nretry_after = \"86400\"\n";
    for dialect in Dialect::ALL {
        for subcommand in ["run", "ask"] {
            let output = run(&mut Harness::new(dialect, failing).command(subcommand, &["Hello"]));
            assert_eq!(output.code, Some(1), "{dialect}: {output:?}");
            assert!(output.stderr.contains("retry after 24 h"), "{dialect}: {output:?}");
            assert!(!output.stderr.contains("a little"), "{dialect}: {output:?}");
        }
    }
}

/// A key of a provider is replaced in messages, and that of a script is no secret.
#[test]
fn messages_of_a_scripted_model_are_complete() {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("script.toml");
    std::fs::write(&script, "name = \"s\"\n[[turn]]\ntext = \"x\"\nfailure = [{ status = 400 }]\n").unwrap();
    let mut command = pintle(&["ask", "--provider", "scripted", "--script"]);
    let output = run(command.arg(&script).arg("Hi"));
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(output.stderr.contains("scripted failure with status 400"), "{output:?}");
}
