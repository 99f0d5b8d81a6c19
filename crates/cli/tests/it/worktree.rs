//! Worktrees of sessions.

use std::path::Path;

use pintle_test_conditions::is_full;
use pintle_testkit::Dialect;
use serde_json::Value;

use crate::harness::{CommandOutput, Harness, KEY, git, pintle, run};

const WRITES: &str = r#"
    [[turn]]
    [[turn.call]]
    tool = "write_file"
    arguments = { file_path = "new/made.txt", content = "made\n" }
    [[turn.call]]
    tool = "shell"
    arguments = { command = "echo changed >> kept.txt && rm -f gone.txt && echo x > ignored.log" }
    [[turn]]
    text = "Done."
"#;

/// A repository with a subdirectory, local changes and a state directory of its own.
struct Repository {
    harness: Harness,
    state: tempfile::TempDir,
}

impl Repository {
    fn new(turns: &str) -> Self {
        let harness = Harness::new(Dialect::AnthropicMessages, turns);
        let repository = Self { harness, state: tempfile::tempdir().unwrap() };
        let root = repository.root();
        for (name, content) in [("kept.txt", "one\n"), ("gone.txt", "gone\n"), (".gitignore", "*.log\n")] {
            std::fs::write(root.join(name), content).unwrap();
        }
        git(root, &["init", "--quiet", "--initial-branch=main"]);
        git(root, &["add", "--all"]);
        git(root, &["commit", "--quiet", "--message=first"]);
        repository
    }

    fn root(&self) -> &Path {
        self.harness.directory.path()
    }

    fn run(&self, arguments: &[&str]) -> CommandOutput {
        run(self.harness.command("run", arguments).env("PINTLE_STATE_DIR", self.state.path()))
    }

    /// Runs a task in another directory than the root.
    fn run_in(&self, directory: &Path) -> CommandOutput {
        let mut command = pintle(&["run", "--provider", "anthropic", "--toolset", "spec", "--worktree"]);
        command.args(["--base-url", &self.harness.server.base_url(Dialect::AnthropicMessages)]);
        command.arg("--dir").arg(directory).arg("Work.");
        run(command.env("ANTHROPIC_API_KEY", KEY).env("PINTLE_STATE_DIR", self.state.path()))
    }

    fn pintle(&self, arguments: &[&str]) -> CommandOutput {
        run(pintle(arguments).env("PINTLE_STATE_DIR", self.state.path()).current_dir(self.root()))
    }

    /// Runs a command that succeeds, and returns its output.
    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.pintle(&[arguments, &["--output", "json"]].concat());
        assert_eq!(output.code, Some(0), "{output:?}");
        serde_json::from_str(&output.stdout).unwrap()
    }

    fn worktrees(&self) -> Vec<Value> {
        serde_json::from_value(self.json(&["worktree", "list"])).unwrap()
    }

    /// Files of the working tree, without git's own.
    fn files(&self) -> Vec<String> {
        let mut files: Vec<String> = std::fs::read_dir(self.root())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name != ".git" && !name.starts_with("script"))
            .collect();
        files.sort();
        files
    }
}

