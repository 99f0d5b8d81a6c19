//! `--profile`.

use pintle_testkit::Dialect;

use crate::harness::{Harness, pintle, run};

const PROFILE: &str = "name = \"own\"\nextends = \"openai-compatible\"\nmodel = \"local-model\"\n\
                       system_prompt_file = \"own.md\"\ntools = [\"write_file\", \"web_fetch\"]\n\
                       context_window = 8192\ntext_tool_calls = [\"hermes\"]\n";

const CALL: &str = r#"[[turn]]
text = '<tool_call>{"name": "write_file", "arguments": {"file_path": "a.txt", "content": "written"}}</tool_call>'
[[turn]]
text = "It is written."
[[turn.expect]]
request_contains = "You write files."
"#;

#[test]
fn runs_use_prompt_tools_and_call_syntax_of_the_profile() {
    let harness = Harness::new(Dialect::ChatCompletions, CALL);
    let profiles = tempfile::tempdir().unwrap();
    let file = profiles.path().join("own.toml");
    std::fs::write(&file, PROFILE).unwrap();
    std::fs::write(profiles.path().join("own.md"), "You write files.").unwrap();
    let output =
        run(&mut harness
            .command("run", &["--network", "on", "--profile", file.to_str().unwrap(), "Write it"]));
    assert_eq!(output.code, Some(0), "{output:?}");
    assert_eq!(harness.read("a.txt"), "written");
    assert!(output.stdout.contains("It is written.") && !output.stdout.contains("<tool_call>"), "{output:?}");
    let requests = harness.server.requests();
    assert!(requests.iter().all(|request| request.violations.is_empty()));
    let tools = requests[0].body["tools"].as_array().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["write_file", "web_fetch"]);
    assert_eq!(requests[0].body["model"], "local-model");

    let shown = run(pintle(&["prompt", "--output", "plain", "--profile"])
        .arg(&file)
        .arg("--dir")
        .arg(profiles.path()));
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(shown.stdout.starts_with("You write files.\n\n<environment>\n"), "{shown:?}");
}

#[test]
fn invalid_profile_is_rejected_before_any_request() {
    let harness = Harness::new(Dialect::ChatCompletions, CALL);
    let file = harness.directory.path().join("own.toml");
    for (text, expected) in [
        (
            "name = \"own\"\nextends = \"llama\"\n",
            "line 2, column 11: unknown variant `llama`, expected one of `openai`",
        ),
        ("name = \"own\"\nextends = \"gemini\"\nmodel = \"m\"\n", "which is for gemini"),
    ] {
        std::fs::write(&file, text).unwrap();
        let output = run(&mut harness.command("run", &["--profile", file.to_str().unwrap(), "Write it"]));
        assert_eq!(output.code, Some(2), "{output:?}");
        assert!(output.stderr.contains(expected), "{output:?}");
    }
    assert!(harness.server.requests().is_empty());
}
