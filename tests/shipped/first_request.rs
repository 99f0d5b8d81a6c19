//! The first request of a session: its size, and the prefix that later requests repeat.

use pintle_testkit::Dialect;
use serde_json::Value;

use super::repository::add_history;
use super::user::{KEY, User};

/// Each provider with its flags, the variable of its key, and the maximum size of its first request in bytes.
const PROVIDERS: [(Dialect, &[&str], &str, usize); 4] = [
    (Dialect::AnthropicMessages, &["--provider", "anthropic"], "ANTHROPIC_API_KEY", 12_288),
    (Dialect::OpenAiResponses, &["--provider", "openai"], "OPENAI_API_KEY", 12_288),
    (Dialect::Gemini, &["--provider", "gemini"], "GEMINI_API_KEY", 13_500),
    (
        Dialect::ChatCompletions,
        &["--provider", "openai-compatible", "--model", "local-model"],
        "OPENAI_API_KEY",
        14_000,
    ),
];

/// Creates a user with a history, and runs one session in two processes. The work tree changes in between.
fn requests_of_two_runs(dialect: Dialect, flags: &[&str], key: &str) -> User {
    let user = User::new("[[turn]]\ntext = \"Done.\"\n[[turn]]\ntext = \"Done.\"\n");
    add_history(&user);
    let url = user.model.base_url(dialect);
    for more in [&["Go"][..], &["--continue", "Go on"]] {
        let arguments = [&["run", "--base-url", url.as_str()], flags, more].concat();
        let output = user.command(&arguments).env(key, KEY).output().unwrap();
        assert!(output.status.success(), "{dialect}: {output:?}");
        std::fs::write(user.project().join("new.txt"), "new").unwrap();
    }
    user
}

/// Returns tools and system prompt of a request.
fn prefix(dialect: Dialect, body: &Value) -> [&Value; 2] {
    let prompt = match dialect {
        Dialect::AnthropicMessages => &body["system"],
        Dialect::OpenAiResponses => &body["instructions"],
        Dialect::Gemini => &body["systemInstruction"],
        Dialect::ChatCompletions => &body["messages"][0],
    };
    assert!(!prompt.is_null() && !body["tools"].is_null(), "{dialect}: {body}");
    [&body["tools"], prompt]
}

#[test]
fn requests_are_small_and_a_resumed_session_repeats_their_prefix() {
    for (dialect, flags, key, limit) in PROVIDERS {
        let user = requests_of_two_runs(dialect, flags, key);
        let requests = user.model.requests();
        let [first, second] = requests.as_slice() else { panic!("{dialect}: {} requests", requests.len()) };
        let bytes = first.raw_body.len();
        assert!(bytes <= limit, "{dialect}: {bytes} of {limit} bytes: {}", first.body);
        assert_eq!(prefix(dialect, &first.body), prefix(dialect, &second.body), "{dialect}");
    }
}
