//! The trace of a whole session over HTTP contains no key, and no text of user, model or tools.

use pintle_testkit::Dialect;

use crate::harness::{Harness, KEY};
use crate::secrets::log::Log;

#[tokio::test]
async fn openai() {
    nothing_confidential(Dialect::OpenAiResponses).await;
}

#[tokio::test]
async fn anthropic() {
    nothing_confidential(Dialect::AnthropicMessages).await;
}

#[tokio::test]
async fn gemini() {
    nothing_confidential(Dialect::Gemini).await;
}

#[tokio::test]
async fn compatible() {
    nothing_confidential(Dialect::ChatCompletions).await;
}

/// Runs on one thread, since the log records one thread.
async fn nothing_confidential(dialect: Dialect) {
    let log = Log::begin();
    let turns = r#"
        [[turn]]
        text = "unheard-of words of a model"
        [[turn.call]]
        tool = "shell"
        arguments = { command = "cat secret.txt; exit 3" }
        [[turn]]
        text = "Done."
    "#;
    let harness = Harness::new(dialect, turns).await;
    harness.write("secret.txt", "unheard-of output");
    harness.run("unheard-of words of a user").await;
    harness.finish().await;
    let log = log.text();
    for span in ["session", "gen_ai.invoke_agent", "gen_ai.chat", "gen_ai.execute_tool"] {
        let line =
            log.lines().find(|line| line.starts_with(&format!("INFO pintle_agent::driver::trace {span} ")));
        assert!(line.is_some_and(|line| line.contains("gen_ai.conversation.id=")), "{span} in {log}");
    }
    assert!(log.contains("gen_ai.tool.name=\"shell\""), "{log}");
    assert!(!log.contains(KEY), "{log}");
    assert!(!log.contains("unheard-of"), "{log}");
}
