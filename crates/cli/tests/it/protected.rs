//! Commands at the level *full* that change what git or Pintle run later, and git's ordinary work beside them.

use std::path::PathBuf;
use std::process::Command;

use pintle_test_conditions::{BUBBLEWRAP, is_full};
use pintle_testkit::Dialect;

use crate::harness::{CommandOutput, Harness, KEY, pintle, run};

/// A way to run a program when the user uses git the next time.
struct Attack {
    name: &'static str,
    /// Directory that the run works in.
    directory: &'static str,
    /// Line of the command, whose variable `$RUN` is the path of the program.
    line: &'static str,
    /// Line of the user.
    user: &'static str,
    held_by: &'static str,
}

const MOUNT: &str = "the sandbox, at *full*";
const WATCH: &str = "the watch, which ends the run";

const fn attack(
    name: &'static str,
    directory: &'static str,
    line: &'static str,
    user: &'static str,
    held_by: &'static str,
) -> Attack {
    Attack { name, directory, line, user, held_by }
}

const ATTACKS: [Attack; 12] = [
    attack(
        "the `.git` of a worktree, which names another repository",
        "tree",
        "git init -q evil && git -C evil config core.fsmonitor $RUN && echo gitdir: $PWD/evil/.git >.git",
        "git status",
        MOUNT,
    ),
    attack(
        "`commondir` of a worktree",
        "tree",
        "cp -r $MAIN/.git evil && git config -f evil/config core.fsmonitor $RUN && \
         echo $PWD/evil >$MAIN/.git/worktrees/tree/commondir",
        "git status",
        MOUNT,
    ),
    attack(
        "`config.worktree` of a worktree",
        "tree",
        "git config -f $MAIN/.git/worktrees/tree/config.worktree core.fsmonitor $RUN",
        "git status",
        MOUNT,
    ),
    attack(
        "settings of a submodule",
        "main",
        "git config -f .git/modules/sub/config core.fsmonitor $RUN",
        "git status",
        MOUNT,
    ),
    attack(
        "a hook of a submodule",
        "main",
        "cp $RUN .git/modules/sub/hooks/post-checkout",
        "git -C sub checkout -q -b next",
        MOUNT,
    ),
    attack(
        "settings of a repository in the workspace",
        "main",
        "git -C nested config core.fsmonitor $RUN",
        "git -C nested status",
        MOUNT,
    ),
    attack(
        "`commondir` of a repository, which has none",
        "main",
        "cp -r .git evil && git config -f evil/config core.fsmonitor $RUN && echo $PWD/evil >.git/commondir",
        "git status",
        WATCH,
    ),
    attack(
        "settings of a repository that the command makes",
        "main",
        "git init -q new && git -C new config core.fsmonitor $RUN",
        "git -C new status",
        WATCH,
    ),
    attack(
        "a link named `.git`",
        "main",
        "cp -r .git evil && git config -f evil/config core.fsmonitor $RUN && mkdir new && ln -s ../evil new/.git",
        "git -C new status",
        WATCH,
    ),
    attack(
        "settings of a directory without repository",
        "empty",
        "git init -q && git config core.fsmonitor $RUN",
        "git status",
        WATCH,
    ),
    // A missing object makes git fetch from each remote that promises it.
    attack(
        "the name of a remote that is an option",
        "empty",
        "git init -q --object-format=sha1 && echo x >a && git add a && git commit -q -m a && \
         rm -f .git/objects/58/7be6b4c3f93f93c489c0111bba5596147a26cb && \
         printf '[remote \"--upload-pack=%s\"]\\npromisor = true\\n[remote \"origin\"]\\nurl = .\\npromisor = true\\n' $RUN >>.git/config",
        "git log -p",
        WATCH,
    ),
    attack(
        "a setting that names a remote and is an option",
        "empty",
        "git init -q --object-format=sha1 && echo x >a && git add a && git commit -q -m a && \
         rm -f .git/objects/58/7be6b4c3f93f93c489c0111bba5596147a26cb && \
         printf '[remote \"origin\"]\\nurl = .\\npromisor = true\\n[extensions]\\npartialClone = --upload-pack=%s\\n' $RUN >>.git/config",
        "git log -p",
        WATCH,
    ),
];

