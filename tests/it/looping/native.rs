//! The native toolsets: each family does with its own agent's tools what the specification's tools do.

use pintle_agent::{OutcomeStatus, Toolset};
use pintle_testkit::Dialect;

use crate::lab::{Lab, in_each_dialect, outputs, profile};

in_each_dialect![
    native_creation,
    native_read_then_edit,
    native_shell_command,
    native_grep_and_glob,
    native_truncation,
];

/// A session whose model has the tools that it was trained on.
async fn native(dialect: Dialect, turns: &str) -> Lab {
    let lab = Lab::new(dialect, turns).await;
    let profile = profile(dialect).with_toolset(Toolset::Native);
    lab.session.handle().set_profile(profile).unwrap();
    lab
}

/// The head of a turn. Only one dialect has calls with free text, so that its turns must be for it alone.
fn turn(dialect: Dialect) -> String {
    format!("[[turn]]\nonly = [\"{}\"]\n", dialect.name())
}

/// A turn that makes this call.
fn call(dialect: Dialect, tool: &str, arguments: &str) -> String {
    format!("{}[[turn.call]]\ntool = \"{tool}\"\n{arguments}\n", turn(dialect))
}

/// A turn that ends it, if the result of the call before has these texts.
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
    let lab =
        native(dialect, &format!("{}{}", call(dialect, tool, &arguments), done(dialect, &[told]))).await;
    let (_, outcome) = lab.run("Create hello.py").await;
    assert_eq!((outcome.status, outcome.text.as_str()), (OutcomeStatus::Completed, "Done."));
    assert_eq!(lab.read("src/hello.py"), "print('Hello')\n");
    lab.finish().await;
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
    let lab = native(dialect, &turns).await;
    lab.write("hello.py", "print('Hello')\nprint('Goodbye')\n");
    lab.run("Change the second line").await;
    assert_eq!(lab.read("hello.py"), "print('Hello')\nprint('See you')\n");
    lab.finish().await;
}

/// A turn that runs a command, whatever the family calls that.
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
    let lab =
        native(dialect, &format!("{}{}", command(dialect, "echo out; exit 3"), done(dialect, told))).await;
    let (_, outcome) = lab.run("Run it").await;
    assert_eq!(outcome.status, OutcomeStatus::Completed);
    lab.finish().await;
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
    let lab = native(dialect, &format!("{grep}{glob}{between}{}", done(dialect, &[listed]))).await;
    lab.write("src/deep/a.rs", "// a\nfn needle() {}\n");
    lab.write("notes.txt", "fn needle\n");
    lab.run("Find it").await;
    lab.finish().await;
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
    let lab = native(dialect, &format!("{}{}", command(dialect, "seq 1 40000"), done(dialect, told))).await;
    let (events, _) = lab.run("Count").await;
    assert!(outputs(&events)[0].contains("\n20000\n"), "the host has all of it");
    lab.finish().await;
}

/// A command of one call is there in the next, and the session ends it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_of_codex_goes_on_between_calls() {
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
    let lab = native(dialect, &format!("{started}{typed}{}", done(dialect, &["got this"]))).await;
    lab.run("Start it").await;
    let process = std::path::PathBuf::from(format!("/proc/{}", lab.read("pid").trim()));
    assert!(process.exists(), "it runs on");
    lab.finish().await;
    assert!(!process.exists(), "it ended with the session");
}
