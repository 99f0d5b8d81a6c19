//! Wrong calls of editing tools as models make them, replayed in whole sessions: the error must contain what is needed
//! to correct the call. Each snapshot is the result in the next request.

mod edit;
mod patch;
mod path;

use pintle_testkit::{Call, Dialect, Script, Turn};
use pintle_tools::gate::ReadBeforeWrite;
use tempfile::TempDir;

use crate::test_profile::TestProfile;

/// `edit_file`, with the arguments of the specification.
const SPEC: TestProfile = TestProfile::spec(Dialect::AnthropicMessages);

/// `Edit`.
const CLAUDE_CODE: TestProfile = TestProfile::native(Dialect::AnthropicMessages);

/// `edit_file`, with the arguments of Gemini.
const GEMINI: TestProfile = TestProfile::spec(Dialect::Gemini);

/// `replace`.
const GEMINI_CLI: TestProfile = TestProfile::native(Dialect::Gemini);

/// `edit_file`, for models behind compatible servers.
const LOCAL: TestProfile = TestProfile::spec(Dialect::ChatCompletions);

/// `apply_patch`, with the patch in a JSON object.
const OPENAI: TestProfile = TestProfile::spec(Dialect::OpenAiResponses);

/// `apply_patch`, with the patch as free-form text.
const CODEX: TestProfile = TestProfile::native(Dialect::OpenAiResponses);

const CART: &str = r#""""A shopping cart."""


class Cart:
    def __init__(self):
        self.items = []
        self.discount = 0

    def add(self, name, price, count=1):
        if count < 1:
            raise ValueError("count must be at least 1")
        self.items.append((name, price, count))

    def total(self):
        total = 0
        for name, price, count in self.items:
            total += price * count
        return total

    def total_with_tax(self, rate):
        total = 0
        for name, price, count in self.items:
            total += price * count
        return total * (1 + rate)
"#;

/// Indented with tabs, as usual in its language.
const SERVER: &str = "package main\n\nimport \"fmt\"\n\nconst (\n\tport\t= 8080\n\thost\t= \"localhost\"\n)\n\nfunc main() {\n\tfor i := 0; i < 3; i++ {\n\t\tfmt.Println(\"listening\", host, port, i)\n\t}\n}\n";

const SETTINGS: &str = "[server]\r\nhost = localhost\r\nport = 8080\r\n";

/// Creates a directory with the three files.
fn project() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("src")).unwrap();
    for (name, content) in [("src/cart.py", CART), ("src/server.go", SERVER), ("settings.ini", SETTINGS)] {
        std::fs::write(directory.path().join(name), content).unwrap();
    }
    directory
}

/// Returns the result of a call as the model sees it.
async fn answer(profile_under_test: TestProfile, call: Call) -> String {
    let directory = project();
    last_answer(profile_under_test, &directory, [call], false).await
}

/// Returns the result of the last of these calls, each of which is a separate turn.
async fn last_answer(
    profile_under_test: TestProfile,
    directory: &TempDir,
    calls: impl IntoIterator<Item = Call>,
    read_before_write: bool,
) -> String {
    let turns = calls.into_iter().map(|call| Turn::new().with_call(call));
    let script = turns.fold(Script::new("wrong call"), Script::with_turn).with_turn(Turn::text("I see."));
    let played = profile_under_test.play(directory.path(), script, |builder, env| {
        if read_before_write { builder.gate(ReadBeforeWrite::new(env)) } else { builder }
    });
    let mut results = played.await.results();
    let answer = results.pop().expect("each call has a result");
    answer.replace(&directory.path().display().to_string(), "DIR")
}
