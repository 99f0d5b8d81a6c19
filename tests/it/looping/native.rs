//! The native toolsets: each model family does the tasks of the specification with its own tools.

use std::sync::Arc;

use async_trait::async_trait;
use pintle_agent::{EventKind, OutcomeStatus, SearchBy, Toolset, ToolsetOptions};
use pintle_testkit::Dialect;
use pintle_tools::builtin::{
    FetchRequest, SearchHit, SearchQuery, SearchResults, WebClient, WebError, WebPage, WebSearchClient,
};

use crate::harness::{Harness, in_each_dialect, outputs, profile};

in_each_dialect![
    native_background_command,
    native_creation,
    native_question,
    native_web,
    native_read_then_edit,
    native_shell_command,
    native_grep_and_glob,
    native_truncation,
];

/// Starts a session with the tools that the model was trained on.
async fn native(dialect: Dialect, turns: &str) -> Harness {
    let harness = Harness::new(dialect, turns).await;
    let profile = profile(dialect).with_toolset(Toolset::Native);
    harness.session.handle().set_profile(profile).unwrap();
    harness
}

/// Like [`native`], with all optional tools.
async fn native_with_options(dialect: Dialect, turns: &str) -> Harness {
    let search = SearchBy::Client(Arc::new(FakeWeb));
    let options = ToolsetOptions::new().with_web(Arc::new(FakeWeb)).with_search(search);
    let options = options.with_questions(true).with_plan(true).with_background(true);
    let harness = Harness::new(dialect, turns).await;
    let profile = profile(dialect).with_toolset_options(Toolset::Native, &options);
    harness.session.handle().set_profile(profile).unwrap();
    harness
}

/// A web client with a single page.
#[derive(Debug)]
struct FakeWeb;

#[async_trait]
impl WebClient for FakeWeb {
    async fn fetch(&self, request: FetchRequest) -> Result<WebPage, WebError> {
        Ok(WebPage::new(request.url, 200, "text/html", "# Pintles\n\nA pin."))
    }
}

#[async_trait]
impl WebSearchClient for FakeWeb {
    async fn search(&self, _query: SearchQuery) -> Result<SearchResults, WebError> {
        Ok(SearchResults::new(vec![SearchHit::new("Pintles", "https://a.example/", "On pins.")]))
    }
}

async fn native_web(dialect: Dialect) {
    let page = "arguments = { url = \"https://a.example/\", prompt = \"What is a pintle?\" }";
    let query = "arguments = { query = \"pintles\" }";
    let search = match dialect {
        Dialect::OpenAiResponses | Dialect::ChatCompletions => call(dialect, "web_search", query),
        Dialect::AnthropicMessages => call(dialect, "WebSearch", query),
        Dialect::Gemini => call(dialect, "google_web_search", query),
    };
    let fetch = match dialect {
        // codex has no tool for pages.
        Dialect::OpenAiResponses => None,
        Dialect::AnthropicMessages => Some(call(dialect, "WebFetch", page)),
        Dialect::Gemini => {
            Some(call(dialect, "web_fetch", "arguments = { prompt = \"Sum up https://a.example/.\" }"))
        }
        Dialect::ChatCompletions => {
            Some(call(dialect, "web_fetch", "arguments = { url = \"https://a.example/\" }"))
        }
    };
    let found =
        "[[turn.expect]]\ncall = 0\ncontains = '''1. Pintles\n   https://a.example/\n   On pins.'''\n";
    let turns = match fetch {
        Some(fetch) => {
            let page = "https://a.example/ (status 200, text/html)\n\n# Pintles";
            format!("{search}{fetch}{found}{}", done(dialect, &[page]))
        }
        None => format!("{search}{}{found}", done(dialect, &[])),
    };
    let harness = native_with_options(dialect, &turns).await;
    let (_, outcome) = harness.run("What is a pintle?").await;
    assert_eq!(outcome.status, OutcomeStatus::Completed);
    harness.finish().await;
}