#[test]
fn changes_stay_in_the_worktree_until_they_are_merged() {
    let repository = Repository::new(WRITES);
    std::fs::write(repository.root().join("kept.txt"), "staged\n").unwrap();
    git(repository.root(), &["add", "kept.txt"]);
    git(repository.root(), &["checkout", "--quiet", "HEAD", "--", "kept.txt"]);
    let (files, index) = (repository.files(), git(repository.root(), &["ls-files", "--stage"]));

    let output = repository.run(&["--worktree", "Work."]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert_eq!(repository.files(), files, "nothing changed here");
    let worktrees = repository.worktrees();
    let [worktree] = &worktrees[..] else { panic!("{worktrees:?}") };
    assert_eq!(worktree["files"], serde_json::json!(["D\tgone.txt", "M\tkept.txt", "A\tnew/made.txt"]));
    let id = worktree["id"].as_str().unwrap();
    assert!(output.stderr.contains(&format!("pintle worktree merge {id}")), "{output:?}");

    for refused in [vec!["worktree", "drop", id], vec!["sessions", "delete", id]] {
        let output = repository.pintle(&refused);
        assert_eq!(output.code, Some(2), "{output:?}");
        assert_eq!(repository.worktrees().len(), 1);
    }
    let diff = repository.json(&["worktree", "diff", id]);
    assert_eq!(diff["files"], worktree["files"]);
    assert!(diff["patch"].as_str().unwrap().contains("+made\n"), "{diff}");
    let merged = repository.json(&["worktree", "merge", id]);
    assert_eq!(
        (&merged["id"], &merged["files"], &merged["branch"]),
        (&id.into(), &worktree["files"], &Value::Null)
    );
    assert_eq!(repository.harness.read("new/made.txt"), "made\n");
    assert_eq!(repository.harness.read("kept.txt"), "one\nchanged\n");
    assert!(!repository.root().join("gone.txt").exists() && !repository.root().join("ignored.log").exists());
    assert_eq!(git(repository.root(), &["ls-files", "--stage"]), index, "the index is the user's");
    assert!(repository.worktrees().is_empty());
    for leftovers in [&["worktree", "list", "--porcelain"][..], &["for-each-ref"], &["branch", "--all"]] {
        assert!(!git(repository.root(), leftovers).contains("pintle/"), "{leftovers:?}");
    }
    assert_eq!(repository.pintle(&["sessions", "delete", id]).code, Some(0));
}

#[test]
fn local_changes_are_taken_along_and_are_no_changes_of_the_session() {
    let repository = Repository::new(WRITES);
    let root = repository.root();
    std::fs::write(root.join("kept.txt"), "one\nmine\n").unwrap();
    std::fs::write(root.join("untracked.sh"), "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(root.join("untracked.sh"), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    std::fs::write(root.join("secret.log"), "ignored\n").unwrap();
    let status = git(root, &["status", "--porcelain"]);

    let output = repository.run(&["--worktree=changes", "Work."]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert_eq!(git(root, &["status", "--porcelain"]), status);
    let worktrees = repository.worktrees();
    let directory = Path::new(worktrees[0]["directory"].as_str().unwrap()).to_path_buf();
    assert_eq!(worktrees[0]["files"], serde_json::json!(["D\tgone.txt", "M\tkept.txt", "A\tnew/made.txt"]));
    assert_eq!(std::fs::read_to_string(directory.join("kept.txt")).unwrap(), "one\nmine\nchanged\n");
    let mode = std::fs::metadata(directory.join("untracked.sh")).unwrap();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode.permissions()) & 0o777, 0o755);
    assert!(!directory.join("secret.log").exists(), "ignored files stay where they are");

    let id = worktrees[0]["id"].as_str().unwrap();
    // A change here that is in the way: nothing is merged, and nothing is lost.
    std::fs::write(root.join("kept.txt"), "quite different\n").unwrap();
    let refused = repository.pintle(&["worktree", "merge", id]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(
        refused.stderr.contains("kept.txt") && refused.stderr.contains("nothing was changed"),
        "{refused:?}"
    );
    assert!(root.join("gone.txt").exists() && !root.join("new").exists());
    assert_eq!(repository.worktrees().len(), 1);
    std::fs::write(root.join("kept.txt"), "one\nmine\n").unwrap();
    assert_eq!(repository.pintle(&["worktree", "merge", id]).code, Some(0));
    assert_eq!(repository.harness.read("kept.txt"), "one\nmine\nchanged\n");
}

#[test]
fn commits_of_the_session_stay_on_its_branch() {
    let commits = r#"
        [[turn]]
        [[turn.call]]
        tool = "shell"
        arguments = { command = "echo more >> kept.txt && git -c user.name=m -c user.email=m@localhost commit -qam more" }
        [[turn]]
        text = "Done."
    "#;
    let repository = Repository::new(commits);
    assert_eq!(repository.run(&["--worktree", "Work."]).code, Some(0));
    let worktrees = repository.worktrees();
    let id = worktrees[0]["id"].as_str().unwrap();
    assert_eq!(
        (&worktrees[0]["commits"], &worktrees[0]["files"]),
        (&1.into(), &serde_json::json!(["M\tkept.txt"]))
    );
    let listed = repository.pintle(&["worktree", "list"]);
    assert!(listed.stdout.contains(" 1 file ") && listed.stdout.contains(" 1 commit "), "{listed:?}");
    let refused = repository.pintle(&["worktree", "drop", id]);
    assert!(refused.stderr.contains("has 1 changed file and 1 commit that were not merged"), "{refused:?}");
    let merged = repository.pintle(&["worktree", "merge", id]);
    assert!(merged.stdout.contains(&format!("branch pintle/{id} has 1 commit of the session")), "{merged:?}");
    let log = git(repository.root(), &["log", "--format=%s", &format!("pintle/{id}")]);
    assert_eq!(log, "more\nfirst\n");
    assert_eq!(repository.harness.read("kept.txt"), "one\nmore\n");
}

#[test]
fn worktree_needs_a_repository_with_a_commit_and_is_dropped_by_force_only() {
    let repository = Repository::new(WRITES);
    let outside = tempfile::tempdir().unwrap();
    let refused = repository.run_in(outside.path());
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("is not in a git repository"), "{refused:?}");
    git(outside.path(), &["init", "--quiet"]);
    let refused = repository.run_in(outside.path());
    assert!(refused.stderr.contains("has no commit yet"), "{refused:?}");
    for conflict in ["--continue", "--no-session", "--resume=x"] {
        assert_eq!(repository.run(&["--worktree", conflict, "Work."]).code, Some(2), "{conflict}");
    }
    assert!(repository.worktrees().is_empty());
    let unknown = repository.pintle(&["worktree", "merge", "nosuch"]);
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    assert!(unknown.stderr.contains("there is no session `nosuch`"), "{unknown:?}");
    assert!(unknown.stderr.contains("`pintle worktree list` shows"), "{unknown:?}");

    // A subdirectory is the same subdirectory there, and the session goes on in it.
    std::fs::create_dir(repository.root().join("sub")).unwrap();
    std::fs::write(repository.root().join("sub/file"), "").unwrap();
    git(repository.root(), &["add", "--all"]);
    git(repository.root(), &["commit", "--quiet", "--message=second"]);
    let sub = repository.root().join("sub");
    let output = repository.run_in(&sub);
    let worktrees = repository.worktrees();
    let (id, directory) = (worktrees[0]["id"].as_str().unwrap(), worktrees[0]["directory"].as_str().unwrap());
    assert!(output.stderr.contains(&format!("working in {directory}/sub")), "{output:?}");
    assert!(Path::new(directory).join("sub/new/made.txt").exists());
    let dropped = repository.json(&["worktree", "drop", "--force", id]);
    assert_eq!(dropped["dropped"].as_str(), Some(directory));
    assert!(!Path::new(directory).exists() && repository.worktrees().is_empty());
}

/// Runs a session in a new worktree, and returns its id and its directory.
fn session(repository: &Repository) -> (String, std::path::PathBuf) {
    let known: Vec<Value> = repository.worktrees().iter().map(|worktree| worktree["id"].clone()).collect();
    let output = repository.run(&["--worktree", "Work."]);
    assert_eq!(output.code, Some(0), "{output:?}");
    let worktrees = repository.worktrees();
    let new = worktrees.iter().find(|worktree| !known.contains(&worktree["id"])).unwrap();
    (new["id"].as_str().unwrap().to_owned(), new["directory"].as_str().unwrap().into())
}

#[test]
fn a_worktree_is_merged_or_dropped_whatever_its_branch_is() {
    let commit =
        ["-c", "user.name=m", "-c", "user.email=m@localhost", "commit", "--quiet", "--all", "--message=more"];
    type Case<'a> = (&'a [&'a [&'static str]], bool, Option<&'static str>);
    let cases: [Case<'_>; 7] = [
        (&[&["branch", "--move", "mine"]], false, Some("mine")),
        (&[&["branch", "--move", "mine"], &commit], true, Some("mine")),
        (&[&["checkout", "--quiet", "-b", "mine"], &commit], true, Some("mine")),
        (&[&["checkout", "--quiet", "--detach"]], false, None),
        (&[&["checkout", "--quiet", "--detach"], &commit], true, Some("pintle-ID-detached")),
        (&[&commit, &["checkout", "--quiet", "--detach"]], true, Some("pintle/ID")),
        (&[&["checkout", "--quiet", "--orphan", "mine"]], false, None),
    ];
    for (commands, has_commits, kept) in cases {
        let ends = ["drop", "merge"];
        // By default, commits are merged, and a branch without one is dropped.
        let chosen = ends.into_iter().filter(|end| is_full() || (*end == "merge") == has_commits);
        for end in chosen {
            let repository = Repository::new(WRITES);
            let (id, directory) = session(&repository);
            let (other, _) = session(&repository);
            for arguments in commands {
                git(&directory, arguments);
            }
            assert_eq!(repository.worktrees().len(), 2, "{commands:?}");
            let found = repository.worktrees();
            let row = found.iter().find(|row| row["id"] == id.as_str()).unwrap();
            assert_eq!(row["commits"], u64::from(has_commits), "{commands:?}: {row}");
            let force: &[&str] = if end == "drop" { &["--force"] } else { &[] };
            let ended = repository.json(&[&["worktree", end, id.as_str()][..], force].concat());
            assert!(!directory.exists(), "{commands:?}, {end}");
            if end == "merge" {
                assert_eq!(repository.harness.read("kept.txt"), "one\nchanged\n", "{commands:?}");
                if let Some(kept) = kept {
                    assert_eq!(ended["branch"], kept.replace("ID", &id), "{commands:?}");
                }
            }
            let branches = git(repository.root(), &["branch", "--list", "--format=%(refname:short)"]);
            let own = branches.lines().filter(|branch| branch.contains(&id)).count();
            assert_eq!(own > 0, end == "merge" && kept.is_some_and(|kept| kept.contains("ID")), "{branches}");
            assert_eq!(branches.contains("mine"), kept == Some("mine"), "{commands:?}, {end}: {branches}");
            assert_eq!(repository.worktrees().len(), 1, "{commands:?}, {end}");
            repository.json(&["worktree", "drop", "--force", &other]);
        }
    }
}

