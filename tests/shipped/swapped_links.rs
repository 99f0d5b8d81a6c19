//! Links that are swapped while calls of file tools are judged.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;

use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use pintle_testkit::Dialect;
use serde_json::json;

use super::user::{KEY, User};

/// Minimum number of swaps during a run.
const EXCHANGES: usize = 2_000;

/// Number of times that a round repeats its calls while names are exchanged.
const REPETITIONS: usize = 12;

/// Swaps two names until it ends.
struct LinkSwapper {
    is_over: Arc<AtomicBool>,
    count: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

impl LinkSwapper {
    fn start(one: PathBuf, other: PathBuf) -> Self {
        let (is_over, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (over, counted) = (Arc::clone(&is_over), Arc::clone(&count));
        let exchange = move || {
            while !over.load(Ordering::Relaxed) {
                renameat2(AT_FDCWD, &one, AT_FDCWD, &other, RenameFlags::RENAME_EXCHANGE).unwrap();
                counted.fetch_add(1, Ordering::Relaxed);
            }
        };
        Self { is_over, count, thread: Some(std::thread::spawn(exchange)) }
    }

    fn end(mut self) -> usize {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
        self.count.load(Ordering::Relaxed)
    }
}

/// Returns turns with this number of rounds, each of which repeats the calls. Arguments have the number of the call in the
/// place of `#`.
fn turns(rounds: usize, repetitions: usize, calls: &[(&str, &str)]) -> String {
    let mut turns = String::new();
    for round in 0..rounds {
        turns.push_str("[[turn]]\n");
        for repeated in 0..repetitions {
            for (tool, arguments) in calls {
                let arguments = arguments.replace('#', &format!("{round}.{repeated}"));
                turns.push_str(&format!("[[turn.call]]\ntool = \"{tool}\"\narguments = {arguments}\n"));
            }
        }
    }
    turns.push_str("[[turn]]\ntext = \"Done.\"\n");
    turns
}

/// Returns whether a file below a directory has this text.
fn has(directory: &Path, text: &str) -> bool {
    std::fs::read_dir(directory).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => has(&path, text),
            false => std::fs::read(&path)
                .is_ok_and(|bytes| bytes.windows(text.len()).any(|window| window == text.as_bytes())),
        }
    })
}

/// A user with a key, and a project in which `here` leads to a directory of the project and `there` to one that calls must not
/// reach.
fn user(turns: &str, there: fn(&User) -> PathBuf) -> User {
    let user = User::new(turns);
    std::fs::create_dir(user.at(".ssh")).unwrap();
    std::fs::write(user.at(".ssh/id_red"), "CANARY").unwrap();
    std::fs::create_dir(user.project().join("inside")).unwrap();
    std::fs::write(user.project().join("inside/id_red"), "harmless").unwrap();
    std::os::unix::fs::symlink("inside", user.project().join("here")).unwrap();
    std::os::unix::fs::symlink(there(&user), user.project().join("there")).unwrap();
    user
}

/// Runs a command for the task while `here` leads to the directory of the project.
#[track_caller]
fn run_undisturbed(mut command: Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("Done."), "{output:?}");
}

/// Returns how many results of the first round contain the text, which the prompt does not contain.
#[track_caller]
fn count_results_with(user: &User, text: &str) -> usize {
    assert!(!user.request(0).contains(text), "{}", user.request(0));
    user.request(1).matches(text).count()
}

/// Runs the task while `here` and `there` are exchanged.
fn run(user: &User) {
    run_command(user, user.run_command("Go"));
}

/// Runs a command for the task while `here` and `there` are exchanged.
#[track_caller]
fn run_command(user: &User, mut command: Command) {
    let exchanging = LinkSwapper::start(user.project().join("here"), user.project().join("there"));
    let output = command.output().unwrap();
    let count = exchanging.end();
    assert!(matches!(output.status.code(), Some(0 | 5)), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("Done."), "{output:?}");
    assert!(count >= EXCHANGES, "{count}");
}

/// Toolset of a provider.
#[derive(Clone, Copy, Debug)]
enum Tools {
    Claude,
    /// The tools of the specification, for models of OpenAI.
    OpenAi,
    /// The tools of the specification, for models of Gemini.
    Gemini,
}