/// Directories with a repository `main`, its worktree `tree`, and an `empty` one.
struct Scene {
    root: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        // Not below `/tmp`, which is another one within the sandbox.
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let bases = [PathBuf::from(env!("CARGO_TARGET_TMPDIR"))].into_iter().chain(home);
        let mut bases = bases.filter(|base| !base.starts_with("/tmp") && !base.starts_with("/var/tmp"));
        let root = tempfile::tempdir_in(bases.next().expect("a directory outside of /tmp")).unwrap();
        let scene = Self { root };
        std::fs::create_dir(scene.at("empty")).unwrap();
        scene.sh(
            "",
            "for name in library main; do git init -q $name; git -C $name commit -q --allow-empty -m first; done
             cd main
             git submodule --quiet add ../library sub
             git commit -q -m sub
             git clone -q ../library nested
             git config extensions.worktreeConfig true
             git worktree add -q ../tree
             printf '#!/bin/sh\\ntouch %s\\n' \"$(dirname $PWD)/ran\" >../run
             chmod +x ../run",
        );
        scene
    }

    fn at(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Runs a line as the user would. Its exit code does not matter.
    fn sh(&self, directory: &str, line: &str) {
        let mut command = Command::new("sh");
        let output = command.args(["-c", line]).current_dir(self.at(directory)).envs(identity()).output();
        assert!(output.is_ok(), "{output:?}");
    }

    /// Runs a line as a command of the model, and returns the output of the run and the last request to the model.
    fn run(&self, flags: &[&str], directory: &str, line: &str) -> (CommandOutput, String) {
        let line = line.replace("$RUN", "$ROOT/run").replace("$MAIN", "$ROOT/main");
        let line = line.replace("$ROOT", &self.root.path().display().to_string());
        let turns = format!(
            "[[turn]]\n[[turn.call]]\ntool = \"shell\"\n\
             arguments = {{ command = '''({line}) 2>&1''' }}\n\
             [[turn]]\ntext = \"Done.\"\n"
        );
        let harness = Harness::new(Dialect::AnthropicMessages, &turns);
        let mut command = pintle(&["run", "--provider", "anthropic", "--toolset", "spec", "--verbose"]);
        command.args(["--base-url", &harness.server.base_url(Dialect::AnthropicMessages)]);
        command.args(flags).arg("--dir").arg(self.at(directory)).arg("Go").envs(identity());
        let output = run(command.env("ANTHROPIC_API_KEY", KEY));
        let last = harness.server.requests().last().map(|request| request.body.to_string());
        (output, last.unwrap_or_default())
    }

    /// Returns whether the program ran, and forgets it.
    fn ran(&self) -> bool {
        std::fs::remove_file(self.at("ran")).is_ok()
    }
}

/// Returns variables that make git work for a user without settings.
fn identity() -> [(&'static str, &'static str); 7] {
    [
        ("GIT_AUTHOR_NAME", "t"),
        ("GIT_AUTHOR_EMAIL", "t@localhost"),
        ("GIT_COMMITTER_NAME", "t"),
        ("GIT_COMMITTER_EMAIL", "t@localhost"),
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", "protocol.file.allow"),
        ("GIT_CONFIG_VALUE_0", "always"),
    ]
}

#[test]
fn commands_leave_nothing_for_later_git() {
    if !BUBBLEWRAP.is_present() {
        return;
    }
    for Attack { name, directory, line, user, held_by } in ATTACKS {
        if is_full() {
            let free = Scene::new();
            free.run(&["--no-sandbox"], directory, line);
            free.sh(directory, user);
            assert!(free.ran(), "{name}: without a guard it succeeds");
        }

        let held = Scene::new();
        let (output, _) = held.run(&["--sandbox", "full"], directory, line);
        if held_by == MOUNT {
            held.sh(directory, user);
            assert!(!held.ran(), "{name}: {output:?}");
        } else {
            assert_eq!(output.code, Some(1), "{name}: {output:?}");
            let found = "a command changed the protected file";
            assert!(output.stderr.contains(found), "{name}: {output:?}");
        }
    }
}

