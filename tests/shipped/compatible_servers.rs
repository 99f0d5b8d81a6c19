//! Servers with an OpenAI-compatible API, and the rules of their models.

use pintle_testkit::Dialect;
use serde_json::{Value, json};

use super::user::{KEY, User};

/// Reasons before the first call only. The last response has reasoning in its text.
const REASONING: &str = r#"
    [[turn]]
    reasoning = "Look first."
    [[turn.call]]
    tool = "read_file"
    arguments = { file_path = "a.txt" }
    [[turn]]
    [[turn.call]]
    tool = "glob"
    arguments = { pattern = "*" }
    [[turn]]
    text = "<think>\nHidden words.\n</think>\n\nShown words."
    [[turn]]
    text = "Still the same."
    "#;

/// Runs `pintle run` with a compatible server, and returns the outcome.
fn run(user: &User, more: &[&str]) -> Value {
    let url = user.model.base_url(Dialect::ChatCompletions);
    let fixed = ["run", "--provider", "openai-compatible", "--base-url", &url, "--output", "json"];
    let output = user.command(&[&fixed[..], more].concat()).env("OPENAI_API_KEY", KEY).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let printed = String::from_utf8(output.stdout).unwrap();
    serde_json::from_str(printed.lines().last().unwrap()).unwrap()
}

/// Returns the `reasoning_content` of each assistant message of the newest request.
fn reasoning_contents(user: &User) -> Vec<Value> {
    let requests = user.model.requests();
    let messages = requests.last().unwrap().body["messages"].as_array().unwrap().clone();
    let assistant = messages.into_iter().filter(|message| message["role"] == "assistant");
    assistant.map(|message| message.get("reasoning_content").cloned().unwrap_or_default()).collect()
}

#[test]
fn reasoning_returns_in_its_field_and_tags_do_not() {
    let user = User::new(REASONING);
    std::fs::write(user.project().join("a.txt"), "A").unwrap();
    let outcome = run(&user, &["--model", "deepseek-v4-pro", "What is in a.txt?"]);
    assert_eq!(outcome["text"], "Shown words.", "{outcome}");
    assert_eq!(reasoning_contents(&user), [json!("Look first."), json!("")]);
    let outcome = run(&user, &["--model", "deepseek-v4-pro", "--continue", "And now?"]);
    assert_eq!(outcome["text"], "Still the same.", "{outcome}");
    assert_eq!(reasoning_contents(&user), [json!("Look first."), json!(""), json!("")]);
    let request = user.model.requests().last().unwrap().body.to_string();
    assert!(request.contains("Shown words.") && !request.contains("Hidden words."), "{request}");
}

#[test]
fn the_output_limit_has_the_name_that_model_and_profile_require() {
    let profile = |name: &str, options: &str| {
        format!(
            "name = 'own'\nextends = 'openai-compatible'\nmodel = '{name}'\nmax_output_tokens = 4000\n{options}"
        )
    };
    let quirks = "[provider_options.openai-compatible.quirks]\noutput_limit = 'max_completion_tokens'\n";
    let given = "[provider_options.openai-compatible]\nmax_completion_tokens = 300\n";
    for (model, options, expected) in [
        ("gpt-5.2", "", [None, Some(4000)]),
        ("local-model", "", [Some(4000), None]),
        ("local-model", quirks, [None, Some(4000)]),
        ("local-model", given, [None, Some(300)]),
    ] {
        let user = User::new("[[turn]]\ntext = 'Hello.'\n");
        let file = user.at("own.toml");
        std::fs::write(&file, profile(model, options)).unwrap();
        run(&user, &["--profile", file.to_str().unwrap(), "Hi"]);
        let body = user.model.requests()[0].body.clone();
        let found =
            ["max_tokens", "max_completion_tokens"].map(|name| body.get(name).and_then(Value::as_u64));
        assert_eq!(found, expected, "{model} {options}");
    }
}