async fn native_question(dialect: Dialect) {
    let options = "options = [{ label = \"Yes\", description = \"Now.\" }, { label = \"No\", description = \"Never.\" }]";
    let asked = match dialect {
        Dialect::OpenAiResponses => call(
            dialect,
            "request_user_input",
            &format!(
                "arguments = {{ questions = [{{ id = \"go\", header = \"Go\", question = \"Go on?\", {options} }}] }}"
            ),
        ),
        Dialect::AnthropicMessages => call(
            dialect,
            "AskUserQuestion",
            &format!(
                "arguments = {{ questions = [{{ header = \"Go\", question = \"Go on?\", {options} }}] }}"
            ),
        ),
        Dialect::Gemini | Dialect::ChatCompletions => call(
            dialect,
            "ask_user",
            "arguments = { question = \"Go on?\", options = [\"Yes: Now.\", \"No: Never.\"] }",
        ),
    };
    let answered =
        format!("{}text = \"Done.\"\n[[turn.expect]]\nrequest_contains = \"Yes, please.\"\n", turn(dialect));
    let harness = native_with_options(dialect, &format!("{asked}{answered}")).await;
    let (_, outcome) = harness.run("Do it").await;
    assert_eq!(outcome.status, OutcomeStatus::AwaitingInput);
    assert_eq!(outcome.text, "Go on?\n1. Yes: Now.\n2. No: Never.");
    let (_, outcome) = harness.run("Yes, please.").await;
    assert_eq!((outcome.status, outcome.text.as_str()), (OutcomeStatus::Completed, "Done."));
    harness.finish().await;
}

/// A later call reads the output of a background command, and its output is streamed while that call waits.
async fn native_background_command(dialect: Dialect) {
    let line = "echo up; read word < pipe; echo got $word";
    let (start, read, told) = match dialect {
        Dialect::OpenAiResponses => (
            call(
                dialect,
                "exec_command",
                &format!("arguments = {{ cmd = \"{line}\", yield_time_ms = 250 }}"),
            ),
            call(dialect, "write_stdin", "arguments = { session_id = 1, yield_time_ms = 60000 }"),
            ["Process exited with code 0\n", "got this"],
        ),
        Dialect::AnthropicMessages => (
            call(
                dialect,
                "Bash",
                &format!("arguments = {{ command = \"{line}\", run_in_background = true }}"),
            ),
            call(dialect, "TaskOutput", "arguments = { task_id = \"1\" }"),
            ["<status>completed</status>\n<exit_code>0</exit_code>", "got this"],
        ),
        Dialect::Gemini | Dialect::ChatCompletions => (
            call(dialect, "shell_start", &format!("arguments = {{ command = \"{line}\" }}")),
            call(dialect, "shell_read", "arguments = { id = 1, wait_ms = 60000 }"),
            ["got this\n", "[Background command 1 exited with code 0.]"],
        ),
    };
    let harness = native_with_options(dialect, &format!("{start}{read}{}", done(dialect, &told))).await;
    assert!(std::process::Command::new("mkfifo").arg(harness.path("pipe")).status().unwrap().success());
    let mut run = harness.session.submit("Start it, then read it");
    let (mut calls, mut deltas) = (0, String::new());
    while let Some(event) = run.next().await {
        match event.kind {
            EventKind::ToolCallStart { .. } => {
                calls += 1;
                if calls == 2 {
                    harness.write("pipe", "this\n");
                }
            }
            EventKind::ToolCallOutputDelta { delta, .. } => deltas.push_str(&delta),
            _ => {}
        }
    }
    assert_eq!(run.await.unwrap().status, OutcomeStatus::Completed);
    assert!(deltas.contains("up\n") && deltas.contains("got this\n"), "{deltas:?}");
    harness.finish().await;
}

/// Returns the start of a turn for one dialect, since only one has free-form calls.
fn turn(dialect: Dialect) -> String {
    format!("[[turn]]\nonly = [\"{}\"]\n", dialect.name())
}

/// Returns a turn with this call.
fn call(dialect: Dialect, tool: &str, arguments: &str) -> String {
    format!("{}[[turn.call]]\ntool = \"{tool}\"\n{arguments}\n", turn(dialect))
}

/// Returns a final turn that expects these texts in the result of the previous call.
fn done(dialect: Dialect, texts: &[&str]) -> String {
    let expected = texts.iter().map(|text| format!("[[turn.expect]]\ncall = 0\ncontains = '''{text}'''\n"));
    format!("{}text = \"Done.\"\n{}", turn(dialect), expected.collect::<String>())
}

