//! What the model is told comes from the place where it works.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::far::Far;
use crate::lab::say;

const SKILL: &str = "mkdir -p .agents/skills/forms && printf -- '---\\nname: forms\\ndescription: Fill in forms.\\n---\\n' > .agents/skills/forms/SKILL.md";

/// The prompt as it would be sent.
fn prompt(far: &Far, words: &[&str]) -> String {
    let said = say(far.pintle(&["prompt", "--provider", "openai", "--output", "plain"]).args(words));
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{said:?}");
    said.out
}

/// A project on this side, with everything that the prompt of another place must not speak of.
fn decoy(far: &Far) {
    let here = far.here.path();
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

fn tells(prompt: &str, parts: &[&str], not: &[&str]) {
    for part in parts {
        assert!(prompt.contains(part), "{part:?} in {prompt}");
    }
    for part in not {
        assert!(!prompt.contains(part), "{part:?} in {prompt}");
    }
}

const NOT: [&str; 4] = ["use tabs", "decoy", "misled-branch", "Mislead"];

/// A container shares this machine's kernel: another system can only be what its own `uname` says. A busybox would not
/// look for one, so this container has the programs of this machine.
#[test]
fn a_container_is_described_from_within() {
    let programs = ["/usr", "/bin", "/lib", "/lib64"].into_iter().filter(|place| Path::new(place).exists());
    let mut options: Vec<_> = programs.map(|place| format!("--volume={place}:{place}:ro")).collect();
    options.push("--env=PATH=/own:/usr/local/bin:/usr/bin:/bin".to_owned());
    let Some(far) = Far::docker_with(&options) else { return };
    decoy(&far);
    far.sh("mkdir /own && printf '#!/bin/sh\\n[ \"$1\" = -r ] && echo 4.2 || echo Plan9\\n' > /own/uname");
    far.sh(&format!("chmod +x /own/uname && {SKILL} && echo 'There, use spaces.' > AGENTS.md"));
    let told = prompt(&far, &[]);
    let place = ["Working directory: /project\n", "Platform: plan9\n", "OS version: Plan9 4.2\n"];
    tells(&told, &place, &NOT);
    let project = ["path=\"/project/AGENTS.md\"", "There, use spaces.", "Fill in forms."];
    tells(&told, &project, &["Git branch"]);
    tells(&told, &["Is git repository: false\n"], &[]);
    far.is_left_in_order();
}

#[test]
fn a_host_is_described_from_within() {
    let Some(far) = Far::ssh() else { return };
    decoy(&far);
    far.sh(SKILL);
    let identity = "-c user.name=A -c user.email=a@example.invalid";
    far.sh(&format!(
        "echo 'There, use spaces.' > AGENTS.md && mkdir sub && git init -q -b far && git add . && \
         git {identity} commit -q -m 'Begin over there' && echo more >> AGENTS.md && touch new"
    ));
    let below = format!("{}/sub", far.directory);
    let told = prompt(&far, &["--dir", &below]);
    let place = [format!("Working directory: {below}\n"), format!("path=\"{}/AGENTS.md\"", far.directory)];
    tells(&told, &place.each_ref().map(String::as_str), &NOT);
    tells(
        &told,
        &["Is git repository: true\n", "Git branch: far\n", "Begin over there", "Fill in forms."],
        &[],
    );
    // A run is told the same.
    let expected = "[[turn]]\ntext = \"Seen.\"\n[[turn.expect]]\nrequest_contains = \"There, use spaces.\"\n\
                    [[turn.expect]]\nrequest_contains = \"Begin over there\"\n";
    let said = say(far.run(expected, &["--output", "stream-json", "--dir", &below]).arg("Look"));
    assert_eq!(said.code, Some(0), "{said:?}");
    let opening: Value = serde_json::from_str(said.out.lines().next().unwrap()).unwrap();
    assert_eq!(opening["working_directory"], below.as_str(), "{opening}");
    far.is_left_in_order();
}

/// Where a run would begin with these words.
fn working_directory(far: &Far, words: &[&str]) -> String {
    let told = prompt(far, words);
    let line = told.lines().find_map(|line| line.strip_prefix("Working directory: "));
    line.map(str::to_owned).unwrap_or_else(|| panic!("no working directory in {told}"))
}

#[test]
fn in_a_container_relative_is_to_what_it_was_started_with() {
    let Some(far) = Far::docker() else { return };
    far.sh("mkdir src");
    assert_eq!(working_directory(&far, &[]), far.login());
    assert_eq!(working_directory(&far, &["--dir", "src"]), format!("{}/src", far.login()));
    far.is_left_in_order();
}

#[test]
fn on_a_host_relative_is_to_where_a_login_begins() {
    let Some(far) = Far::ssh() else { return };
    assert_eq!(working_directory(&far, &[]), far.login());
    assert_eq!(working_directory(&far, &["--dir", "../../../../tmp"]), "/tmp");
    far.is_left_in_order();
}
