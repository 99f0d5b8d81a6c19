//! Tools that manifests of the user and of projects declare.

use std::path::Path;

use super::grants;
use super::user::User;
use super::worktrees::is_confined;

/// Calls the tool, and answers.
const CALLING: &str = r#"
    [[turn]]
    [[turn.call]]
    tool = "count_words"
    arguments = { file = "text.txt" }
    [[turn]]
    text = "Done."
    "#;

const MANIFEST: &str = r#"
name = "count_words"
description = "Counts the words of a file."
program = "python3"
arguments = ["{manifest_dir}/count.py", "{file}"]
effect = "EFFECT"
reads = ["{file}"]
timeout = "TIMEOUT"

[parameters]
type = "object"
required = ["file"]

[parameters.properties.file]
type = "string"
"#;

/// Writes a file as well, which a tool that reads cannot.
const COUNT: &str = "import sys\nprint('words:', len(open(sys.argv[1]).read().split()))\n\
    try:\n    open('made', 'w').write('x')\nexcept OSError as error:\n    print('not-written:', error.strerror)\n";

const SLEEP: &str = "import time\nprint('before-the-sleep', flush=True)\ntime.sleep(600)\n";

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Creates a user with the tool in a directory of the home.
fn user_with(effect: &str, timeout: &str, program: &str) -> User {
    let user = User::new(CALLING);
    let manifest = MANIFEST.replace("EFFECT", effect).replace("TIMEOUT", timeout);
    write(&user.at("tools/count.toml"), &manifest);
    write(&user.at("tools/count.py"), program);
    let directory = user.at("tools");
    write(
        &user.at(".config/pintle/config.toml"),
        &format!("tool_dirs = [{:?}]\n", directory.to_str().unwrap()),
    );
    write(&user.project().join("text.txt"), "one two three");
    user
}