async fn native_creation(dialect: Dialect) {
    let content = "content = \"print('Hello')\\n\"";
    let written = format!("arguments = {{ file_path = \"src/hello.py\", {content} }}");
    let (tool, arguments, told) = match dialect {
        Dialect::OpenAiResponses => (
            "apply_patch",
            "input = '''*** Begin Patch\n*** Add File: src/hello.py\n+print('Hello')\n*** End Patch\n'''"
                .to_owned(),
            "Success. Updated the following files:\nA src/hello.py",
        ),
        Dialect::AnthropicMessages => ("Write", written, "File created successfully at: src/hello.py"),
        Dialect::Gemini => {
            ("write_file", written, "Successfully created and wrote to new file: src/hello.py.")
        }
        Dialect::ChatCompletions => ("write_file", written, "src/hello.py (created)"),
    };
    let harness =
        native(dialect, &format!("{}{}", call(dialect, tool, &arguments), done(dialect, &[told]))).await;
    let (_, outcome) = harness.run("Create hello.py").await;
    assert_eq!((outcome.status, outcome.text.as_str()), (OutcomeStatus::Completed, "Done."));
    assert_eq!(harness.read("src/hello.py"), "print('Hello')\n");
    harness.finish().await;
}

async fn native_read_then_edit(dialect: Dialect) {
    let strings = "old_string = \"Goodbye\", new_string = \"See you\"";
    let file = "arguments = { file_path = \"hello.py\" }";
    let (read, shown, edit, told) = match dialect {
        Dialect::OpenAiResponses => (
            call(dialect, "exec_command", "arguments = { cmd = \"cat hello.py\" }"),
            "Output:\nprint('Hello')\nprint('Goodbye')\n",
            "tool = \"apply_patch\"\ninput = '''*** Begin Patch\n*** Update File: hello.py\n@@\n print('Hello')\n-print('Goodbye')\n+print('See you')\n*** End Patch\n'''\n".to_owned(),
            "M hello.py",
        ),
        Dialect::AnthropicMessages => (
            call(dialect, "Read", file),
            "     1→print('Hello')\n     2→print('Goodbye')",
            format!("tool = \"Edit\"\narguments = {{ file_path = \"hello.py\", {strings} }}\n"),
            "The file hello.py has been updated successfully.",
        ),
        Dialect::Gemini => (
            call(dialect, "read_file", file),
            "print('Hello')\nprint('Goodbye')",
            format!(
                "tool = \"replace\"\narguments = {{ file_path = \"hello.py\", instruction = \"Say it.\", {strings} }}\n"
            ),
            "Successfully modified file: hello.py (1 replacements).",
        ),
        Dialect::ChatCompletions => (
            call(dialect, "read_file", file),
            "1 | print('Hello')\n2 | print('Goodbye')",
            format!("tool = \"edit_file\"\narguments = {{ file_path = \"hello.py\", {strings} }}\n"),
            "hello.py",
        ),
    };
    let turns = format!(
        "{read}{}text = \"Now the edit.\"\n[[turn.expect]]\ncall = 0\ncontains = '''{shown}'''\n[[turn.call]]\n{edit}{}",
        turn(dialect),
        done(dialect, &[told])
    );
    let harness = native(dialect, &turns).await;
    harness.write("hello.py", "print('Hello')\nprint('Goodbye')\n");
    harness.run("Change the second line").await;
    assert_eq!(harness.read("hello.py"), "print('Hello')\nprint('See you')\n");
    harness.finish().await;
}

/// Returns a turn that runs a command with the tool of the family.
fn command(dialect: Dialect, line: &str) -> String {
    let (tool, parameter) = match dialect {
        Dialect::OpenAiResponses => ("exec_command", "cmd"),
        Dialect::AnthropicMessages => ("Bash", "command"),
        Dialect::Gemini => ("run_shell_command", "command"),
        Dialect::ChatCompletions => ("shell", "command"),
    };
    call(dialect, tool, &format!("arguments = {{ {parameter} = \"{line}\" }}"))
}

