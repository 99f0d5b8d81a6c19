//! Protected files that change while no command is looked at.

use std::process::Command;

use super::user::User;

/// Settings by which git runs a program.
const SETTINGS: &str = r"printf '[core]\n\tfsmonitor = x\n'";

fn turns(calls: &[(&str, &str)]) -> String {
    let turn = |(tool, arguments): &(&str, &str)| {
        format!("[[turn]]\n[[turn.call]]\ntool = \"{tool}\"\narguments = {{ {arguments} }}\n")
    };
    calls.iter().map(turn).collect::<String>() + "[[turn]]\ntext = \"Done.\"\n"
}

fn commands(lines: &[&str]) -> String {
    let arguments: Vec<String> = lines.iter().map(|line| format!("command = '''{line}'''")).collect();
    let calls: Vec<(&str, &str)> = arguments.iter().map(|arguments| ("Bash", arguments.as_str())).collect();
    turns(&calls)
}

/// Runs the model, and returns the exit code and standard error.
fn run(user: &User) -> (Option<i32>, String) {
    let output = user.run_command("Go").output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_change_in_the_background_is_found_at_the_end() {
    if !pintle_test_conditions::BUBBLEWRAP.is_present() {
        return;
    }
    let change = format!("sleep 0.5; mkdir -p sub/.git/hooks; {SETTINGS} >sub/.git/config; touch changed");
    let start = format!("command = '''{change}''', run_in_background = true");
    let wait = "task_id = '1', timeout = 60000";
    let user = User::new(&turns(&[("Bash", &start), ("TaskOutput", wait)]));
    let (code, said) = run(&user);
    assert!(user.project().join("changed").exists(), "{said}");
    assert!(code != Some(0) && said.contains("changed the protected file"), "{code:?}: {said}");
    assert!(said.contains("fsmonitor = x"), "{said}");
}

#[test]
fn a_change_of_a_killed_session_is_found_by_the_next_one() {
    if !pintle_test_conditions::BUBBLEWRAP.is_present() {
        return;
    }
    let user = User::new(&commands(&["touch started; sleep 600"]));
    let mut killed = user.run_command("Go").spawn().unwrap();
    user.wait_for_file("started");
    killed.kill().unwrap();
    killed.wait().unwrap();
    std::fs::write(user.project().join(".git/hooks/pre-commit"), "x").unwrap();
    let user = user.with_turns("[[turn]]\ntext = \"Done.\"\n");
    let (code, said) = run(&user);
    assert!(
        code == Some(2) && said.contains("an earlier session ended before its final check"),
        "{code:?}: {said}"
    );
    assert!(said.contains(".git/hooks/pre-commit"), "{said}");
    assert_eq!(run(&user).0, Some(0), "it was said once");
    // Changes by the user between two sessions are not reported.
    std::fs::write(user.project().join(".git/hooks/pre-commit"), "y").unwrap();
    assert_eq!(run(&user).0, Some(0));
}

#[test]
fn git_of_the_user_does_not_open_files_to_commands() {
    if !pintle_test_conditions::BUBBLEWRAP.is_present() {
        return;
    }
    let line = "touch started; while [ ! -e acted ]; do sleep 0.05; done; sleep 5; cat ~/.netrc; echo x >>.git/config";
    let user = User::new(&commands(&[line]));
    std::fs::write(user.at(".netrc"), "OLD-KEY").unwrap();
    let mut running = user.run_command("Go").stderr(std::process::Stdio::piped()).spawn().unwrap();
    user.wait_for_file("started");
    let mut config = Command::new("git");
    config.args(["config", "branch.main.remote", "origin"]).current_dir(user.project());
    assert!(config.status().unwrap().success());
    std::fs::write(user.at("new"), "NEW-KEY").unwrap();
    std::fs::rename(user.at("new"), user.at(".netrc")).unwrap();
    std::fs::write(user.project().join("acted"), "").unwrap();
    assert!(running.wait().unwrap().success());
    let answered = user.request(1);
    assert!(answered.contains("a process outside the sandbox replaced"), "{answered}");
    assert!(!answered.contains("KEY"), "{answered}");
    let config = std::fs::read_to_string(user.project().join(".git/config")).unwrap();
    assert!(config.contains("origin") && !config.contains("\nx"), "{config}");
}

/// A missing file is protected by a placeholder, which two sessions share.
#[test]
fn the_end_of_a_session_leaves_what_another_one_protects() {
    if !pintle_test_conditions::BUBBLEWRAP.is_present() {
        return;
    }
    let missing = ".git/config.worktree";
    let line = format!(
        "touch started; while [ ! -e ended ]; do sleep 0.05; done; printf x >{missing} || echo re''fused"
    );
    let user = User::new(&commands(&[&line]));
    // The second session has another model, since a model answers the same to each session.
    let script = user.at("script.toml");
    std::fs::write(&script, format!("name = \"scripted\"\n{}", commands(&["true"]))).unwrap();
    let missing = user.project().join(missing);
    assert!(!missing.exists());
    let mut first = user.run_command("Go").stderr(std::process::Stdio::piped()).spawn().unwrap();
    user.wait_for_file("started");
    assert!(missing.exists(), "it is held for the first session");
    let scripted = ["run", "--provider", "scripted", "--dialect", "anthropic", "--script"];
    let second = user.command(&scripted).arg(script).arg("Go").output().unwrap();
    assert!(second.status.success(), "{second:?}");
    assert!(missing.exists(), "the first session still protects it");
    std::fs::write(user.project().join("ended"), "").unwrap();
    assert!(first.wait().unwrap().success());
    let answered = user.request(1);
    assert!(answered.contains("refused"), "{answered}");
    assert!(!missing.exists(), "no session needs it");
}

#[test]
fn a_repository_that_is_ignored_later_stays_protected() {
    if !pintle_test_conditions::BUBBLEWRAP.is_present() {
        return;
    }
    let line = format!("{SETTINGS} >>sub/.git/config");
    let user = User::new("[[turn]]\ntext = \"Done.\"\n");
    let ignore = ignore_sub(&user);
    init_sub(&user);
    // The first session writes the file before it runs any command.
    let user = user.with_turns(&turns(&[("Write", &ignore)]));
    assert_eq!(run(&user).0, Some(0));
    let user = user.with_turns(&commands(&[&line]));
    assert_eq!(run(&user).0, Some(0));
    let config = std::fs::read_to_string(user.project().join("sub/.git/config")).unwrap();
    assert!(!config.contains("fsmonitor"), "{config}");
}

/// Returns the call that writes an ignore file for `sub`.
fn ignore_sub(user: &User) -> String {
    format!("file_path = '{}', content = 'sub/'", user.project().join(".gitignore").display())
}

fn init_sub(user: &User) {
    let mut init = Command::new("git");
    assert!(init.args(["init", "--quiet", "sub"]).current_dir(user.project()).status().unwrap().success());
}

/// The repositories below a workspace are searched before the first call that could hide one from the search.
#[test]
fn a_repository_that_is_ignored_before_the_first_command_stays_protected() {
    if !pintle_test_conditions::BUBBLEWRAP.is_present() {
        return;
    }
    let line = format!("command = '''{SETTINGS} >>sub/.git/config; touch ran'''");
    // With `--confine`, file tools do not use the sandboxed environment.
    for flags in [Vec::new(), vec!["--confine"]] {
        let user = User::new("[[turn]]\ntext = \"Done.\"\n");
        init_sub(&user);
        let ignore = ignore_sub(&user);
        let user = user.with_turns(&turns(&[("Write", &ignore), ("Bash", &line)]));
        let output = user.run_command("Go").args(&flags).output().unwrap();
        assert!(user.project().join("ran").exists(), "{flags:?}: {output:?}");
        let config = std::fs::read_to_string(user.project().join("sub/.git/config")).unwrap();
        assert!(!config.contains("fsmonitor"), "{flags:?}: {config}");
    }
}

/// A run that only answers searches no workspace, however large it is.
#[test]
fn a_workspace_is_searched_before_the_first_change_and_not_at_the_start() {
    if !pintle_test_conditions::BUBBLEWRAP.is_present() {
        return;
    }
    let user = User::new("[[turn]]\ntext = \"Done.\"\n");
    init_sub(&user);
    let has_record = |user: &User| {
        let records =
            std::fs::read_dir(user.at(".local/state/pintle/watched")).into_iter().flatten().flatten();
        let mut records = records.filter_map(|record| std::fs::read_to_string(record.path()).ok());
        records.any(|record| record.contains("sub/.git"))
    };
    assert_eq!(run(&user).0, Some(0));
    assert!(!has_record(&user), "it was searched at the start");
    let user = user.with_turns(&turns(&[("Read", "file_path = 'sub/.git/HEAD'")]));
    assert_eq!(run(&user).0, Some(0));
    assert!(!has_record(&user), "it was searched before a call that reads");
    let ignore = ignore_sub(&user);
    let user = user.with_turns(&turns(&[("Write", &ignore)]));
    assert_eq!(run(&user).0, Some(0));
    assert!(has_record(&user), "it was not searched before a change");
}

#[test]
fn file_tools_do_not_change_the_steps_of_a_rebase() {
    let names = [
        ".git/rebase-merge/git-rebase-todo",
        ".git/rebase-apply/next",
        ".git/sequencer/todo",
        ".git/worktrees/a/rebase-merge/git-rebase-todo",
        ".git/modules/a/rebase-merge/git-rebase-todo",
    ];
    let others = ["rebase-merge/git-rebase-todo", ".git/other"];
    let arguments: Vec<String> = names
        .iter()
        .chain(&others)
        .map(|name| format!("file_path = '{name}', content = 'exec touch x'"))
        .collect();
    let calls: Vec<(&str, &str)> = arguments.iter().map(|arguments| ("Write", arguments.as_str())).collect();
    let user = User::new(&turns(&calls));
    user.run_with_denials("Go");
    for (number, name) in names.iter().enumerate() {
        let answered = user.request(number + 1);
        assert!(!user.project().join(name).exists(), "{name}: {answered}");
        assert!(answered.contains(&format!("{name} is protected")), "{name}: {answered}");
    }
    for name in others {
        assert!(user.project().join(name).exists(), "{name}");
    }
}

/// Git's own housekeeping, and settings that start no program, end no run. At the level *full* the settings stay as they are.
#[test]
fn everyday_git_goes_through_at_each_level() {
    let lines = [
        "git gc -q && git checkout -q -b topic origin/main",
        "git init -q mine && git -C mine config user.name me && git -C mine config user.email me@example.org",
        "git clone -q --filter=blob:none file://$PWD/../origin partial",
        "git -C partial gc -q",
    ];
    let user = User::new("[[turn]]\ntext = \"Done.\"\n");
    let git = |directory: &std::path::Path, arguments: &[&str]| {
        let mut command = Command::new("git");
        command.args(arguments).current_dir(directory).env("HOME", user.at(""));
        assert!(command.status().unwrap().success(), "{arguments:?}");
    };
    let origin = user.at("origin");
    std::fs::create_dir(&origin).unwrap();
    git(&origin, &["init", "--quiet", "--initial-branch=main"]);
    git(&origin, &["commit", "--quiet", "--allow-empty", "--message=first"]);
    git(&origin, &["config", "uploadpack.allowFilter", "true"]);
    git(&user.project(), &["remote", "add", "origin", "../origin"]);
    git(&user.project(), &["pull", "--quiet", "origin", "main"]);
    git(&user.project(), &["fetch", "--quiet"]);
    let mut user = user;
    for (level, condition) in [
        ("full", Some(pintle_test_conditions::BUBBLEWRAP)),
        ("writes", Some(pintle_test_conditions::LANDLOCK)),
        ("off", None),
    ] {
        if condition.is_some_and(|condition| !condition.is_present()) {
            continue;
        }
        let checked = format!("set -e; exec 2>errors; {}; test ! -s errors; touch passed", lines.join("; "));
        user = user.with_turns(&commands(&[&checked]));
        let output = user.run_command("Go").args(["--sandbox", level]).output().unwrap();
        let errors = std::fs::read_to_string(user.project().join("errors")).unwrap_or_default();
        assert!(output.status.success(), "{level}: {output:?} {errors}");
        assert!(user.project().join("passed").exists(), "{level}: {errors} {}", user.request(1));
        for name in ["errors", "passed"] {
            std::fs::remove_file(user.project().join(name)).unwrap();
        }
        for name in ["mine", "partial"] {
            std::fs::remove_dir_all(user.project().join(name)).unwrap();
        }
        let mut back = Command::new("git");
        back.args(["checkout", "--quiet", "--detach"]).current_dir(user.project());
        assert!(back.status().unwrap().success());
        let mut remove = Command::new("git");
        remove.args(["branch", "--quiet", "-D", "topic"]).current_dir(user.project());
        assert!(remove.status().unwrap().success());
    }
}