fn run(user: &User, flags: &[&str]) -> (Option<i32>, String, String) {
    let output = user.run_command("Count").args(flags).output().unwrap();
    (output.status.code(), user.request(1), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_tool_runs_in_the_sandbox_with_its_effect() {
    if !is_confined() {
        return;
    }
    for (effect, flags, made) in [
        ("read", &[] as &[&str], false),
        ("read", &["--mode", "plan"], false),
        ("execute", &[], true),
        ("execute", &["--mode", "plan"], false),
    ] {
        let user = user_with(effect, "60s", COUNT);
        let (code, result, notices) = run(&user, flags);
        assert_eq!(code, Some(0), "{effect} {flags:?}: {result} {notices}");
        assert!(
            result.contains("words: 3") && result.contains("Exit code: 0"),
            "{effect} {flags:?}: {result}"
        );
        assert_eq!(user.project().join("made").exists(), made, "{effect} {flags:?}: {result}");
        assert_eq!(result.contains("not-written:"), !made, "{effect} {flags:?}: {result}");
        // The model is offered the schema of the manifest.
        assert!(user.request(0).contains("Counts the words of a file."), "{effect}");
        let listed = user.pintle(&["sessions", "list"]);
        let id = listed.split_whitespace().next().unwrap();
        assert!(user.pintle(&["audit", id]).contains("count_words"), "{effect} {flags:?}");
    }
}

#[test]
fn rules_modes_and_grants_judge_the_tool() {
    if !is_confined() {
        return;
    }
    // A call that needs approval ends a run without a user with 5. A rule denies without a question.
    for (flags, expected) in [
        (["--deny", "count_words"], 0),
        (["--deny", "@read(text.txt)"], 0),
        (["--mode", "ask"], 5),
        (["--mode", "edit"], 5),
    ] {
        let user = user_with("execute", "60s", COUNT);
        let (code, result, notices) = run(&user, &flags);
        assert_eq!(code, Some(expected), "{flags:?}: {result} {notices}");
        assert!(!result.contains("words: 3"), "{flags:?}: {result}");
        assert!(!user.project().join("made").exists(), "{flags:?}");
    }
    // In plan mode, a tool that declares changes does not run.
    let user = user_with("write", "60s", COUNT);
    let manifest = std::fs::read_to_string(user.at("tools/count.toml")).unwrap();
    write(&user.at("tools/count.toml"), &manifest.replace("reads =", "writes = ['made']\nreads ="));
    let (_, result, _) = run(&user, &["--mode", "plan"]);
    assert!(!result.contains("words: 3") && !user.project().join("made").exists(), "{result}");
    // Under a grant, a declared effect does not lower the effect of a program.
    for (effect, runs) in [("read", false), ("execute", true)] {
        let user = user_with("read", "60s", COUNT);
        let file = grants::grant(&user, "g.json", "/", true);
        let text = std::fs::read_to_string(&file).unwrap();
        let text = text.replace("\"execute\"", &format!("\"{effect}\""));
        std::fs::write(&file, text).unwrap();
        let (_, result, notices) = run(&user, &["--grant", file.to_str().unwrap()]);
        assert_eq!(result.contains("words: 3"), runs, "{effect}: {result} {notices}");
    }
}

#[test]
fn a_tool_is_stopped_at_its_time_out() {
    if !is_confined() {
        return;
    }
    let user = user_with("read", "1s", SLEEP);
    let (code, result, notices) = run(&user, &[]);
    assert_eq!(code, Some(0), "{notices}");
    assert!(result.contains("before-the-sleep") && result.contains("timed out after 1000ms"), "{result}");
    assert!(
        !result.contains("by setting the timeout_ms parameter"),
        "the tool has no such argument: {result}"
    );
}

#[test]
fn a_wrong_manifest_disables_only_its_tool() {
    if !is_confined() {
        return;
    }
    let user = user_with("read", "60s", COUNT);
    write(&user.at("outside.py"), COUNT);
    let good = std::fs::read_to_string(user.at("tools/count.toml")).unwrap();
    let other = |name: &str| good.replace("count_words", name);
    write(&user.at("tools/a.toml"), &other("a").replace("effect", "efect"));
    write(&user.at("tools/b.toml"), &other("b").replace("\"python3\"", "\"../outside.py\""));
    std::os::unix::fs::symlink(user.at("outside.py"), user.at("tools/link.py")).unwrap();
    write(&user.at("tools/c.toml"), &other("c").replace("count.py", "link.py"));
    write(&user.at("tools/d.toml"), &other("Bash"));
    let (code, result, notices) = run(&user, &[]);
    assert!(code == Some(0) && result.contains("words: 3"), "{result} {notices}");
    for expected in [
        "a.toml: line 6: unknown field `efect`",
        "b.toml: line 4: `program`: found `../outside.py`, which is outside of the directory",
        "link.py is a link to ",
        "there is another tool with the name `Bash`",
    ] {
        assert_eq!(notices.matches(expected).count(), 1, "{expected}: {notices}");
    }
    for (name, expected) in [("a", "line 6"), ("b", "line 4"), ("c", "is a link to"), ("d", "`name`")] {
        let file = user.at(&format!("tools/{name}.toml"));
        let output = user.command(&["tools", "check", file.to_str().unwrap()]).output().unwrap();
        let printed = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{name}: {printed}");
        assert!(printed.contains(&format!("{name}.toml")) && printed.contains(expected), "{name}: {printed}");
    }
    let checked = user.pintle(&["tools", "check", user.at("tools/count.toml").to_str().unwrap()]);
    assert!(checked.contains("file (string)") && checked.contains("no mistakes"), "{checked}");
}

#[test]
fn arguments_are_words_and_no_options() {
    if !is_confined() {
        return;
    }
    let call = |file: &str| {
        format!("[[turn]]\n[[turn.call]]\ntool = \"count_words\"\narguments = {{ file = {file:?} }}\n")
    };
    let values = ["$(touch made)", "`touch made`", "a; touch made", "' ; touch made ; '", "--version"];
    let turns: String = values.iter().map(|value| call(value)).collect();
    let user = user_with("execute", "60s", COUNT).with_turns(&format!("{turns}[[turn]]\ntext = \"Done.\"\n"));
    let output = user.run_command("Count").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let results = user.request(values.len());
    assert_eq!(results.matches("FileNotFoundError").count(), values.len() - 1, "{results}");
    assert!(results.contains("expected one that does not begin with `-`"), "{results}");
    assert!(!user.project().join("made").exists(), "{results}");
}

#[test]
fn a_session_cannot_change_its_tools() {
    if !is_confined() {
        return;
    }
    let turns = r#"
        [[turn]]
        [[turn.call]]
        tool = "Bash"
        arguments = { command = "echo 'print(\"replaced-program\")' >tools/count.py; cat tools/count.py" }
        [[turn]]
        [[turn.call]]
        tool = "Write"
        arguments = { file_path = "tools/other.toml", content = "x" }
        [[turn]]
        [[turn.call]]
        tool = "count_words"
        arguments = { file = "text.txt" }
        [[turn]]
        text = "Done."
        "#;
    let user = User::new(turns);
    let project = user.project();
    let manifest = MANIFEST.replace("EFFECT", "read").replace("TIMEOUT", "60s");
    write(&project.join(".pintle/config.toml"), "tool_dirs = [\"../tools\"]\n");
    write(&project.join("tools/count.toml"), &manifest);
    write(&project.join("tools/count.py"), COUNT);
    write(&project.join("text.txt"), "one two three");
    user.pintle(&["trust"]);
    user.run_with_denials("Change the tools");
    let results = user.request(3);
    let replaced = std::fs::read_to_string(project.join("tools/count.py")).unwrap();
    assert!(replaced.contains("replaced-program"), "a command can write there: {results}");
    assert!(results.contains("count.py has changed since the session started"), "{results}");
    assert!(!project.join("tools/other.toml").exists(), "{results}");
}

/// Tools of a project apply only while it is trusted with their programs.
#[test]
fn tools_of_a_project_need_trust() {
    if !is_confined() {
        return;
    }
    let create = || {
        let user = User::new(CALLING);
        let manifest = MANIFEST.replace("EFFECT", "read").replace("TIMEOUT", "60s");
        let project = user.project();
        write(&project.join(".pintle/config.toml"), "tool_dirs = [\"tools\"]\n");
        write(&project.join(".pintle/tools/count.toml"), &manifest);
        write(&project.join(".pintle/tools/count.py"), COUNT);
        write(&project.join("text.txt"), "one two three");
        user
    };
    let user = create();
    let (_, result, notices) = run(&user, &[]);
    assert!(!result.contains("words: 3"), "{result}");
    assert!(notices.contains("leaves out its tools (count_words"), "{notices}");

    let user = create();
    let printed = user.pintle(&["trust"]);
    assert!(printed.contains("tool: count_words (python3, read)"), "{printed}");
    let (_, result, notices) = run(&user, &[]);
    assert!(result.contains("words: 3"), "{result} {notices}");

    let user = create();
    user.pintle(&["trust"]);
    write(&user.project().join(".pintle/tools/count.py"), "print('words: 3')\n");
    let (_, result, notices) = run(&user, &[]);
    assert!(!result.contains("words: 3"), "{result}");
    assert!(notices.contains("is no longer trusted, since its files have changed"), "{notices}");
}