async fn native_shell_command(dialect: Dialect) {
    let told: &[&str] = match dialect {
        Dialect::OpenAiResponses => &["Process exited with code 3\n", "Output:\nout\n"],
        Dialect::AnthropicMessages => &["Exit code 3\nout\n"],
        Dialect::Gemini => &["Exit Code: 3\nOutput: out\n"],
        Dialect::ChatCompletions => &["out\n", "Exit code: 3"],
    };
    let harness =
        native(dialect, &format!("{}{}", command(dialect, "echo out; exit 3"), done(dialect, told))).await;
    let (_, outcome) = harness.run("Run it").await;
    assert_eq!(outcome.status, OutcomeStatus::Completed);
    harness.finish().await;
}

async fn native_grep_and_glob(dialect: Dialect) {
    let (grep, found, glob, listed) = match dialect {
        Dialect::OpenAiResponses => (
            command(dialect, "grep -rn 'fn needle' --include=*.rs src"),
            "src/deep/a.rs:2:fn needle",
            command(dialect, "find . -name '*.rs'"),
            "./src/deep/a.rs",
        ),
        Dialect::AnthropicMessages => (
            call(
                dialect,
                "Grep",
                "arguments = { pattern = \"fn needle\", glob = \"*.rs\", output_mode = \"content\" }",
            ),
            "src/deep/a.rs:2:fn needle",
            call(dialect, "Glob", "arguments = { pattern = \"**/*.rs\" }"),
            "/src/deep/a.rs",
        ),
        Dialect::Gemini => (
            call(
                dialect,
                "search_file_content",
                "arguments = { pattern = \"fn needle\", include = \"*.rs\" }",
            ),
            "File: src/deep/a.rs\nL2: fn needle",
            call(dialect, "glob", "arguments = { pattern = \"**/*.rs\" }"),
            "Found 1 file(s) matching \"**/*.rs\"",
        ),
        Dialect::ChatCompletions => (
            call(dialect, "grep", "arguments = { pattern = \"fn needle\", glob_filter = \"*.rs\" }"),
            "src/deep/a.rs:2:fn needle",
            call(dialect, "glob", "arguments = { pattern = \"**/*.rs\" }"),
            "src/deep/a.rs",
        ),
    };
    let between =
        format!("[[turn.expect]]\ncall = 0\ncontains = '''{found}'''\nnot_contains = \"notes.txt\"\n");
    let harness = native(dialect, &format!("{grep}{glob}{between}{}", done(dialect, &[listed]))).await;
    harness.write("src/deep/a.rs", "// a\nfn needle() {}\n");
    harness.write("notes.txt", "fn needle\n");
    harness.run("Find it").await;
    harness.finish().await;
}

async fn native_truncation(dialect: Dialect) {
    let told: &[&str] = match dialect {
        Dialect::OpenAiResponses => {
            &["Output:\nTotal output lines: 40000\n\n1\n2\n", "…47224 tokens truncated…", "\n40000\n"]
        }
        Dialect::AnthropicMessages => {
            &["[WARNING: Tool output was truncated. 198894 characters were removed", "\n40000\n"]
        }
        Dialect::Gemini => &["Output: 1\n2\n", "... [188894 characters omitted] ...", "\n40000\n"],
        Dialect::ChatCompletions => &["[WARNING: Tool output was truncated.", "\n40000\n"],
    };
    let harness =
        native(dialect, &format!("{}{}", command(dialect, "seq 1 40000"), done(dialect, told))).await;
    let (events, _) = harness.run("Count").await;
    assert!(outputs(&events)[0].contains("\n20000\n"), "the host has all of it");
    harness.finish().await;
}

/// A background command of one call is available to the next, and the session terminates it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_codex_command_continues_between_calls() {
    let dialect = Dialect::OpenAiResponses;
    let started = call(
        dialect,
        "exec_command",
        "arguments = { cmd = \"echo $$ > pid; read word; echo got $word; sleep 600\", tty = true, yield_time_ms = 250 }",
    );
    let typed = call(
        dialect,
        "write_stdin",
        "arguments = { session_id = 1, chars = \"this\\n\", yield_time_ms = 1000 }\n[[turn.expect]]\ncall = 0\ncontains = \"Process running with session ID 1\"",
    );
    let harness = native(dialect, &format!("{started}{typed}{}", done(dialect, &["got this"]))).await;
    harness.run("Start it").await;
    let process = std::path::PathBuf::from(format!("/proc/{}", harness.read("pid").trim()));
    assert!(process.exists(), "it runs on");
    harness.finish().await;
    assert!(!process.exists(), "it ended with the session");
}