/// The page on attacks lists these, and no others.
#[test]
fn the_page_on_attacks_has_those_on_git() {
    const TEST: &str = "`commands_leave_nothing_for_later_git`";
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/project/attacks.md");
    let page = std::fs::read_to_string(page).unwrap();
    let row = |attack: &Attack| format!("| {} | {} | {TEST} |", attack.name, attack.held_by);
    let missing: Vec<String> = ATTACKS.iter().map(row).filter(|row| !page.contains(row.as_str())).collect();
    let listed = page.lines().filter(|line| line.ends_with(&format!("{TEST} |")));
    assert!(missing.is_empty() && listed.count() == ATTACKS.len(), "{missing:#?}");
}

#[test]
fn ordinary_work_of_git_goes_on() {
    if !BUBBLEWRAP.is_present() {
        return;
    }
    let scene = Scene::new();
    for (directory, line) in [
        (
            "main",
            "echo x >a && git add a && git commit -q -m a && echo y >a && git stash -q && git stash pop -q",
        ),
        ("main", "git worktree add -q inside && git worktree list && git worktree remove inside"),
        ("main", "git -C sub commit -q --allow-empty -m sub && git -C sub checkout -q HEAD~1 && git status"),
        ("main", "git clone -q $MAIN again && cd again && git submodule update -q --init && git status"),
        ("main", "git clone -q nested copy && rm -rf copy"),
        ("tree", "git checkout -q -b topic && git commit -q --allow-empty -m tree && git log -1"),
        ("empty", "git init -q && git commit -q --allow-empty -m first && git branch next"),
    ] {
        let (output, _) = scene.run(&["--sandbox", "full"], directory, &format!("{line} && echo wor\"\"ked"));
        assert!(output.code == Some(0) && output.stdout.contains("worked"), "{line}: {output:?}");
    }
}

#[test]
fn refused_changes_of_settings_are_explained() {
    if !BUBBLEWRAP.is_present() {
        return;
    }
    let scene = Scene::new();
    for line in ["git config user.name x", "git submodule update", "git -C nested config user.name x"] {
        let (output, request) = scene.run(&["--sandbox", "full"], "main", line);
        assert_eq!(output.code, Some(0), "{line}: {output:?}");
        let told = "This may be due to what holds commands here";
        assert!(request.contains(told), "{line}: {output:?}");
        let told = "They cannot change protected files there, such as settings of git";
        assert!(request.contains(told), "{line}: {output:?}");
        let told = "`git branch -m` and `git branch -d` do their work, and report an error";
        assert!(request.contains(told), "{line}: {output:?}");
    }
}

#[test]
fn keys_that_a_variable_moves_are_hidden() {
    if !BUBBLEWRAP.is_present() {
        return;
    }
    for (flags, is_seen) in [(["--no-sandbox"].as_slice(), true), (&["--sandbox", "full"], false)] {
        let scene = Scene::new();
        std::fs::write(scene.at("keys"), "[default]\nsecret = KEY\n").unwrap();
        let turns = format!(
            "[[turn]]\n[[turn.call]]\ntool = \"shell\"\narguments = {{ command = 'cat {0}' }}\n\
             [[turn.call]]\ntool = \"read_file\"\narguments = {{ file_path = '{0}' }}\n\
             [[turn]]\ntext = \"Done.\"\n",
            scene.at("keys").display()
        );
        let harness = Harness::new(Dialect::AnthropicMessages, &turns);
        let mut command = harness.command("run", &["Go"]);
        let output = run(command.args(flags).env("AWS_SHARED_CREDENTIALS_FILE", scene.at("keys")));
        assert_eq!(output.code, Some(0), "{output:?}");
        let request = harness.server.requests()[1].body.to_string();
        assert_eq!(request.matches("secret = KEY").count(), if is_seen { 2 } else { 0 }, "{request}");
        assert_eq!(request.contains("is hidden from this session"), !is_seen, "{request}");
    }
}
