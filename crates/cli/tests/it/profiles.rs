//! `--profile`: a profile of the user's own.

use pintle_testkit::Dialect;

use crate::lab::{Model, pintle, say};

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
fn a_run_with_it_has_its_prompt_its_tools_and_its_calls() {
    let model = Model::new(Dialect::ChatCompletions, CALL);
    let profiles = tempfile::tempdir().unwrap();
    let file = profiles.path().join("own.toml");
    std::fs::write(&file, PROFILE).unwrap();
    std::fs::write(profiles.path().join("own.md"), "You write files.").unwrap();
    let said = say(&mut model.command("run", &["--profile", file.to_str().unwrap(), "Write it"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(model.read("a.txt"), "written");
    assert!(said.out.contains("It is written.") && !said.out.contains("<tool_call>"), "{said:?}");
    let requests = model.server.requests();
    assert!(requests.iter().all(|request| request.violations.is_empty()));
    let tools = requests[0].body["tools"].as_array().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["write_file", "web_fetch"]);
    assert_eq!(requests[0].body["model"], "local-model");

    let shown = say(pintle(&["prompt", "--output", "plain", "--profile"])
        .arg(&file)
        .arg("--dir")
        .arg(profiles.path()));
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(shown.out.starts_with("You write files.\n\n<environment>\n"), "{shown:?}");
}

#[test]
fn one_that_cannot_be_used_ends_the_command_before_anything_happens() {
    let model = Model::new(Dialect::ChatCompletions, CALL);
    let file = model.folder.path().join("own.toml");
    for (text, expected) in [
        (
            "name = \"own\"\nextends = \"llama\"\n",
            "line 2, column 11: unknown variant `llama`, expected one of `openai`",
        ),
        ("name = \"own\"\nextends = \"gemini\"\nmodel = \"m\"\n", "which is for gemini"),
    ] {
        std::fs::write(&file, text).unwrap();
        let said = say(&mut model.command("run", &["--profile", file.to_str().unwrap(), "Write it"]));
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.err.contains(expected), "{said:?}");
    }
    assert!(model.server.requests().is_empty());
}
