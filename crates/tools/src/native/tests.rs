use std::sync::Arc;
use std::time::Duration;

use pintle_env::MemoryEnvironment;
use pintle_llm::{Fingerprint, ToolCall, ToolDefinition, ToolResult};
use serde_json::{Value, json};

use super::*;
use crate::builtin;
use crate::context::{CommandTimeouts, ToolContext};
use crate::error::ToolErrorKind;
use crate::kind::ToolKind;
use crate::pipeline::{JudgedCall, execute, prepare};
use crate::registry::ToolRegistry;
use crate::tests::harness::Harness;
use crate::tool::{ChangeKind, DynTool, Effect};
use crate::truncate::TruncationLimits;

mod anthropic_set;
mod gemini_set;
mod openai_set;
mod questions;
mod web;

fn sets() -> [(&'static str, Vec<Box<dyn DynTool>>); 3] {
    let (web, search) = (Arc::new(web::FakeWeb), Arc::new(web::FakeWeb));
    [
        (
            "anthropic",
            vec![
                Box::new(anthropic::Bash::new()),
                Box::new(anthropic::Glob::new()),
                Box::new(anthropic::Grep::new()),
                Box::new(anthropic::Read::new()),
                Box::new(anthropic::Edit::new()),
                Box::new(anthropic::Write::new()),
                Box::new(anthropic::TodoWrite::new()),
                Box::new(anthropic::NotebookEdit::new()),
                Box::new(anthropic::TaskOutput::new()),
                Box::new(anthropic::TaskStop::new()),
                Box::new(anthropic::WebFetch::new(web.clone())),
                Box::new(anthropic::WebSearch::new(search.clone())),
                Box::new(anthropic::AskUserQuestion::new()),
            ],
        ),
        (
            "gemini",
            vec![
                Box::new(gemini::ListDirectory::new()),
                Box::new(gemini::ReadFile::new()),
                Box::new(gemini::SearchFileContent::new()),
                Box::new(gemini::Glob::new()),
                Box::new(gemini::Replace::new()),
                Box::new(gemini::WriteFile::new()),
                Box::new(gemini::RunShellCommand::new()),
                Box::new(gemini::WebFetch::new(web)),
                Box::new(gemini::GoogleWebSearch::new(search)),
            ],
        ),
        (
            "openai",
            vec![
                Box::new(openai::ExecCommand::new()),
                Box::new(openai::WriteStdin::new()),
                Box::new(openai::ApplyPatch::new()),
                Box::new(openai::ViewImage::new()),
                Box::new(openai::RequestUserInput::new()),
            ],
        ),
    ]
}

/// Formats a parameter with its type, values and default; a star marks a required one.
fn parameter(name: &str, schema: &Value, required: &[Value]) -> String {
    assert_ne!(schema.get("description"), Some(&json!("")), "{name}");
    let star = if required.contains(&json!(name)) { "*" } else { "" };
    let values = schema.get("enum").map_or_else(String::new, Value::to_string);
    let default = schema.get("default").map_or_else(String::new, |default| format!(" = {default}"));
    format!("{name}{star}: {}{values}{default}", schema["type"].as_str().unwrap())
}

#[test]
fn names_and_parameters_match_the_reference_agents() {
    let mut listed = Vec::new();
    for (family, tools) in sets() {
        listed.push(format!("# {family}"));
        for tool in tools {
            let definition = tool.definition().unwrap();
            let required = definition.parameters["required"].as_array().cloned().unwrap_or_default();
            let properties = definition.parameters["properties"].as_object().unwrap();
            let parameters: Vec<String> =
                properties.iter().map(|(name, schema)| parameter(name, schema, &required)).collect();
            assert_eq!(definition.parameters["additionalProperties"], false, "{}", definition.name);
            assert!(definition.description.len() > 20 && definition.description.len() < 1500);
            let kind = tool.canonical_kind().unwrap();
            listed.push(format!("{} [{kind}] ({})", definition.name, parameters.join(", ")));
        }
    }
    insta::assert_snapshot!(listed.join("\n"), @r#"
    # anthropic
    Bash [shell] (command*: string, description: string, run_in_background: boolean, timeout: number)
    Glob [glob] (path: string, pattern*: string)
    Grep [grep] (-A: number, -B: number, -C: number, -i: boolean, -n: boolean, context: number, glob: string, head_limit: number, offset: number, output_mode: string["content","files_with_matches","count"], path: string, pattern*: string, type: string)
    Read [read_file] (file_path*: string, limit: number, offset: number)
    Edit [edit_file] (file_path*: string, new_string*: string, old_string*: string, replace_all: boolean = false)
    Write [write_file] (content*: string, file_path*: string)
    TodoWrite [TodoWrite] (todos*: array)
    NotebookEdit [edit_file] (cell_id: string, cell_type: string["code","markdown"], edit_mode: string["replace","insert","delete"], new_source*: string, notebook_path*: string)
    TaskOutput [shell] (block: boolean = true, task_id*: string, timeout: number = 30000.0)
    TaskStop [shell] (task_id*: string)
    WebFetch [web_fetch] (prompt*: string, url*: string)
    WebSearch [web_search] (allowed_domains: array, blocked_domains: array, query*: string)
    AskUserQuestion [AskUserQuestion] (questions*: array)
    # gemini
    list_directory [list_dir] (dir_path*: string)
    read_file [read_file] (file_path*: string, limit: number, offset: number)
    search_file_content [grep] (dir_path: string, include: string, pattern*: string)
    glob [glob] (dir_path: string, pattern*: string)
    replace [edit_file] (expected_replacements: number, file_path*: string, instruction*: string, new_string*: string, old_string*: string)
    write_file [write_file] (content*: string, file_path*: string)
    run_shell_command [shell] (command*: string, description: string, dir_path: string)
    web_fetch [web_fetch] (prompt*: string)
    google_web_search [web_search] (query*: string)
    # openai
    exec_command [shell] (cmd*: string, max_output_tokens: number, tty: boolean, workdir: string, yield_time_ms: number)
    write_stdin [shell] (chars: string, max_output_tokens: number, session_id*: number, yield_time_ms: number)
    apply_patch [apply_patch] (input*: string)
    view_image [read_file] (path*: string)
    request_user_input [request_user_input] (questions*: array)
    "#);
}

#[test]
fn every_kind_has_default_limits() {
    for (family, tools) in sets() {
        for tool in tools {
            let name = tool.definition().unwrap().name;
            let kind = tool.canonical_kind().unwrap();
            assert!(
                name == kind
                    || ["web_fetch", "web_search"].contains(&kind.as_str())
                    || ToolKind::from_name(&kind).is_some(),
                "{family}: {name} is {kind}"
            );
        }
    }
}

#[test]
fn definitions_are_plain_schemas() {
    let edit =
        serde_json::to_string_pretty(&anthropic::Edit::new().definition().unwrap().parameters).unwrap();
    insta::assert_snapshot!(edit, @r#"
    {
      "additionalProperties": false,
      "properties": {
        "file_path": {
          "type": "string"
        },
        "new_string": {
          "type": "string"
        },
        "old_string": {
          "type": "string"
        },
        "replace_all": {
          "default": false,
          "type": "boolean"
        }
      },
      "required": [
        "file_path",
        "old_string",
        "new_string"
      ],
      "type": "object"
    }
    "#);
    let todo = serde_json::to_string(&anthropic::TodoWrite::new().definition().unwrap().parameters).unwrap();
    insta::assert_snapshot!(todo, @r#"{"additionalProperties":false,"properties":{"todos":{"items":{"properties":{"activeForm":{"description":"Such as `Running the tests`.","minLength":1,"type":"string"},"content":{"minLength":1,"type":"string"},"status":{"enum":["pending","in_progress","completed"],"type":"string"}},"required":["content","status","activeForm"],"type":"object"},"type":"array"}},"required":["todos"],"type":"object"}"#);
}

fn text(result: &ToolResult) -> String {
    result.text()
}

/// Gates judge the paths that a call names, so a tool must not hide any.
#[test]
fn every_tool_names_its_files() {
    let file = json!({"file_path": "src/f", "old_string": "a", "new_string": "b", "instruction": "i", "content": "c"});
    let notebook = json!({"notebook_path": "src/f", "new_source": ""});
    let search = json!({"pattern": "*.rs", "path": "src/f", "dir_path": "src/f"});
    let patch = json!({"input": "*** Begin Patch\n*** Delete File: src/f\n*** End Patch"});
    let cases: [(&dyn DynTool, &Value); 14] = [
        (&anthropic::Read::new(), &file),
        (&anthropic::Edit::new(), &file),
        (&anthropic::Write::new(), &file),
        (&anthropic::NotebookEdit::new(), &notebook),
        (&anthropic::Grep::new(), &search),
        (&anthropic::Glob::new(), &search),
        (&gemini::ReadFile::new(), &file),
        (&gemini::Replace::new(), &file),
        (&gemini::WriteFile::new(), &file),
        (&gemini::SearchFileContent::new(), &search),
        (&gemini::Glob::new(), &search),
        (&gemini::ListDirectory::new(), &search),
        (&openai::ApplyPatch::new(), &patch),
        (&openai::ViewImage::new(), &json!({"path": "src/f"})),
    ];
    for (tool, arguments) in cases {
        let name = tool.definition().unwrap().name;
        let input = tool.parse(arguments).unwrap();
        let (named, other) = match tool.effect() {
            Effect::Write => (input.writes, input.reads),
            Effect::Read | Effect::Execute | Effect::Network => (input.reads, input.writes),
        };
        // An edit shows lines of its file if it fails.
        let is_edit =
            tool.effect() == Effect::Write && tool.canonical_kind().as_deref() != Some("write_file");
        let also = if is_edit { vec!["src/f".into()] } else { Vec::new() };
        assert_eq!((named, other), (vec!["src/f".into()], also), "{name}");
        assert_eq!(tool.can_dry_run(), tool.effect() == Effect::Write, "{name}");
    }
}

#[test]
fn searches_and_listings_declare_how_much_they_read() {
    use crate::ReadExtent::{self, Everything, Names, Searched};
    use crate::builtin;
    let search = json!({"pattern": "x"});
    let gemini_search = json!({"pattern": "x", "dir_path": "src"});
    let cases: [(&dyn DynTool, Value, ReadExtent); 12] = [
        (&builtin::Grep::new(), search.clone(), Searched),
        (&builtin::Glob::new(), search.clone(), Searched),
        (&builtin::ReadManyFiles::new(), json!({"paths": ["*"]}), Searched),
        (&builtin::ListDir::new(), json!({}), Names { levels: 1 }),
        (&builtin::ListDir::new(), json!({"depth": 3}), Names { levels: 3 }),
        (&anthropic::Grep::new(), search.clone(), Searched),
        (&anthropic::Glob::new(), search, Searched),
        (&gemini::Glob::new(), gemini_search.clone(), Searched),
        (&gemini::SearchFileContent::new(), gemini_search, Searched),
        (&gemini::ListDirectory::new(), json!({"dir_path": "src"}), Names { levels: 1 }),
        (&builtin::ReadFile::new(), json!({"file_path": "a"}), Everything),
        (&anthropic::Read::new(), json!({"file_path": "a"}), Everything),
    ];
    for (tool, arguments, expected) in cases {
        let extent = tool.parse(&arguments).unwrap().read_extent;
        assert_eq!(extent, expected, "{} {arguments}", tool.definition().unwrap().name);
        assert_eq!(extent.is_listing(), extent == Names { levels: 1 });
    }
}

/// Whatever the model reads, the application gets the exceeded time-out.
#[tokio::test]
async fn a_timeout_is_reported_with_its_limit() {
    let harness = Harness::new();
    let limit = Duration::from_millis(200);
    let timeouts = CommandTimeouts { max: limit, ..CommandTimeouts::default() };
    let cx = harness.context().with_timeouts(timeouts);
    let slow = r#"{"command": "exec sleep 60"}"#;
    let calls = [
        (harness.execute_in(&cx, builtin::Shell::new(), slow).await, true),
        (harness.execute_in(&cx, anthropic::Bash::new(), slow).await, true),
        (harness.execute_in(&cx, gemini::RunShellCommand::new(), slow).await, false),
    ];
    for (execution, is_error) in calls {
        assert_eq!((execution.error, execution.timed_out), (Some(ToolErrorKind::TimedOut), Some(limit)));
        assert_eq!(execution.exit_code, None, "the command was killed");
        assert_eq!(execution.result.is_error, is_error, "{execution:?}");
    }
}

#[tokio::test]
async fn an_exit_code_is_reported_and_no_failure() {
    let harness = Harness::new();
    let timeouts = CommandTimeouts { max: Duration::from_secs(30), ..CommandTimeouts::default() };
    let cx = harness.context().with_timeouts(timeouts);
    for code in [0, 3] {
        let command = json!({"command": format!("exit {code}")}).to_string();
        let codex = json!({"cmd": format!("exit {code}"), "yield_time_ms": 30_000}).to_string();
        let calls = [
            harness.execute_in(&cx, builtin::Shell::new(), &command).await,
            harness.execute_in(&cx, anthropic::Bash::new(), &command).await,
            harness.execute_in(&cx, gemini::RunShellCommand::new(), &command).await,
            harness.execute_in(&cx, openai::ExecCommand::new(), &codex).await,
        ];
        for execution in calls {
            assert_eq!((execution.error, execution.exit_code), (None, Some(code)), "{execution:?}");
            assert_eq!((execution.result.is_error, execution.timed_out), (false, None), "{execution:?}");
        }
    }
}

#[tokio::test]
async fn the_model_reads_the_last_progress_frame_and_the_application_all() {
    let command = "for i in 1 2 3; do printf '\\rstep %d/3' $i; done; echo; echo done";
    let harness = Harness::new();
    let arguments = json!({"command": command}).to_string();
    let of_openai = json!({"cmd": command}).to_string();
    let executions = [
        harness.execute(builtin::Shell::new(), &arguments).await,
        harness.execute(anthropic::Bash::new(), &arguments).await,
        harness.execute(gemini::RunShellCommand::new(), &arguments).await,
        harness.execute(openai::ExecCommand::new(), &of_openai).await,
    ];
    for execution in executions {
        let (read, all) = (execution.result.text(), execution.output.to_text_lossy().unwrap());
        assert!(read.contains("step 3/3\ndone\n") && !read.contains("step 1/3"), "{read}");
        assert!(all.contains("\rstep 1/3\rstep 2/3\rstep 3/3\ndone\n"), "{all}");
    }
}

/// The texts are in `prompts/`, by toolset. A change shows here as another size and hash.
#[test]
fn descriptions_match_their_reviewed_hashes() {
    let mut shown = Vec::new();
    for (family, tools) in sets() {
        for tool in tools {
            let ToolDefinition { name, description, .. } = tool.definition().unwrap();
            let hash = Fingerprint::from_bytes(description.as_bytes());
            shown.push(format!("{family}, {name}: {} bytes, {hash}", description.len()));
        }
    }
    insta::assert_snapshot!(shown.join("\n"), @"
    anthropic, Bash: 448 bytes, 795ec657aa45bf90933656366859ee1c
    anthropic, Glob: 134 bytes, c3fcd40d7ffdda8f93aa3c806dbbc734
    anthropic, Grep: 267 bytes, 3e01dd821908d610f5cdd6bd7ffe14a1
    anthropic, Read: 222 bytes, 0cea58e62512571e7c02cf515003c585
    anthropic, Edit: 287 bytes, 35fd836757d66e99f94e731ba2da7adb
    anthropic, Write: 124 bytes, 8d36caf6f1179af808b3eecb127b38e6
    anthropic, TodoWrite: 211 bytes, e2f3d9c6c89576842a3bfa4b77aa09ae
    anthropic, NotebookEdit: 146 bytes, 9f66fdaf0469925ca017855228b952f5
    anthropic, TaskOutput: 161 bytes, 7e40189fb53ec7552c4f557b7459cf3c
    anthropic, TaskStop: 56 bytes, e6fe3174fc430923d48a6f6e395c48e7
    anthropic, WebFetch: 133 bytes, 28d544d85e47c1b9b8d5307eef59fc9f
    anthropic, WebSearch: 178 bytes, 72b7319be7b89def4faaa03c5941c18e
    anthropic, AskUserQuestion: 214 bytes, 9d0576bc73ea493cb65df20ad7671f29
    gemini, list_directory: 39 bytes, 69affb08ed84780f15682ed71b787b9d
    gemini, read_file: 169 bytes, cbd1e54eb6fa06d36ac574c5dd689e57
    gemini, search_file_content: 159 bytes, 1fe5bc47d50eb556bf01f856b52ac998
    gemini, glob: 135 bytes, cb7820e374f838755970234c8bfa3606
    gemini, replace: 317 bytes, 8e910efa9274f3a6e64b63574cf4dca9
    gemini, write_file: 151 bytes, f15c801ffe1a4522ab9fc8a3a9ba152d
    gemini, run_shell_command: 239 bytes, 379fd2f9a4f88dcf93b279ade3ae2c58
    gemini, web_fetch: 177 bytes, bab0ba0ac4a85913398dee28502231e6
    gemini, google_web_search: 126 bytes, 5633ec6b0a0e4659bd51578c207b815e
    openai, exec_command: 370 bytes, 17b799779aaffdfb9d143cfe0f0003bc
    openai, write_stdin: 100 bytes, 7befd51537290c9c8a1a80df2fd84081
    openai, apply_patch: 160 bytes, 55ceea0bfab4ba92381930ab0fe450f2
    openai, view_image: 91 bytes, 00f28908823b80c0f6a7c70f44ffd151
    openai, request_user_input: 147 bytes, d0e357adebee8b072b5bc99cf19d970c
    ");
}

/// Returns the tools of a toolset; without one, the tools of the specification.
fn registry_of(family: &str) -> ToolRegistry {
    let mut registry = ToolRegistry::new();
    for (_, tools) in sets().into_iter().filter(|(name, _)| *name == family) {
        for tool in tools {
            registry.register_shared(Arc::from(tool)).unwrap();
        }
    }
    if family == "spec" {
        builtin::register_core(&mut registry).unwrap();
        registry.register(builtin::ApplyPatch::new()).unwrap();
        registry.register(builtin::ListDir::new()).unwrap();
        registry.register(builtin::ReadManyFiles::new()).unwrap();
    }
    registry
}

#[tokio::test]
async fn a_tilde_is_the_home_directory_for_every_tool() {
    let patch = "*** Begin Patch\n*** Add File: ~/d/new.txt\n+new\n*** End Patch\n";
    let change =
        json!({"file_path": "~/d/a.txt", "old_string": "one", "new_string": "two", "instruction": "Count."});
    let write = json!({"file_path": "~/d/new.txt", "content": "new"});
    let grep = json!({"pattern": "one", "path": "~/d"});
    let cases = [
        ("spec", "read_file", json!({"file_path": "~/d/a.txt"})),
        ("spec", "write_file", write.clone()),
        ("spec", "edit_file", json!({"file_path": "~/d/a.txt", "old_string": "one", "new_string": "two"})),
        ("spec", "apply_patch", json!({"patch": patch})),
        ("spec", "grep", grep.clone()),
        ("spec", "glob", json!({"pattern": "~/d/*.txt"})),
        ("spec", "glob", json!({"pattern": "*.txt", "path": "~/d"})),
        ("spec", "list_dir", json!({"path": "~/d"})),
        ("spec", "read_many_files", json!({"paths": ["~/d/a.txt", "~/d/*.txt"]})),
        ("anthropic", "Read", json!({"file_path": "~/d/a.txt"})),
        ("anthropic", "Write", write.clone()),
        ("anthropic", "Edit", json!({"file_path": "~/d/a.txt", "old_string": "one", "new_string": "two"})),
        ("anthropic", "Grep", grep),
        ("anthropic", "Glob", json!({"pattern": "~/d/*.txt"})),
        ("gemini", "read_file", json!({"file_path": "~/d/a.txt"})),
        ("gemini", "write_file", write),
        ("gemini", "replace", change),
        ("gemini", "search_file_content", json!({"pattern": "one", "dir_path": "~/d"})),
        ("gemini", "glob", json!({"pattern": "*.txt", "dir_path": "~/d"})),
        ("gemini", "list_directory", json!({"dir_path": "~/d"})),
        ("openai", "apply_patch", json!({"input": patch})),
    ];
    for (family, name, arguments) in cases {
        let env = MemoryEnvironment::new("/w").with_home("/users/me").with_file("/users/me/d/a.txt", "one\n");
        let call = ToolCall::from_raw("1", name, arguments.to_string());
        let prepared = match prepare(&registry_of(family), &[], &env, &call).await {
            JudgedCall::Ready { call, .. } => call,
            other @ (JudgedCall::Ask { .. } | JudgedCall::Refused { .. }) => panic!("{name}: {other:?}"),
        };
        let mut judged = prepared.reads().iter().chain(prepared.writes());
        assert!(judged.all(|path| path.starts_with("/users/me/d")), "{family} {name}: {prepared:?}");
        let cx = ToolContext::new(Arc::new(env.clone()), "1");
        let result = execute(&prepared, &cx, &TruncationLimits::new()).await.result;
        assert!(!result.is_error, "{family} {name}: {}", result.text());
        if !prepared.writes().is_empty() {
            assert!(!env.files().values().all(|content| content == b"one\n"), "{family} {name} writes");
        } else {
            let found = ["one", "a.txt"].iter().any(|text| result.text().contains(text));
            assert!(found, "{family} {name}: {}", result.text());
        }
        assert!(env.files().keys().all(|path| path.starts_with("/users/me/d")), "{family} {name}");
    }
}

#[tokio::test]
async fn a_tilde_without_a_home_directory_is_refused() {
    let env = MemoryEnvironment::new("/w");
    for (path, is_refused) in [("~/a.txt", true), ("~", true), ("./~/a.txt", false), ("~a.txt", false)] {
        let arguments = json!({"file_path": path, "content": "x"}).to_string();
        let call = ToolCall::from_raw("1", "write_file", arguments);
        match prepare(&registry_of("spec"), &[], &env, &call).await {
            JudgedCall::Refused { error, .. } => {
                assert!(
                    is_refused && error.for_model().contains("home directory is not known"),
                    "{path}: {error:?}"
                );
            }
            JudgedCall::Ready { .. } => assert!(!is_refused, "{path}"),
            asks @ JudgedCall::Ask { .. } => panic!("{path}: {asks:?}"),
        }
    }
}
