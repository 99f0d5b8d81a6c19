//! Rules of the user, of the project and of the command line.

use super::user::User;
use super::worktrees::is_confined;

/// Prints files that rules deny to read, with a command.
const READING: &str = r#"
    [[turn]]
    [[turn.call]]
    tool = "Bash"
    arguments = { command = "cat .env sub/.env keys/one flagged kept; ls keys; mv .env moved; cat moved; true" }
    [[turn]]
    text = "Done."
    "#;

#[test]
fn a_file_that_a_rule_denies_to_read_is_hidden_from_commands() {
    if !pintle_test_conditions::BUBBLEWRAP.is_present() {
        return;
    }
    let user = User::new(READING);
    let project = user.project();
    for (file, text) in [
        (".env", "token-of-the-root"),
        ("sub/.env", "token-below"),
        ("keys/one", "token-of-keys"),
        ("flagged", "token-of-the-flag"),
        ("kept", "not-denied"),
        (".gitignore", ".env"),
        (".pintle/rules.toml", "deny = [\"@read(keys/**)\"]"),
    ] {
        std::fs::create_dir_all(project.join(file).parent().unwrap()).unwrap();
        std::fs::write(project.join(file), text).unwrap();
    }
    std::fs::create_dir_all(user.at(".config/pintle")).unwrap();
    std::fs::write(user.at(".config/pintle/rules.toml"), "deny = [\"@read(**/.env)\"]").unwrap();
    let run = |more: &[&str]| {
        let mut command = user.run_command("Print the files");
        let output = command.args(more).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        user.request(1)
    };
    let result = run(&["--deny", "read_file(flagged)"]);
    assert!(result.contains("not-denied"), "{result}");
    for token in ["token-of-the-root", "token-below", "token-of-keys", "token-of-the-flag"] {
        assert!(!result.contains(token), "{token}: {result}");
    }
    for file in [".env", "sub/.env", "keys/one", "flagged"] {
        assert!(project.join(file).exists(), "{file} is still there");
    }
}

/// Limits on file tools limit no rule: the files of projects are read without them.
#[test]
fn rules_of_a_project_above_apply_to_confined_file_tools() {
    for flags in [Vec::new(), vec!["--confine"], vec!["--confine", "--no-sandbox"]] {
        let user = User::new(
            "[[turn]]\n[[turn.call]]\ntool = \"Read\"\narguments = { file_path = \"secret\" }\n[[turn]]\ntext = \"Done.\"\n",
        );
        for (file, text) in
            [("below/secret", "token-below"), (".pintle/rules.toml", "deny = [\"@read(below/secret)\"]")]
        {
            std::fs::create_dir_all(user.project().join(file).parent().unwrap()).unwrap();
            std::fs::write(user.project().join(file), text).unwrap();
        }
        let mut command = user.run_command("Go");
        let output = command.args(&flags).current_dir(user.project().join("below")).output().unwrap();
        let result = user.request(1);
        assert!(result.contains("@read(below/secret)"), "{flags:?}: {result} {output:?}");
        assert!(!result.contains("token-below"), "{flags:?}: {result}");
    }
}

