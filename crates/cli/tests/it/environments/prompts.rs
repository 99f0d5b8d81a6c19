//! The system prompt describes the remote environment.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::remote::Remote;
use crate::harness::run;

const SKILL: &str = "mkdir -p .agents/skills/forms && printf -- '---\\nname: forms\\ndescription: Fill in forms.\\n---\\n' > .agents/skills/forms/SKILL.md";

/// Returns the prompt as sent.
fn prompt(remote: &Remote, arguments: &[&str]) -> String {
    let output = run(remote.pintle(&["prompt", "--provider", "openai", "--output", "plain"]).args(arguments));
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{output:?}");
    output.stdout
}

/// Creates a local project that must not appear in the prompt of a remote environment.
fn create_decoy(remote: &Remote) {
    let here = remote.local.path();
    fs::write(here.join("AGENTS.md"), "Here, use tabs.\n").unwrap();
    fs::create_dir_all(here.join(".agents/skills/decoy")).unwrap();
    let skill = "---\nname: decoy\ndescription: Mislead.\n---\n";
    fs::write(here.join(".agents/skills/decoy/SKILL.md"), skill).unwrap();
    let git = Command::new("git")
        .args(["init", "-q", "-b", "misled-branch"])
        .current_dir(here)
        .stdin(Stdio::null())
        .status();
    assert!(git.unwrap().success());
}

fn assert_prompt(prompt: &str, present: &[&str], absent: &[&str]) {
    for part in present {
        assert!(prompt.contains(part), "{part:?} in {prompt}");
    }
    for part in absent {
        assert!(!prompt.contains(part), "{part:?} in {prompt}");
    }
}

const DECOYS: [&str; 4] = ["use tabs", "decoy", "misled-branch", "Mislead"];

/// A container shares the kernel of this machine, so the test fakes its `uname`. Busybox would not search for one, so the
/// container uses the programs of this machine.
#[test]
fn prompt_describes_the_container() {
    let programs = ["/usr", "/bin", "/lib", "/lib64"].into_iter().filter(|path| Path::new(path).exists());
    let mut options: Vec<_> = programs.map(|path| format!("--volume={path}:{path}:ro")).collect();
    options.push("--env=PATH=/own:/usr/local/bin:/usr/bin:/bin".to_owned());
    let Some(remote) = Remote::docker_with(&options) else { return };
    create_decoy(&remote);
    remote.sh("mkdir /own && printf '#!/bin/sh\\n[ \"$1\" = -r ] && echo 4.2 || echo Plan9\\n' > /own/uname");
    remote.sh(&format!("chmod +x /own/uname && {SKILL} && echo 'There, use spaces.' > AGENTS.md"));
    let text = prompt(&remote, &[]);
    let expected = ["Working directory: /project\n", "Platform: plan9\n", "OS version: Plan9 4.2\n"];
    assert_prompt(&text, &expected, &DECOYS);
    let project = ["path=\"/project/AGENTS.md\"", "There, use spaces.", "Fill in forms."];
    assert_prompt(&text, &project, &["Git branch"]);
    assert_prompt(&text, &["Is git repository: false\n"], &[]);
    remote.assert_clean();
}

#[test]
fn prompt_describes_the_remote_host() {
    let Some(remote) = Remote::ssh() else { return };
    create_decoy(&remote);
    remote.sh(SKILL);
    let identity = "-c user.name=A -c user.email=a@example.invalid";
    remote.sh(&format!(
        "echo 'There, use spaces.' > AGENTS.md && mkdir sub && git init -q -b remote && git add . && \
         git {identity} commit -q -m 'Begin over there' && echo more >> AGENTS.md && touch new"
    ));
    let below = format!("{}/sub", remote.directory);
    let text = prompt(&remote, &["--dir", &below]);
    let expected =
        [format!("Working directory: {below}\n"), format!("path=\"{}/AGENTS.md\"", remote.directory)];
    assert_prompt(&text, &expected.each_ref().map(String::as_str), &DECOYS);
    assert_prompt(
        &text,
        &["Is git repository: true\n", "Git branch: remote\n", "Begin over there", "Fill in forms."],
        &[],
    );
    // A run uses the same prompt.
    let expected = "[[turn]]\ntext = \"Seen.\"\n[[turn.expect]]\nrequest_contains = \"There, use spaces.\"\n\
                    [[turn.expect]]\nrequest_contains = \"Begin over there\"\n";
    let output = run(remote.run(expected, &["--output", "stream-json", "--dir", &below]).arg("Look"));
    assert_eq!(output.code, Some(0), "{output:?}");
    let opening: Value = serde_json::from_str(output.stdout.lines().next().unwrap()).unwrap();
    assert_eq!(opening["working_directory"], below.as_str(), "{opening}");
    remote.assert_clean();
}

/// Returns the working directory of a run with these arguments.
fn working_directory(remote: &Remote, arguments: &[&str]) -> String {
    let text = prompt(remote, arguments);
    let line = text.lines().find_map(|line| line.strip_prefix("Working directory: "));
    line.map(str::to_owned).unwrap_or_else(|| panic!("no working directory in {text}"))
}

#[test]
fn container_paths_are_relative_to_its_working_directory() {
    let Some(remote) = Remote::docker() else { return };
    remote.sh("mkdir src");
    assert_eq!(working_directory(&remote, &[]), remote.login_directory());
    assert_eq!(working_directory(&remote, &["--dir", "src"]), format!("{}/src", remote.login_directory()));
    remote.assert_clean();
}

#[test]
fn host_paths_are_relative_to_the_login_directory() {
    let Some(remote) = Remote::ssh() else { return };
    assert_eq!(working_directory(&remote, &[]), remote.login_directory());
    assert_eq!(working_directory(&remote, &["--dir", "../../../../tmp"]), "/tmp");
    remote.assert_clean();
}
