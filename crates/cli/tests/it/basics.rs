//! `run` and `ask` in each dialect.

use std::process::{Command, Stdio};

use pintle_testkit::Dialect;

use crate::harness::{CommandOutput, Harness, run, run_with_input, without_level_notice};

/// Creates a file, then edits it with the dialect's editing tool.
fn creates_and_edits(dialect: Dialect) {
    let edit = if dialect == Dialect::OpenAiResponses {
        "tool = \"apply_patch\"\narguments = { patch = '''\n*** Begin Patch\n*** Update File: hello.py\n@@\n-print('Hello')\n+print('Goodbye')\n*** End Patch\n''' }"
    } else {
        "tool = \"edit_file\"\narguments = { file_path = \"hello.py\", old_string = \"Hello\", new_string = \"Goodbye\" }"
    };
    let harness = Harness::new(
        dialect,
        &format!(
            "[[turn]]\ntext = \"Creating.\"\n[[turn.call]]\ntool = \"write_file\"\narguments = {{ file_path = \"hello.py\", content = \"print('Hello')\\n\" }}\n[[turn]]\ntext = \"Editing.\"\n[[turn.call]]\n{edit}\n[[turn]]\ntext = \"It says goodbye now.\"\n[[turn.expect]]\ncall = 0\nis_error = false\n"
        ),
    );
    let output = run(&mut harness.command("run", &["Make hello.py"]));
    assert_eq!(output.code, Some(0), "{output:?}");
    assert_eq!(harness.read("hello.py"), "print('Goodbye')\n");
    for part in ["Creating.", "write_file", "-print('Hello')", "+print('Goodbye')", "It says goodbye now."] {
        assert!(output.stdout.contains(part), "{part} in {output:?}");
    }
    assert!(harness.server.requests().iter().all(|request| request.violations.is_empty()));
}

#[test]
fn openai() {
    creates_and_edits(Dialect::OpenAiResponses);
}

#[test]
fn anthropic() {
    creates_and_edits(Dialect::AnthropicMessages);
}

#[test]
fn gemini() {
    creates_and_edits(Dialect::Gemini);
}

#[test]
fn compatible() {
    creates_and_edits(Dialect::ChatCompletions);
}

