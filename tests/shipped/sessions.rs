//! Sessions of a project that was moved, sessions whose record is damaged, and patches of what sessions changed.

use std::path::PathBuf;
use std::process::Output;

use pintle_testkit::Dialect;
use serde_json::Value;

use super::repository::git;
use super::user::User;
use super::worktrees::is_confined;

const ANSWERS: &str = r#"
    [[turn]]
    text = "One."
    [[turn]]
    text = "Two."
    [[turn]]
    text = "Three."
    "#;

/// Runs a task with further flags in a directory.
fn run(user: &User, task: &str, flags: &[&str], directory: &str) -> Output {
    let url = user.model.base_url(Dialect::AnthropicMessages);
    let mut arguments = vec!["run", "--provider", "anthropic", "--base-url", &url];
    arguments.extend(flags);
    arguments.push(task);
    user.command(&arguments).current_dir(user.at(directory)).output().unwrap()
}

fn sessions(user: &User, arguments: &[&str], directory: &str) -> Output {
    let arguments = [&["sessions"], arguments].concat();
    user.command(&arguments).current_dir(user.at(directory)).output().unwrap()
}

/// Returns the ids of the sessions of a directory, the newest first.
pub(super) fn listed(user: &User, directory: &str) -> Vec<String> {
    let output = sessions(user, &["list", "--output", "json"], directory);
    let listed: Value = serde_json::from_slice(&output.stdout).unwrap();
    listed.as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_session_follows_its_project() {
    let user = User::new(ANSWERS);
    assert!(run(&user, "First", &[], "project").status.success());
    let id = listed(&user, "project").remove(0);
    std::fs::rename(user.project(), user.at("moved")).unwrap();
    // What needs the old directory says how the session gets the new one.
    let way_out = format!("`pintle run --resume {id} --dir DIR`");
    let rewound = format!("{id}@0");
    for output in [
        run(&user, "Go", &["--resume", &id], "moved"),
        sessions(&user, &["diff", &id], "moved"),
        sessions(&user, &["rewind", &rewound, "--dry-run"], "moved"),
    ] {
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains("does not exist") && error.contains(&way_out), "{error}");
    }
    let output = run(&user, "Second", &["--resume", &id, "--dir", "."], "moved");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(listed(&user, "moved"), [id.as_str()]);
    for arguments in [["diff", id.as_str()].as_slice(), &["rewind", &rewound, "--dry-run"]] {
        let output = sessions(&user, arguments, "moved");
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    }
    let output = run(&user, "Third", &["--continue"], "moved");
    assert!(text(&output.stdout).contains("Three."), "{output:?}");
    assert_eq!(listed(&user, "moved"), [id]);
}

#[test]
fn prune_deletes_sessions_of_its_directory_unless_all_are_selected() {
    let user = User::new(ANSWERS);
    std::fs::create_dir(user.at("other")).unwrap();
    for directory in ["other", "project", "project"] {
        assert!(run(&user, "First", &[], directory).status.success());
    }
    let pruned = text(&sessions(&user, &["prune", "--keep", "1"], "project").stdout);
    let counts = format!("deleted 1 of 2 sessions of {}", user.project().display());
    assert_eq!(pruned.lines().last(), Some(counts.as_str()), "{pruned}");
    assert_eq!([listed(&user, "project").len(), listed(&user, "other").len()], [1, 1]);
    let pruned = text(&sessions(&user, &["prune", "--keep", "1", "--all"], "project").stdout);
    assert_eq!(pruned.lines().last(), Some("deleted 1 of 2 sessions of all directories"), "{pruned}");
    assert_eq!([listed(&user, "project").len(), listed(&user, "other").len()], [1, 0]);
}

/// Returns the files of the session's record, in order.
pub(super) fn segments(user: &User, id: &str) -> Vec<PathBuf> {
    let directory = user.at(".local/state/pintle/sessions/sessions").join(id);
    let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl")).collect();
    files.sort();
    files
}