impl Tools {
    /// Returns the command for the task with these tools.
    fn command(self, user: &User) -> Command {
        let (provider, key, dialect) = match self {
            Self::Claude => return user.run_command("Go"),
            Self::OpenAi => ("openai", "OPENAI_API_KEY", Dialect::OpenAiResponses),
            Self::Gemini => ("gemini", "GEMINI_API_KEY", Dialect::Gemini),
        };
        let url = user.model.base_url(dialect);
        let arguments = ["run", "--provider", provider, "--base-url", &url, "--toolset", "spec", "Go"];
        let mut command = user.command(&arguments);
        command.env(key, KEY);
        command
    }
}

/// Returns the bodies of all requests to the model.
fn requests(user: &User) -> Vec<String> {
    (0..user.model.requests().len()).map(|index| user.request(index)).collect()
}

#[test]
fn a_hidden_file_is_not_read_by_a_name_that_led_elsewhere() {
    let calls = [
        ("Read", r#"{ file_path = "here/id_red" }"#),
        ("Grep", r#"{ pattern = "[Aa]", path = "here", output_mode = "content" }"#),
    ];
    let user = user(&turns(1, 1, &calls), |user| user.at(".ssh"));
    run_undisturbed(user.run_command("Go"));
    assert_eq!(count_results_with(&user, "harmless"), calls.len());
    let user = user.with_turns(&turns(8, REPETITIONS, &calls));
    run(&user);
    assert!(!has(&user.at(".local/state/pintle/sessions"), "CANARY"));
    let sent = requests(&user);
    assert!(sent.iter().all(|request| !request.contains("CANARY")));
}

#[test]
fn each_tool_lists_the_directory_that_was_judged() {
    for (tools, tool, arguments) in [
        (Tools::Claude, "Glob", r#"{ pattern = "*", path = "here" }"#),
        (Tools::Gemini, "glob", r#"{ pattern = "*", path = "here" }"#),
        (Tools::Gemini, "list_dir", r#"{ path = "here" }"#),
    ] {
        let calls = [(tool, arguments)];
        let user = user(&turns(1, 1, &calls), |user| user.at(".ssh"));
        std::fs::write(user.at(".ssh/CANARY"), "").unwrap();
        std::fs::write(user.project().join("inside/harmless"), "").unwrap();
        run_undisturbed(tools.command(&user));
        assert_eq!(count_results_with(&user, "harmless"), 1, "{tools:?} {tool}");
        let user = user.with_turns(&turns(4, REPETITIONS, &calls));
        run_command(&user, tools.command(&user));
        let sent = requests(&user);
        assert!(sent.iter().all(|request| !request.contains("CANARY")), "{tools:?} {tool}");
    }
}

#[test]
fn each_tool_changes_the_file_that_was_judged() {
    const EDIT: &str = r##"{ file_path = "here/.bashrc", old_string = "start", new_string = "start#" }"##;
    const PATCH: &str =
        "{ patch = '''\n*** Begin Patch\n*** Update File: here/.bashrc\n@@\n start\n+#\n*** End Patch\n''' }";
    for (tools, tool, arguments) in [
        (Tools::Claude, "Edit", EDIT),
        (Tools::Gemini, "edit_file", EDIT),
        (Tools::OpenAi, "apply_patch", PATCH),
    ] {
        let calls = [(tool, arguments)];
        let user = user(&turns(1, 1, &calls), |user| user.at(""));
        std::fs::write(user.at(".bashrc"), "start\n").unwrap();
        std::fs::write(user.project().join("inside/.bashrc"), "start\n").unwrap();
        let read = |path: PathBuf| std::fs::read_to_string(path).unwrap();
        run_undisturbed(tools.command(&user));
        assert_ne!(read(user.project().join("inside/.bashrc")), "start\n", "{tools:?} {tool}");
        let user = user.with_turns(&turns(4, REPETITIONS, &calls));
        run_command(&user, tools.command(&user));
        assert_eq!(read(user.at(".bashrc")), "start\n", "{tools:?} {tool}");
    }
}

/// `there` leads to a directory that the session could use without the limit.
#[test]
fn confinement_and_grants_hold_the_file_that_was_judged() {
    let calls = [
        ("Read", r#"{ file_path = "here/id_red" }"#),
        ("Write", r##"{ file_path = "here/written", content = "#" }"##),
    ];
    type Outside = fn(&User) -> PathBuf;
    let limits: [(&str, Outside); 2] =
        [("--confine", |user| user.at("other")), ("--grant", |user| user.project().join("other"))];
    for (limit, outside) in limits {
        let user = user(&turns(1, 1, &calls), outside);
        let other = outside(&user);
        std::fs::create_dir(&other).unwrap();
        std::fs::write(other.join("id_red"), "CANARY").unwrap();
        let roots = json!({"roots": [user.project().join("inside")]});
        let grant = json!({
            "version": 1, "id": "g", "tools": ["*"], "reads": roots, "writes": roots, "effect": "execute",
            "network": true, "environments": ["local"],
        });
        std::fs::write(user.at("g.json"), grant.to_string()).unwrap();
        let limited = |user: &User| {
            let mut command = user.run_command("Go");
            command.arg(limit).args((limit == "--grant").then(|| user.at("g.json")));
            command
        };
        run_undisturbed(limited(&user));
        assert_eq!(count_results_with(&user, "harmless"), 1, "{limit}");
        assert!(user.project().join("inside/written").exists(), "{limit}");
        let user = user.with_turns(&turns(4, REPETITIONS, &calls));
        run_command(&user, limited(&user));
        let sent = requests(&user);
        assert!(sent.iter().all(|request| !request.contains("CANARY")), "{limit}");
        assert!(!other.join("written").exists(), "{limit}");
    }
}

#[test]
fn no_file_outside_of_the_project_is_written_by_a_name_that_led_elsewhere() {
    let calls = [("Write", r##"{ file_path = "here/.bashrc", content = "touch PWNED #\n" }"##)];
    let user = user(&turns(1, 1, &calls), |user| user.at(""));
    std::fs::write(user.at(".bashrc"), "# mine\n").unwrap();
    run_undisturbed(user.run_command("Go"));
    assert!(user.project().join("inside/.bashrc").exists());
    let user = user.with_turns(&turns(8, REPETITIONS, &calls));
    run(&user);
    assert_eq!(std::fs::read_to_string(user.at(".bashrc")).unwrap(), "# mine\n");
}

#[test]
fn no_protected_file_is_written_by_a_name_that_led_elsewhere() {
    let calls = [("Write", r##"{ file_path = "here/config", content = "[core]\n\tfsmonitor = \"#\"\n" }"##)];
    let user = user(&turns(1, 1, &calls), |user| user.project().join(".git"));
    let config = user.project().join(".git/config");
    let before = std::fs::read(&config).unwrap();
    run_undisturbed(user.run_command("Go"));
    assert!(user.project().join("inside/config").exists());
    let user = user.with_turns(&turns(8, REPETITIONS, &calls));
    run(&user);
    assert_eq!(std::fs::read(&config).unwrap(), before);
}

/// Commands of another session, which works above, could replace the directory.
#[test]
fn a_working_directory_that_was_replaced_is_not_written() {
    for (level, condition) in
        [("full", pintle_test_conditions::BUBBLEWRAP), ("writes", pintle_test_conditions::LANDLOCK)]
    {
        if !condition.is_present() {
            continue;
        }
        let call = |command: &str| {
            format!("[[turn]]\n[[turn.call]]\ntool = \"Bash\"\narguments = {{ command = '{command}' }}\n")
        };
        let wait = call("touch started; until [ -e ../replaced ]; do sleep 0.05; done");
        let user = User::new(&(wait + &call("touch planted") + "[[turn]]\ntext = \"Done.\"\n"));
        let (below, other) = (user.project().join("below"), user.at("other"));
        std::fs::create_dir(&below).unwrap();
        std::fs::create_dir(&other).unwrap();
        let mut command = user.run_command("Go");
        command.args(["--sandbox", level]).current_dir(&below).stdout(std::process::Stdio::piped());
        let mut running = command.spawn().unwrap();
        user.wait_for_file("below/started");
        std::fs::rename(&below, user.project().join("moved")).unwrap();
        std::os::unix::fs::symlink(&other, &below).unwrap();
        std::fs::write(user.project().join("replaced"), "").unwrap();
        running.wait().unwrap();
        assert!(!other.join("planted").exists(), "{level}");
        let result = user.request(2);
        assert!(result.contains("was replaced after the session started"), "{level}: {result}");
    }
}