#[test]
fn a_branch_named_pintle_does_not_block_worktrees() {
    for name in ["pintle", "pintle/mine"] {
        let repository = Repository::new(WRITES);
        git(repository.root(), &["branch", name]);
        let (id, _) = session(&repository);
        repository.json(&["worktree", "merge", &id]);
        let branches = git(repository.root(), &["branch", "--list", "--format=%(refname:short)"]);
        assert_eq!(branches, format!("main\n{name}\n"));
    }
}

#[test]
fn a_worktree_that_cannot_be_made_leaves_nothing() {
    let repository = Repository::new(WRITES);
    // A reference that prevents references of worktrees.
    git(repository.root(), &["update-ref", "refs/pintle", "HEAD"]);
    let refused = repository.run(&["--worktree", "Work."]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    let references = git(repository.root(), &["for-each-ref", "--format=%(refname)"]);
    assert_eq!(references, "refs/heads/main\nrefs/pintle\n");
    assert_eq!(git(repository.root(), &["worktree", "list"]).lines().count(), 1);
    assert_eq!(std::fs::read_dir(repository.state.path().join("worktrees")).unwrap().count(), 0);
}

#[test]
fn a_moved_repository_leaves_the_other_worktrees_usable() {
    let repository = Repository::new(WRITES);
    let (id, directory) = session(&repository);
    let (other, other_directory) = session(&repository);
    let moved = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(repository.root()).unwrap() {
        let entry = entry.unwrap();
        std::fs::rename(entry.path(), moved.path().join(entry.file_name())).unwrap();
    }
    let rows = repository.worktrees();
    assert!(rows.len() == 2 && rows.iter().all(|row| row["error"].is_string()), "{rows:?}");
    let refused = repository.pintle(&["worktree", "drop", &id]);
    assert!(refused.code == Some(1) && refused.stderr.contains("drop --force"), "{refused:?}");
    repository.json(&["worktree", "drop", "--force", &id]);
    assert!(!directory.exists());
    git(moved.path(), &["worktree", "repair", other_directory.to_str().unwrap()]);
    assert_eq!(repository.json(&["worktree", "diff", &other])["files"].as_array().unwrap().len(), 3);
    repository.json(&["worktree", "merge", &other]);
    assert_eq!(std::fs::read_to_string(moved.path().join("kept.txt")).unwrap(), "one\nchanged\n");
}

#[test]
fn a_merge_deletes_no_repository_that_the_session_made() {
    for (command, name) in [
        ("git init -q vendor/lib && echo 1 >vendor/lib/f", "vendor/lib"),
        (
            "git init -q vendor/lib && cd vendor/lib && echo 1 >f && git add f && \
             git -c user.name=m -c user.email=m@localhost commit -qm first",
            "vendor/lib",
        ),
        (
            "git init -q vendor/lib && cd vendor/lib && echo 1 >f && git add f && \
             git -c user.name=m -c user.email=m@localhost commit -qm first && cd ../.. && git add vendor/lib 2>/dev/null",
            "vendor/lib",
        ),
    ] {
        let script = format!(
            "[[turn]]\n[[turn.call]]\ntool = \"shell\"\narguments = {{ command = '''{command}''' }}\n[[turn]]\ntext = \"Done.\"\n"
        );
        let repository = Repository::new(&script);
        let (id, directory) = session(&repository);
        let refused = repository.pintle(&["worktree", "merge", &id]);
        assert!(refused.code == Some(1) && refused.stderr.contains(name), "{command}: {refused:?}");
        assert!(!repository.root().join("vendor").exists(), "{command}");
        let refused = repository.pintle(&["worktree", "drop", &id]);
        assert_eq!(refused.code, Some(2), "{command}: {refused:?}");
        assert_eq!(std::fs::read_to_string(directory.join("vendor/lib/f")).unwrap(), "1\n", "{command}");
        std::fs::remove_dir_all(directory.join("vendor/lib/.git")).unwrap();
        git(&directory, &["reset", "--quiet"]);
        repository.json(&["worktree", "merge", &id]);
        assert_eq!(repository.harness.read("vendor/lib/f"), "1\n", "{command}");
    }
}

const SUBMODULE: [&str; 4] = ["-c", "protocol.file.allow=always", "submodule", "--quiet"];

/// A repository with a library as its submodule `sub`, each with an ignored directory. A tag of the library has a commit that
/// none of its branches has.
fn with_submodule() -> (Repository, tempfile::TempDir) {
    let library = tempfile::tempdir().unwrap();
    git(library.path(), &["init", "--quiet", "--initial-branch=main"]);
    std::fs::write(library.path().join("f"), "1\n").unwrap();
    std::fs::write(library.path().join(".gitignore"), "build/\n").unwrap();
    git(library.path(), &["add", "--all"]);
    git(library.path(), &["commit", "--quiet", "--message=f"]);
    git(library.path(), &["checkout", "--quiet", "--detach"]);
    git(library.path(), &["commit", "--quiet", "--allow-empty", "--message=release"]);
    git(library.path(), &["tag", "v1"]);
    git(library.path(), &["checkout", "--quiet", "main"]);
    let repository = Repository::new("[[turn]]\ntext = \"Done.\"\n");
    let root = repository.root();
    git(root, &[&SUBMODULE[..], &["add", library.path().to_str().unwrap(), "sub"]].concat());
    std::fs::write(root.join(".gitignore"), "*.log\nbuild/\n").unwrap();
    git(root, &["add", "--all"]);
    git(root, &["commit", "--quiet", "--message=submodule"]);
    (repository, library)
}

/// Checks that a line is the only change, and that neither a merge nor a drop deletes it.
#[track_caller]
fn assert_is_kept(repository: &Repository, id: &str, line: &str) {
    let name = &line[2..];
    let diff = repository.json(&["worktree", "diff", id]);
    assert_eq!(diff.get("files"), Some(&serde_json::json!([line])));
    assert_eq!(diff.get("not_in_patch"), Some(&serde_json::json!([name])));
    let left_out = format!("not in the patch: {name}");
    let diff = repository.pintle(&["worktree", "diff", id]);
    assert!(diff.code == Some(0) && diff.stderr.contains(&left_out), "{line}: {diff:?}");
    let refused = repository.pintle(&["worktree", "merge", id]);
    assert!(refused.code == Some(1) && refused.stderr.contains(name), "{line}: {refused:?}");
    let refused = repository.pintle(&["worktree", "drop", id]);
    let expected = format!("has 1 changed file that was not merged; {left_out}; to merge, copy or push");
    assert!(refused.code == Some(2) && refused.stderr.contains(&expected), "{line}: {refused:?}");
    assert!(refused.stderr.contains("`drop --force` deletes everything"), "{line}: {refused:?}");
}

#[test]
fn uncommitted_work_in_a_submodule_and_ignored_repositories_are_kept() {
    let (repository, _library) = with_submodule();
    for (file, line) in [
        ("sub/f", "M\tsub"),
        ("sub/new", "M\tsub"),
        ("build/vendor/f", "A\tbuild/vendor/"),
        ("sub/build/vendor/f", "A\tsub/build/vendor/"),
        ("sub/build/bare.git/f", "A\tsub/build/bare.git/"),
    ] {
        let (id, directory) = session(&repository);
        git(&directory, &[&SUBMODULE[..], &["update", "--init"]].concat());
        let made = line.strip_prefix("A\t").map(|name| directory.join(name));
        if let Some(made) = &made {
            std::fs::create_dir_all(made).unwrap();
            let is_bare = made.extension().is_some();
            git(made, if is_bare { &["init", "--quiet", "--bare"] } else { &["init", "--quiet"] });
        }
        std::fs::write(directory.join(file), "2\n").unwrap();
        assert_is_kept(&repository, &id, line);
        assert_eq!(std::fs::read_to_string(directory.join(file)).unwrap(), "2\n");
        // Nothing is left that would be lost.
        git(&directory.join("sub"), &["checkout", "--quiet", "--", "."]);
        git(&directory.join("sub"), &["clean", "--quiet", "--force"]);
        if let Some(made) = made {
            std::fs::remove_dir_all(made).unwrap();
        }
        repository.json(&["worktree", "merge", &id]);
        assert!(!directory.exists(), "{file}");
    }
}

#[test]
fn ignored_repositories_in_nested_submodules_are_found() {
    let (repository, library) = with_submodule();
    let (id, directory) = session(&repository);
    git(&directory, &[&SUBMODULE[..], &["update", "--init"]].concat());
    let sub = directory.join("sub");
    git(&sub, &[&SUBMODULE[..], &["add", library.path().to_str().unwrap(), "inner"]].concat());
    let diff = repository.json(&["worktree", "diff", &id]);
    assert_eq!(diff["not_in_patch"], serde_json::json!(["sub"]));
    let made = sub.join("inner/build/vendor");
    std::fs::create_dir_all(&made).unwrap();
    git(&made, &["init", "--quiet"]);
    let diff = repository.json(&["worktree", "diff", &id]);
    assert_eq!(diff["not_in_patch"], serde_json::json!(["sub/inner/build/vendor/", "sub"]));
    let refused = repository.pintle(&["worktree", "drop", &id]);
    assert!(refused.code == Some(2) && refused.stderr.contains("sub/inner/build/vendor/"), "{refused:?}");
    assert!(made.join(".git").exists());
}

#[test]
fn commits_and_stashes_that_only_a_submodule_has_are_kept() {
    let (repository, library) = with_submodule();
    let commit = ["commit", "--quiet", "--all", "--message=more"];
    let detach = ["checkout", "--quiet", "--detach"];
    let recorded = ["checkout", "--quiet", "--detach", "origin/main"];
    type Case<'a> = (&'a [&'a [&'a str]], &'a [&'a str]);
    let cases: [Case<'_>; 3] = [
        (&[&["stash", "push", "--quiet"]], &["stash", "drop", "--quiet"]),
        (
            &[&["checkout", "--quiet", "-b", "topic"], &commit, &recorded],
            &["branch", "--quiet", "-D", "topic"],
        ),
        (&[&detach, &commit, &["tag", "mine"], &recorded], &["tag", "--delete", "mine"]),
    ];
    let update = [&SUBMODULE[..], &["update", "--init"]].concat();
    let clone = ["clone", "--quiet", library.path().to_str().unwrap(), "sub"];
    // The git directory is in the repository's git directory, or in the worktree.
    for checkout in [&update[..], &clone] {
        for (commands, undo) in cases {
            let (id, directory) = session(&repository);
            git(&directory, checkout);
            let diff = repository.json(&["worktree", "diff", &id]);
            assert_eq!(diff["files"], serde_json::json!([]), "{checkout:?}");
            let sub = directory.join("sub");
            std::fs::write(sub.join("f"), "2\n").unwrap();
            for arguments in commands {
                git(&sub, arguments);
            }
            assert_is_kept(&repository, &id, "M\tsub");
            git(&sub, undo);
            repository.json(&["worktree", "merge", &id]);
            assert!(!directory.exists(), "{commands:?}");
        }
    }
}

