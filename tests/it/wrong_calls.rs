//! Wrong calls of editing tools, as models make them, replayed in whole sessions: what the model reads then names what it
//! takes to mend the call. Each answer is here as it stands in the next request.

mod edit;
mod patch;
mod path;

use pintle_testkit::{Call, Dialect, Script, Turn};
use pintle_tools::gate::ReadBeforeWrite;
use tempfile::TempDir;

use crate::kit::Kit;

/// `edit_file`, with the arguments of the specification.
const SPEC: Kit = Kit::spec(Dialect::AnthropicMessages);

/// `Edit`.
const CLAUDE_CODE: Kit = Kit::native(Dialect::AnthropicMessages);

/// `edit_file`, with those of Gemini's form.
const GEMINI: Kit = Kit::spec(Dialect::Gemini);

/// `replace`.
const GEMINI_CLI: Kit = Kit::native(Dialect::Gemini);

/// `edit_file`, for models behind compatible servers.
const LOCAL: Kit = Kit::spec(Dialect::ChatCompletions);

/// `apply_patch`, with the patch in a JSON object.
const OPENAI: Kit = Kit::spec(Dialect::OpenAiResponses);

/// `apply_patch`, with the patch as free text.
const CODEX: Kit = Kit::native(Dialect::OpenAiResponses);

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

/// With tabs, as its language has them.
const SERVER: &str = "package main\n\nimport \"fmt\"\n\nconst (\n\tport\t= 8080\n\thost\t= \"localhost\"\n)\n\nfunc main() {\n\tfor i := 0; i < 3; i++ {\n\t\tfmt.Println(\"listening\", host, port, i)\n\t}\n}\n";

const SETTINGS: &str = "[server]\r\nhost = localhost\r\nport = 8080\r\n";

/// A folder with the three files.
fn project() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("src")).unwrap();
    for (name, content) in [("src/cart.py", CART), ("src/server.go", SERVER), ("settings.ini", SETTINGS)] {
        std::fs::write(folder.path().join(name), content).unwrap();
    }
    folder
}

/// What the model reads after its call.
async fn answer(kit: Kit, call: Call) -> String {
    let folder = project();
    last_answer(kit, &folder, [call], false).await
}

/// What the model reads after the last of these calls, each of which is a turn of its own.
async fn last_answer(
    kit: Kit,
    folder: &TempDir,
    calls: impl IntoIterator<Item = Call>,
    read_before_write: bool,
) -> String {
    let turns = calls.into_iter().map(|call| Turn::new().with_call(call));
    let script = turns.fold(Script::new("wrong call"), Script::with_turn).with_turn(Turn::text("I see."));
    let played = kit.play(folder.path(), script, |builder, env| {
        if read_before_write { builder.gate(ReadBeforeWrite::new(env)) } else { builder }
    });
    let mut results = played.await.results();
    let answer = results.pop().expect("each call has a result");
    answer.replace(&folder.path().display().to_string(), "DIR")
}