/// The futures of subcommands and of the steps of a run are on the heap, also in an unoptimised build.
#[test]
fn a_run_needs_less_than_a_mebibyte_of_stack() {
    let harness = Harness::new(Dialect::OpenAiResponses, "[[turn]]\ntext = \"Hello.\"\n");
    let unlimited = harness.command("run", &["Hi"]);
    let mut limited = Command::new("sh");
    limited.args(["-c", r#"ulimit -s 1024 && exec "$0" "$@""#]).env_clear().stdin(Stdio::null());
    limited.arg(unlimited.get_program()).args(unlimited.get_args());
    limited.envs(unlimited.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = run(&mut limited);
    assert_eq!((output.code, output.stdout.lines().next()), (Some(0), Some("Hello.")), "{output:?}");
}

#[test]
fn prompts_come_from_stdin_or_a_file() {
    let turns = "[[turn]]\ntext = \"Four.\"\n[[turn.expect]]\nrequest_contains = \"two and two\"\n";
    for arguments in [&["-"][..], &[]] {
        let harness = Harness::new(Dialect::AnthropicMessages, turns);
        let output = run_with_input(&mut harness.command("ask", arguments), "What is two and two?\n");
        assert_eq!((output.code, output.stdout.trim()), (Some(0), "Four."), "{arguments:?}: {output:?}");
    }
    let harness = Harness::new(Dialect::AnthropicMessages, turns);
    std::fs::write(harness.path("prompt.txt"), "What is two and two?").unwrap();
    let file = harness.path("prompt.txt");
    let output = run(&mut harness.command("ask", &["--prompt-file", file.to_str().unwrap()]));
    assert_eq!((output.code, output.stdout.trim()), (Some(0), "Four."), "{output:?}");
}

#[test]
fn provider_is_selected_by_key() {
    let harness = Harness::new(Dialect::AnthropicMessages, "[[turn]]\ntext = \"Hello.\"\n");
    let mut command = crate::harness::pintle(&["ask", "Hi"]);
    command
        .env("ANTHROPIC_API_KEY", crate::harness::KEY)
        .env("ANTHROPIC_BASE_URL", harness.server.base_url(harness.dialect));
    let output = run(&mut command);
    assert_eq!((output.code, output.stdout.trim()), (Some(0), "Hello."), "{output:?}");
}

#[test]
fn scripted_provider_needs_only_a_script() {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("script.toml");
    std::fs::write(
        &script,
        "name = \"s\"\n[[turn]]\n[[turn.call]]\ntool = \"shell\"\narguments = { command = \"echo $((6 * 7))\" }\n[[turn]]\ntext = \"42\"\n[[turn.expect]]\ncall = 0\ncontains = \"42\"\n",
    )
    .unwrap();
    for dialect in ["openai", "anthropic", "gemini", "openai-compatible"] {
        let mut command = crate::harness::pintle(&[
            "run",
            "--provider",
            "scripted",
            "--dialect",
            dialect,
            "--toolset",
            "spec",
        ]);
        command.arg("--quiet").arg("--script").arg(&script).arg("--dir").arg(directory.path()).arg("Compute");
        let output = run(&mut command);
        assert_eq!((output.code, output.stdout.trim()), (Some(0), "42"), "{dialect}: {output:?}");
    }
}

#[test]
fn tools_and_prompt_show_model_input() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("CLAUDE.md"), "Always test.").unwrap();
    let output = run(&mut crate::harness::pintle(&["tools", "--provider", "openai", "--output", "json"]));
    let tools: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    assert!(output.stdout.contains("apply_patch"), "{tools}");
    let mut command = crate::harness::pintle(&["prompt", "--provider", "anthropic", "--dir"]);
    let output = run(command.arg(directory.path()));
    assert_eq!(output.code, Some(0), "{output:?}");
    for part in ["<environment>", "Always test.", "TodoWrite"] {
        assert!(output.stdout.contains(part), "{part} in {}", output.stdout);
    }
}

#[test]
fn aliases_are_resolved_before_sending() {
    for subcommand in ["ask", "run"] {
        let harness = Harness::new(Dialect::AnthropicMessages, "[[turn]]\ntext = \"Hello.\"\n");
        let output = run(&mut harness.command(subcommand, &["--model", "opus", "Say hello"]));
        assert_eq!(output.code, Some(0), "{output:?}");
        let models: Vec<_> =
            harness.server.requests().iter().map(|request| request.body["model"].clone()).collect();
        assert_eq!(models, ["claude-opus-5-5"], "{subcommand}");
    }
}

#[test]
fn runs_use_native_tools_by_default() {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("script.toml");
    let turns = "name = \"s\"\n[[turn]]\n[[turn.call]]\ntool = \"Bash\"\narguments = { command = \"echo 6*7=$((6 * 7)) # echo six times seven\" }\n[[turn]]\ntext = \"Done.\"\n[[turn.expect]]\ncall = 0\nis_error = false\ncontains = \"42\"\n";
    std::fs::write(&script, turns).unwrap();
    let mut command = crate::harness::pintle(&["run", "--provider", "scripted", "--dialect", "anthropic"]);
    let output = run(command.arg("--script").arg(&script).arg("--dir").arg(directory.path()).arg("Compute"));
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.stdout.contains("Bash") && output.stdout.contains("echo six times seven"), "{output:?}");
    assert!(
        output.stdout.lines().any(|line| line.trim_start_matches(['|', ' ']) == "6*7=42"),
        "command output: {output:?}"
    );
}

#[test]
fn piped_input_follows_the_prompt() {
    let turns = "[[turn]]\ntext = \"A full disk.\"\n[[turn.expect]]\nrequest_contains = \"Explain this\\n\\n<standard_input>\\nNo space left\\n</standard_input>\"\n";
    for subcommand in ["ask", "run"] {
        let harness = Harness::new(Dialect::AnthropicMessages, turns);
        let output = run_with_input(&mut harness.command(subcommand, &["Explain this"]), "No space left\n");
        assert_eq!(
            (output.code, output.stdout.lines().next()),
            (Some(0), Some("A full disk.")),
            "{output:?}"
        );
        assert_eq!(without_level_notice(&output.stderr), "");
    }
}

/// Some programs start others with a pipe that they never write to.
#[test]
fn silent_pipe_is_ignored() {
    let harness = Harness::new(Dialect::AnthropicMessages, "[[turn]]\ntext = \"Four.\"\n");
    let mut command = harness.command("ask", &["What is two and two?"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let pipe = child.stdin.take();
    let output = CommandOutput::from(child.wait_with_output().unwrap());
    drop(pipe);
    assert_eq!((output.code, output.stdout.trim()), (Some(0), "Four."), "{output:?}");
    assert!(output.stderr.contains("ignoring standard input: no data within 3 s"), "{output:?}");
}
