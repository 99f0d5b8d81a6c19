//! Reads both command lines, and refuses what would restrict.

use pintle_compat::claude::{IncomingLine, StreamOptions};
use pintle_compat::codex::ExecOptions;

fn main() {
    let parsed =
        ExecOptions::parse(&["exec", "--json", "--model", "m", "resume", "some-id"]).expect("a command line");
    assert!(parsed.options.json && parsed.options.resume.is_some());
    let refused = StreamOptions::parse(&["--tool-policy", "strict"]).expect_err("an unknown restriction");
    assert!(refused.to_string().contains("may restrict"), "{refused}");
    let line = r#"{"type": "user", "message": {"role": "user", "content": "Hello."}}"#;
    assert!(matches!(IncomingLine::parse(line), Ok(IncomingLine::User(user)) if user.message.text == "Hello."));
}