/// What comes before the damage can be shown, exported and forked; the session itself does not continue.
#[test]
fn what_is_before_damage_can_be_used() {
    // A crash of the machine leaves zeros: in the middle of a file, or at its beginning.
    for is_at_beginning in [false, true] {
        let user = User::new(ANSWERS);
        assert!(run(&user, "First", &[], "project").status.success());
        let id = listed(&user, "project").remove(0);
        for task in ["Second", "Third"] {
            assert!(run(&user, task, &["--resume", &id], "project").status.success());
        }
        let last = segments(&user, &id).pop().unwrap();
        let mut bytes = std::fs::read(&last).unwrap();
        let start = if is_at_beginning { 0 } else { bytes.len() / 2 };
        bytes[start..start + 300].fill(0);
        std::fs::write(&last, bytes).unwrap();

        for arguments in [
            ["show", &id].as_slice(),
            &["export", &id, "--format", "markdown"],
            &["export", &id, "--format", "html"],
            &["export", &id, "--format", "jsonl"],
            &["show", &id, "--output", "json"],
        ] {
            let output = sessions(&user, arguments, "project");
            let (shown, notice) = (text(&output.stdout), text(&output.stderr));
            assert_eq!(output.status.code(), Some(1), "{arguments:?}: {output:?}");
            assert!(shown.contains("Two."), "{arguments:?}: {output:?}");
            let read = "entries before it can be read, and everything from there on is left out";
            assert!(notice.contains(read), "{arguments:?}: {notice}");
            let says_so = shown.contains("The rest of the record cannot be read")
                || shown.contains(r#""damage":"#)
                || arguments.contains(&"jsonl");
            assert!(says_so, "{arguments:?}: {shown}");
        }
        let refused = run(&user, "Go", &["--resume", &id], "project");
        let error = text(&refused.stderr);
        assert!(!refused.status.success() && error.contains(&format!("--fork {id}@N")), "{error}");
        let whole = run(&user, "Go", &["--fork", &id], "project");
        assert!(!whole.status.success(), "{whole:?}");
        let forked = run(&user, "Fourth", &["--fork", &format!("{id}@4")], "project");
        // The history of the fork has two answers, so the model gives its third one.
        assert!(text(&forked.stdout).contains("Three."), "{forked:?}");
        let request = user.request(3);
        assert!(request.contains("Second") && request.contains("Two."), "{request}");
        assert!(!request.contains("Third"), "{request}");
    }
}

const CHANGES: &str = r#"
    [[turn]]
    [[turn.call]]
    tool = "Write"
    arguments = { file_path = "made.txt", content = "made" }
    [[turn.call]]
    tool = "Bash"
    arguments = { command = """printf '2\\r\\n' >text; printf '\\0\\001\\377' >binary; printf 'caf\\351\\n' >latin; \
        chmod 755 tool; rm gone; touch 'two words' 'a\"b'; printf '\\0\\0' >new""" }
    [[turn]]
    text = "Done."
    "#;

/// Creates a user with a commit of files in a subdirectory, which the model changes.
fn user_with_subdirectory() -> User {
    let user = User::new(CHANGES);
    std::fs::create_dir(user.project().join("sub")).unwrap();
    for (name, content) in
        [("text", &b"1\r\n"[..]), ("binary", b"\0"), ("latin", b"caf\xe8\n"), ("tool", b""), ("gone", b"x")]
    {
        std::fs::write(user.project().join("sub").join(name), content).unwrap();
    }
    git(&user, &["add", "--all"]);
    git(&user, &["commit", "--quiet", "--message=base"]);
    user
}

/// Returns the tree of all files of a working tree.
fn tree(user: &User, root: &str) -> String {
    git(user, &["-C", root, "add", "--all"]);
    git(user, &["-C", root, "write-tree"])
}

#[test]
fn a_printed_diff_applies_at_the_top_of_a_clone() {
    if !is_confined() {
        return;
    }
    let cases: [(&[&str], &[&str]); 2] = [(&[], &["sessions"]), (&["--worktree"], &["sessions", "worktree"])];
    for (flags, commands) in cases {
        let user = user_with_subdirectory();
        let output = run(&user, "Go", flags, "project/sub");
        assert!(output.status.success(), "{output:?}");
        let rows: Value =
            serde_json::from_str(&user.pintle(&["sessions", "list", "--all", "--output", "json"])).unwrap();
        let id = rows[0]["id"].as_str().unwrap();
        let patches: Vec<Output> =
            commands.iter().map(|command| user.command(&[*command, "diff", id]).output().unwrap()).collect();
        let worktrees: Value =
            serde_json::from_str(&user.pintle(&["worktree", "list", "--output", "json"])).unwrap();
        let changed = tree(&user, worktrees[0]["directory"].as_str().unwrap_or("."));
        assert_ne!(changed, git(&user, &["rev-parse", "HEAD^{tree}"]), "{flags:?}");
        for (command, patch) in commands.iter().zip(patches) {
            assert!(patch.status.success(), "{command}: {patch:?}");
            std::fs::write(user.at("patch"), &patch.stdout).unwrap();
            let clone = format!("../clone-{command}");
            git(&user, &["clone", "--quiet", ".", &clone]);
            git(&user, &["-C", &clone, "apply", "--check", "../patch"]);
            git(&user, &["-C", &clone, "apply", "../patch"]);
            assert_eq!(tree(&user, &clone), changed, "{command}: {}", text(&patch.stdout));
        }
    }
}

/// A script answers under the name of a model of the catalog, and costs nothing.
#[test]
fn a_scripted_session_has_no_price_in_any_output() {
    let user = User::new(ANSWERS);
    let script = user.at("script.toml");
    std::fs::write(&script, format!("name = \"scripted\"\n{ANSWERS}")).unwrap();
    let script = script.to_str().unwrap();
    let scripted = ["--provider", "scripted", "--dialect", "anthropic", "--script", script];
    // A limit on cost stops nothing that has no price.
    let flags = ["--max-cost", "0.0001", "--output", "json"];
    let outcome = user.pintle(&[&["run"][..], &scripted[..], &flags[..], &["First"][..]].concat());
    let outcome: Value = serde_json::from_str(outcome.lines().last().unwrap()).unwrap();
    assert!(outcome["usage"]["total_tokens"].as_u64() > Some(0), "{outcome}");
    assert_eq!(outcome.get("cost_usd"), None, "{outcome}");
    let id = listed(&user, "project").remove(0);
    let json = |arguments: &[&str]| -> Value { serde_json::from_str(&user.pintle(arguments)).unwrap() };
    let row = json(&["sessions", "list", "--output", "json"])[0].clone();
    assert_eq!((row.get("cost_usd"), row["tokens"].as_u64() > Some(0)), (None, true), "{row}");
    let shown = json(&["sessions", "show", &id, "--output", "json"]);
    assert_eq!(shown["session"].get("cost_usd"), None, "{shown}");
    for arguments in [&["sessions", "list"][..], &["audit", &id]] {
        let text = user.pintle(arguments);
        assert!(!text.contains('$'), "{arguments:?}: {text}");
    }
    let ended = user.command(&[&["run"][..], &scripted[..], &["Second"][..]].concat()).output().unwrap();
    let screen = text(&ended.stdout) + &text(&ended.stderr);
    assert!(ended.status.success() && screen.contains("tokens") && !screen.contains('$'), "{screen}");
}
