//! Facts about the repository in the prompt, and the processes that they take.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;

use super::call_log::CallLog;
use super::repository::{add_history, git};
use super::user::{User, wait_until_ended};

/// Returns the path of a program of this machine.
fn program(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap();
    let mut candidates = std::env::split_paths(&path).map(|directory| directory.join(name));
    candidates.find(|candidate| candidate.is_file()).unwrap()
}

/// A user whose `git`, `env` and `sed` first run a script, in a repository with two commits, and a log of the calls. In the
/// script, `NAME` is the program, and `CALLS` the path of the log.
fn user_with_programs(script: &str) -> (User, CallLog) {
    let user = User::new("[[turn]]\ntext = \"Done.\"\n");
    git(&user, &["symbolic-ref", "HEAD", "refs/heads/main"]);
    add_history(&user);
    fs::create_dir(user.at("programs")).unwrap();
    let log = CallLog::create(user.at("calls"));
    let script = script.replace("CALLS", &log.path().display().to_string());
    for name in ["git", "env", "sed"] {
        let path = user.at("programs").join(name);
        let real = program(name);
        let text = format!("#!/bin/sh\n{script}\nexec '{}' \"$@\"\n", real.display()).replace("NAME", name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    (user, log)
}

fn run(user: &User, flags: &[&str]) -> String {
    let path = format!("{}:{}", user.at("programs").display(), std::env::var("PATH").unwrap());
    let output = user.run_command("Go").args(flags).env("PATH", path).output().unwrap();
    assert!(output.status.success(), "{flags:?}: {output:?}");
    user.request(0)
}

/// Flags without a sandbox and, where it is available, with one.
fn levels() -> &'static [&'static [&'static str]] {
    const LEVELS: &[&[&str]] = &[&["--no-sandbox"], &[]];
    if pintle_test_conditions::BUBBLEWRAP.is_present() { LEVELS } else { &LEVELS[..1] }
}

/// Adds entries to the index, so that the repository is large.
fn add_many_files(user: &User) {
    let blob = git(user, &["hash-object", "-w", "file"]);
    let entry = |number: usize| format!("100644 {}\tdirectory/with/many/files/{number:06}\n", blob.trim());
    let entries = user.at("entries");
    fs::write(&entries, (0..8_000).map(entry).collect::<String>()).unwrap();
    let mut command = Command::new("git");
    command.args(["update-index", "--add", "--index-info"]).current_dir(user.project());
    assert!(command.stdin(File::open(&entries).unwrap()).status().unwrap().success());
    assert!(fs::metadata(user.project().join(".git/index")).unwrap().len() > 512 << 10);
}

#[test]
fn the_facts_of_a_repository_take_two_processes_of_git_at_once() {
    for flags in levels() {
        let (user, log) = user_with_programs("echo \"NAME $*\" >>'CALLS'");
        let (prompt, calls) = log.record(|| run(&user, flags));
        for fact in ["Git branch: main", r" two\n- ", r" one\n</environment>"] {
            assert!(prompt.contains(fact), "{flags:?}, {fact}: {prompt}");
        }
        assert!(!prompt.contains("Git status when the session started: unknown"), "{flags:?}: {prompt}");
        let queries = |line: &str| {
            let words = line.split_whitespace();
            let is_query = |word: &&str| ["git", "env", "sed", "log", "status", "rev-parse"].contains(word);
            words.filter(is_query).collect::<Vec<_>>().join(" ")
        };
        let mut queries: Vec<String> = calls.iter().map(|line| queries(line)).collect();
        queries.sort();
        assert_eq!(queries, ["git log", "git status"], "{flags:?}: {calls:?}");
    }
}

#[test]
fn the_prompt_of_a_large_repository_does_not_wait_for_the_status() {
    for flags in levels() {
        let (user, _log) = user_with_programs("case \" $* \" in *' status '*) exec sleep 600.0543 ;; esac");
        add_many_files(&user);
        let prompt = run(&user, flags);
        assert!(prompt.contains("Git branch: main"), "{flags:?}: {prompt}");
        let status = r"Git status when the session started: unknown\nRecent commits:\n- ";
        assert!(prompt.contains(status) && prompt.contains(r" one\n</environment>"), "{flags:?}: {prompt}");
        wait_until_ended("600.0543");
    }
}