#[test]
fn commits_of_a_submodule_that_was_removed_are_kept() {
    let (repository, _library) = with_submodule();
    let (id, directory) = session(&repository);
    git(&directory, &[&SUBMODULE[..], &["update", "--init"]].concat());
    let sub = directory.join("sub");
    git(&sub, &["checkout", "--quiet", "-b", "topic"]);
    git(&sub, &["commit", "--quiet", "--allow-empty", "--message=more"]);
    git(&directory, &["rm", "--quiet", "--force", "sub"]);
    let diff = repository.json(&["worktree", "diff", &id]);
    assert_eq!(diff["files"], serde_json::json!(["M\t.gitmodules", "D\tsub"]));
    assert_eq!(diff["not_in_patch"], serde_json::json!(["sub"]));
    for end in ["merge", "drop"] {
        let refused = repository.pintle(&["worktree", end, &id]);
        assert!(refused.code != Some(0) && refused.stderr.contains(": sub; "), "{end}: {refused:?}");
    }
    repository.json(&["worktree", "drop", "--force", &id]);
    assert!(!directory.exists());
}

#[test]
fn bare_repositories_are_kept_and_not_taken_along() {
    let repository = Repository::new("[[turn]]\ntext = \"Done.\"\n");
    for name in ["bare.git", "made/bare.git", "ignored.log/bare.git"] {
        let (id, directory) = session(&repository);
        git(&directory, &["init", "--quiet", "--bare", name]);
        assert_is_kept(&repository, &id, &format!("A\t{name}/"));
        std::fs::remove_dir_all(directory.join(name)).unwrap();
        repository.json(&["worktree", "merge", &id]);
        assert!(!directory.exists(), "{name}");
    }
    git(repository.root(), &["init", "--quiet", "--bare", "own.git"]);
    assert_eq!(repository.run(&["--worktree=changes", "Work."]).code, Some(0));
    let worktrees = repository.worktrees();
    let [worktree] = &worktrees[..] else { panic!("{worktrees:?}") };
    assert_eq!(worktree["files"], serde_json::json!([]));
    assert!(!Path::new(worktree["directory"].as_str().unwrap()).join("own.git").exists());
}

#[test]
fn a_merge_counts_the_ignored_files_that_it_removes() {
    let repository = Repository::new(WRITES);
    let (id, directory) = session(&repository);
    std::fs::create_dir(directory.join("new/logs")).unwrap();
    std::fs::write(directory.join("new/logs/a.log"), "").unwrap();
    let merged = repository.pintle(&["worktree", "merge", &id]);
    let expected = "removed 2 ignored files with the worktree: ignored.log, new/\n";
    assert!(merged.code == Some(0) && merged.stdout.ends_with(expected), "{merged:?}");
}