#[test]
fn a_denied_file_with_hard_links_is_hidden_under_its_own_name() {
    if !pintle_test_conditions::BUBBLEWRAP.is_present() {
        return;
    }
    let user = User::new(&script(&["cat secret; echo end"]));
    std::fs::write(user.project().join("secret"), "token-of-two-names").unwrap();
    std::fs::hard_link(user.project().join("secret"), user.at("other-name")).unwrap();
    let output = user.run_command("Print it").args(["--deny", "@read(secret)"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let notices = String::from_utf8(output.stderr).unwrap();
    assert!(notices.contains("only under this name"), "{notices}");
    let result = results(&user).remove(0);
    assert!(result.contains("end") && !result.contains("token-of-two-names"), "{result}");
}

#[test]
fn a_hook_names_a_tool_by_its_name_in_any_toolset() {
    for name in ["Bash", "shell", "exec_command", "run_shell_command"] {
        let user = User::new(&script(&["touch made"]));
        std::fs::create_dir_all(user.at(".config/pintle")).unwrap();
        let hook = format!("[[PreToolUse]]\nmatcher = '{name}'\ncommand = 'exit 2'\nrequired = true\n");
        std::fs::write(user.at(".config/pintle/hooks.toml"), hook).unwrap();
        let output = user.run_command("Go").output().unwrap();
        assert!(!user.project().join("made").exists(), "{name}: {output:?}");
    }
}

#[test]
fn a_denial_names_its_hook_and_an_unknown_tool_is_noted() {
    let user = User::new(&script(&["touch made"]));
    std::fs::create_dir_all(user.at(".config/pintle")).unwrap();
    let hooks =
        "[[PreToolUse]]\nmatcher = 'Bash|deploy_site|mcp__x__y|z*'\ncommand = 'echo not-now >&2; exit 2'\n";
    std::fs::write(user.at(".config/pintle/hooks.toml"), hooks).unwrap();
    let output = user.run_command("Go").output().unwrap();
    assert!(!user.project().join("made").exists(), "{output:?}");
    let result = user.request(1);
    assert!(result.contains("not-now (hook ") && result.contains("hooks.toml:"), "{result}");
    let said = String::from_utf8(output.stderr).unwrap();
    let notice = "is for the tool `deploy_site`, which this session does not have";
    assert_eq!(said.matches(notice).count(), 1, "{said}");
    assert!(!said.contains("mcp__x__y"), "{said}");
}

#[test]
fn a_hook_allows_a_call_only_with_the_arguments_that_it_was_run_with() {
    if !is_confined() {
        return;
    }
    let answer = |fields: &str| {
        format!(r#"echo '{{"hookSpecificOutput": {{"hookEventName": "PreToolUse", {fields}}}}}'"#)
    };
    let allow = answer(r#""permissionDecision": "allow""#);
    let change = answer(r#""updatedInput": {"command": "touch changed"}"#);
    let allow_change =
        answer(r#""permissionDecision": "allow", "updatedInput": {"command": "touch changed"}"#);
    let cases: [(&[&str], &[&str]); 4] = [
        (&[&allow], &["made"]),
        (&[&allow, &change], &[]),
        (&[&change, &allow], &[]),
        (&[&allow, &allow_change], &["changed"]),
    ];
    for (commands, made) in cases {
        let user = User::new(&script(&["touch made"]));
        std::fs::create_dir_all(user.at(".config/pintle")).unwrap();
        let hook = |command: &&str| format!("[[PreToolUse]]\ncommand = \"\"\"\n{command}\"\"\"\n");
        let hooks: String = commands.iter().map(hook).collect();
        std::fs::write(user.at(".config/pintle/hooks.toml"), hooks).unwrap();
        let output = user.run_command("Go").args(["--mode", "ask"]).output().unwrap();
        let files = ["made", "changed"].into_iter().filter(|file| user.project().join(file).exists());
        assert_eq!(files.collect::<Vec<_>>(), made, "{commands:?}: {output:?}");
        let needs_approval =
            results(&user).concat().contains("it needs approval, but no terminal is available");
        assert_eq!(needs_approval, made.is_empty(), "{commands:?}: {output:?}");
    }
}

/// Returns a script that makes these command lines in one response, and answers.
fn script(lines: &[&str]) -> String {
    let call =
        |line: &&str| format!("[[turn.call]]\ntool = \"Bash\"\narguments = {{ command = '''{line}''' }}\n");
    let calls: String = lines.iter().map(call).collect();
    format!("[[turn]]\n{calls}[[turn]]\ntext = \"Done.\"\n")
}

/// Returns the results of the calls, by the order of their lines.
pub(super) fn results(user: &User) -> Vec<String> {
    let request: serde_json::Value = serde_json::from_str(&user.request(1)).unwrap();
    let last = request["messages"].as_array().unwrap().last().unwrap();
    let blocks = last["content"].as_array().unwrap().iter();
    blocks.filter(|block| block["type"] == "tool_result").map(|block| block["content"].to_string()).collect()
}

#[test]
fn each_spelling_of_a_denied_command_is_denied() {
    let lines = [
        "git push origin main",
        "git -C . push",
        "git -c a.b=c push",
        "git --git-dir=.git --no-pager push",
        "env -S 'git push'",
        "env A=b git push",
        "sudo -n git push",
        "timeout 5 git push",
        "nice -n 5 git push",
        "nohup setsid git push",
        "echo push | xargs git",
        "git $(echo push)",
        "sh -c 'git push'",
        "find . -name x -exec git push {} +",
        "git status; git push",
        r"git $'\x70ush'",
        "git pus{h,}",
        "git -C $(pwd) push",
        "git >/dev/stdout push",
        "$GIT push",
        "eval \"$LINE\"",
        "sh <<E\ngit push\nE",
        "git -c alias.p=push p",
        "p() { git \"$@\"; }; p push",
    ];
    let user = User::new(&script(&lines));
    std::fs::create_dir_all(user.at(".config/pintle")).unwrap();
    std::fs::write(user.at(".config/pintle/rules.toml"), "deny = [\"shell(git push *)\"]").unwrap();
    user.run_with_denials("Push");
    let results = results(&user);
    assert_eq!(results.len(), lines.len(), "{results:?}");
    for (line, result) in lines.iter().zip(results) {
        assert!(result.contains("shell(git push *)"), "{line}: {result}");
    }
}

#[test]
fn a_text_with_a_denied_command_is_denied_only_where_it_may_run() {
    let lines = [
        ("echo 'remember to git push' | grep -c 'git push'", None),
        ("cat <<'E'\ngit push\nE", None),
        ("git {status,--short}", None),
        ("git st{atus,ash}", None),
        ("git {-p,push}", Some("shell(git push *)")),
        ("echo git push | sh", Some("another command of the line may run the output")),
        ("foo git push", Some("an argument of `foo` contains the denied command, and `foo` may run it")),
        ("$X status", Some("the name of the program is computed by the shell")),
    ];
    let user = User::new(&script(&lines.map(|(line, _)| line)));
    std::fs::create_dir_all(user.at(".config/pintle")).unwrap();
    std::fs::write(user.at(".config/pintle/rules.toml"), "deny = [\"shell(git push *)\"]").unwrap();
    user.run_with_denials("Print");
    let results = results(&user);
    assert_eq!(results.len(), lines.len(), "{results:?}");
    for ((line, reason), result) in lines.iter().zip(results) {
        assert_eq!(result.contains("shell(git push *)"), reason.is_some(), "{line}: {result}");
        assert!(result.contains(reason.unwrap_or_default()), "{line}: {result}");
    }
}

#[test]
fn an_allowed_command_does_not_write_by_an_option() {
    let lines = [
        ("git log --oneline", false),
        ("git log --output=planted", true),
        ("git --no-pager log --output planted", true),
        ("sed -n 1p .git/HEAD", false),
        ("sed -n 'w planted' .git/HEAD", true),
        ("uniq .git/HEAD", false),
        ("uniq .git/HEAD planted", true),
        ("shuf -o planted .git/HEAD", true),
        ("git archive -o planted HEAD", true),
        ("make SHELL=./x all", true),
        ("gcc -oplanted x.c", true),
        ("python3 -m pytest --junitx=planted", true),
    ];
    let user = User::new(&script(&lines.map(|(line, _)| line)));
    let mut command = user.run_command("Look");
    command.args(["--mode", "ask"]);
    let allowed = ["git log *", "sed *", "uniq *", "shuf *", "git archive *", "make *", "gcc *"];
    for allowed in allowed.into_iter().chain(["python3 -m pytest *"]) {
        command.args(["--allow", &format!("shell({allowed})")]);
    }
    let output = command.output().unwrap();
    let results = results(&user);
    let is_denied: Vec<bool> = results.iter().map(|result| result.contains("denied")).collect();
    assert_eq!(is_denied, lines.map(|(_, is_denied)| is_denied), "{results:?} {output:?}");
    assert!(!user.project().join("planted").exists());
}
