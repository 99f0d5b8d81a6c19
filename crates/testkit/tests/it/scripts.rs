//! The scripts of the repository.

use pintle_testkit::{CallInput, Dialect, Script, ScriptedServer, ServerOptions};

use crate::client::post;
use crate::conversation::Conversation;

const DEMO: &str = include_str!("../../../cli/demo/script.toml");

/// Returns shortened results of the real tools.
fn result(tool: &str, arguments: &str, tests_run: &mut usize) -> String {
    match tool {
        "glob" => "/demo/src/outline.rs\n/demo/src/symbol.rs\n/demo/src/parse.rs".to_owned(),
        "grep" => "src/symbol.rs:47:    pub fn may_precede(self, larger: Self) -> bool {".to_owned(),
        "edit_file" => "Replaced 1 occurrence.".to_owned(),
        "apply_patch" => "M src/symbol.rs".to_owned(),
        "shell" => {
            *tests_run += 1;
            match tests_run {
                1 => "test outline::tests::chapters_come_in_order ... FAILED\n\
                      test result: FAILED. 8 passed; 1 failed; 0 ignored"
                    .to_owned(),
                _ => "test result: ok. 9 passed; 0 failed; 0 ignored".to_owned(),
            }
        }
        "read_file" | "read_many_files" => {
            let files = [
                ("Cargo.toml", include_str!("../../../cli/demo/roman/manifest.toml")),
                ("src/outline.rs", include_str!("../../../cli/demo/roman/src/outline.rs")),
                ("src/parse.rs", include_str!("../../../cli/demo/roman/src/parse.rs")),
                ("src/symbol.rs", include_str!("../../../cli/demo/roman/src/symbol.rs")),
            ];
            files.into_iter().filter(|(path, _)| arguments.contains(path)).map(|(_, text)| text).collect()
        }
        other => panic!("the demo calls {other}"),
    }
}

#[tokio::test]
async fn demo_script_completes_in_every_dialect() {
    let mut script = Script::parse(DEMO).unwrap();
    // The pauses are for human viewers.
    script.turns.iter_mut().for_each(|turn| turn.pause_ms = 0);
    let server = ScriptedServer::start(script, ServerOptions::new()).await.unwrap();
    for dialect in Dialect::ALL {
        let mut conversation = Conversation::new(dialect, "fix the failing test");
        let mut tests_run = 0;
        while !server.finished(dialect) {
            let response = post(&server, dialect, &conversation.path(), &conversation.body()).await;
            let output = conversation.read(&response);
            let results: Vec<String> = output
                .calls
                .iter()
                .map(|(_, tool, arguments)| result(tool, arguments, &mut tests_run))
                .collect();
            let results: Vec<&str> = results.iter().map(String::as_str).collect();
            conversation.continue_with(&output, &results);
        }
        assert_eq!(tests_run, 2, "{dialect}");
    }
}

/// The edit of the demo must match the file that it edits.
#[test]
fn demo_script_edits_existing_text() {
    let symbol = include_str!("../../../cli/demo/roman/src/symbol.rs");
    let script = Script::parse(DEMO).unwrap();
    let calls = || script.turns.iter().flat_map(|turn| &turn.calls);
    let arguments = |tool: &str, name: &str| -> String {
        let call = calls().find(|call| call.tool == tool).unwrap();
        let CallInput::Arguments(arguments) = &call.input else {
            panic!("{call:?}");
        };
        arguments[name].as_str().unwrap().to_owned()
    };
    assert_eq!(symbol.matches(&arguments("edit_file", "old_string")).count(), 1);
    for line in arguments("apply_patch", "patch").lines() {
        if let Some(old) = line.strip_prefix([' ', '-']) {
            assert!(symbol.lines().any(|found| found == old), "{line}");
        }
    }
}
