//! `run` and `ask` do what they are asked to, in each dialect.

use std::process::Stdio;

use pintle_testkit::Dialect;

use crate::lab::{Model, Said, say, say_with_input};

/// Creates a file, then edits it with the dialect's own tool.
fn creates_and_edits(dialect: Dialect) {
    let edit = if dialect == Dialect::OpenAiResponses {
        "tool = \"apply_patch\"\narguments = { patch = '''\n*** Begin Patch\n*** Update File: hello.py\n@@\n-print('Hello')\n+print('Goodbye')\n*** End Patch\n''' }"
    } else {
        "tool = \"edit_file\"\narguments = { file_path = \"hello.py\", old_string = \"Hello\", new_string = \"Goodbye\" }"
    };
    let model = Model::new(
        dialect,
        &format!(
            "[[turn]]\ntext = \"Creating.\"\n[[turn.call]]\ntool = \"write_file\"\narguments = {{ file_path = \"hello.py\", content = \"print('Hello')\\n\" }}\n[[turn]]\ntext = \"Editing.\"\n[[turn.call]]\n{edit}\n[[turn]]\ntext = \"It says goodbye now.\"\n[[turn.expect]]\ncall = 0\nis_error = false\n"
        ),
    );
    let said = say(&mut model.command("run", &["Make hello.py"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(model.read("hello.py"), "print('Goodbye')\n");
    for part in ["Creating.", "write_file", "-print('Hello')", "+print('Goodbye')", "It says goodbye now."] {
        assert!(said.out.contains(part), "{part} in {said:?}");
    }
    assert!(model.server.requests().iter().all(|request| request.violations.is_empty()));
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

#[test]
fn a_prompt_may_come_from_standard_input_or_a_file() {
    let turns = "[[turn]]\ntext = \"Four.\"\n[[turn.expect]]\nrequest_contains = \"two and two\"\n";
    for arguments in [&["-"][..], &[]] {
        let model = Model::new(Dialect::AnthropicMessages, turns);
        let said = say_with_input(&mut model.command("ask", arguments), "What is two and two?\n");
        assert_eq!((said.code, said.out.trim()), (Some(0), "Four."), "{arguments:?}: {said:?}");
    }
    let model = Model::new(Dialect::AnthropicMessages, turns);
    std::fs::write(model.path("prompt.txt"), "What is two and two?").unwrap();
    let file = model.path("prompt.txt");
    let said = say(&mut model.command("ask", &["--prompt-file", file.to_str().unwrap()]));
    assert_eq!((said.code, said.out.trim()), (Some(0), "Four."), "{said:?}");
}

#[test]
fn the_provider_follows_from_the_key_that_is_there() {
    let model = Model::new(Dialect::AnthropicMessages, "[[turn]]\ntext = \"Hello.\"\n");
    let mut command = crate::lab::pintle(&["ask", "Hi"]);
    command
        .env("ANTHROPIC_API_KEY", crate::lab::KEY)
        .env("ANTHROPIC_BASE_URL", model.server.base_url(model.dialect));
    let said = say(&mut command);
    assert_eq!((said.code, said.out.trim()), (Some(0), "Hello."), "{said:?}");
}

#[test]
fn a_scripted_provider_needs_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script.toml");
    std::fs::write(
        &script,
        "name = \"s\"\n[[turn]]\n[[turn.call]]\ntool = \"shell\"\narguments = { command = \"echo $((6 * 7))\" }\n[[turn]]\ntext = \"42\"\n[[turn.expect]]\ncall = 0\ncontains = \"42\"\n",
    )
    .unwrap();
    for dialect in ["openai", "anthropic", "gemini", "openai-compatible"] {
        let mut command =
            crate::lab::pintle(&["run", "--provider", "scripted", "--dialect", dialect, "--toolset", "spec"]);
        command.arg("--quiet").arg("--script").arg(&script).arg("--dir").arg(folder.path()).arg("Compute");
        let said = say(&mut command);
        assert_eq!((said.code, said.out.trim()), (Some(0), "42"), "{dialect}: {said:?}");
    }
}

#[test]
fn tools_and_prompt_show_what_the_model_is_told() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("CLAUDE.md"), "Always test.").unwrap();
    let said = say(&mut crate::lab::pintle(&["tools", "--provider", "openai", "--output", "json"]));
    let tools: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert!(said.out.contains("apply_patch"), "{tools}");
    let mut command = crate::lab::pintle(&["prompt", "--provider", "anthropic", "--dir"]);
    let said = say(command.arg(folder.path()));
    assert_eq!(said.code, Some(0), "{said:?}");
    for part in ["<environment>", "Always test.", "TodoWrite"] {
        assert!(said.out.contains(part), "{part} in {}", said.out);
    }
}

#[test]
fn an_alias_reaches_the_provider_as_the_models_own_name() {
    for subcommand in ["ask", "run"] {
        let model = Model::new(Dialect::AnthropicMessages, "[[turn]]\ntext = \"Hello.\"\n");
        let said = say(&mut model.command(subcommand, &["--model", "opus", "Say hello"]));
        assert_eq!(said.code, Some(0), "{said:?}");
        let named: Vec<_> =
            model.server.requests().iter().map(|request| request.body["model"].clone()).collect();
        assert_eq!(named, ["claude-opus-5-5"], "{subcommand}");
    }
}

#[test]
fn a_run_has_the_familys_own_tools() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script.toml");
    let turns = "name = \"s\"\n[[turn]]\n[[turn.call]]\ntool = \"Bash\"\narguments = { command = \"echo 6*7=$((6 * 7)) # echo six times seven\" }\n[[turn]]\ntext = \"Done.\"\n[[turn.expect]]\ncall = 0\nis_error = false\ncontains = \"42\"\n";
    std::fs::write(&script, turns).unwrap();
    let mut command = crate::lab::pintle(&["run", "--provider", "scripted", "--dialect", "anthropic"]);
    let said = say(command.arg("--script").arg(&script).arg("--dir").arg(folder.path()).arg("Compute"));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("Bash") && said.out.contains("echo six times seven"), "{said:?}");
    assert!(
        said.out.lines().any(|line| line.trim_start_matches(['|', ' ']) == "6*7=42"),
        "what the command wrote: {said:?}"
    );
}

#[test]
fn what_is_piped_in_beside_a_prompt_follows_it() {
    let turns = "[[turn]]\ntext = \"A full disk.\"\n[[turn.expect]]\nrequest_contains = \"Explain this\\n\\n<standard_input>\\nNo space left\\n</standard_input>\"\n";
    for subcommand in ["ask", "run"] {
        let model = Model::new(Dialect::AnthropicMessages, turns);
        let said = say_with_input(&mut model.command(subcommand, &["Explain this"]), "No space left\n");
        assert_eq!((said.code, said.out.lines().next()), (Some(0), Some("A full disk.")), "{said:?}");
        assert_eq!(said.err, "");
    }
}

/// As of a program that starts others with a pipe and never writes to it.
#[test]
fn a_silent_pipe_is_not_waited_for() {
    let model = Model::new(Dialect::AnthropicMessages, "[[turn]]\ntext = \"Four.\"\n");
    let mut command = model.command("ask", &["What is two and two?"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let pipe = child.stdin.take();
    let said = Said::from(child.wait_with_output().unwrap());
    drop(pipe);
    assert_eq!((said.code, said.out.trim()), (Some(0), "Four."), "{said:?}");
    assert!(said.err.contains("standard input stayed silent for 3 s and is not read"), "{said:?}");
}
