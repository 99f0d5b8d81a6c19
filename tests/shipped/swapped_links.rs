//! Links that are swapped while calls of file tools are judged.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;

use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};

use super::user::User;

/// Minimum number of swaps during a run.
const EXCHANGES: usize = 2_000;

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

/// Returns turns with this number of rounds of calls, each with arguments that have its number in the place of `#`.
fn turns(rounds: usize, calls: &[(&str, &str)]) -> String {
    let mut turns = String::new();
    for round in 0..rounds {
        turns.push_str("[[turn]]\n");
        for repeated in 0..12 {
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

/// Runs the task while `here` and `there` are exchanged.
fn run(user: &User) {
    let exchanging = LinkSwapper::start(user.project().join("here"), user.project().join("there"));
    let ran = user.run_with_denials("Go");
    let count = exchanging.end();
    assert!(ran.contains("Done."), "{ran}");
    assert!(count >= EXCHANGES, "{count}");
}

#[test]
fn a_hidden_file_is_not_read_by_a_name_that_led_elsewhere() {
    let calls = [
        ("Read", r#"{ file_path = "here/id_red" }"#),
        ("Grep", r#"{ pattern = "A", path = "here", output_mode = "content" }"#),
    ];
    let user = user(&turns(8, &calls), |user| user.at(".ssh"));
    run(&user);
    assert!(!has(&user.at(".local/state/pintle/sessions"), "CANARY"));
    let sent: Vec<String> = (0..user.model.requests().len()).map(|index| user.request(index)).collect();
    assert!(sent.iter().all(|request| !request.contains("CANARY")));
    assert!(sent.iter().any(|request| request.contains("harmless")), "some calls succeed");
}

#[test]
fn no_file_outside_of_the_project_is_written_by_a_name_that_led_elsewhere() {
    let calls = [("Write", r##"{ file_path = "here/.bashrc", content = "touch PWNED #\n" }"##)];
    let user = user(&turns(8, &calls), |user| user.at(""));
    std::fs::write(user.at(".bashrc"), "# mine\n").unwrap();
    run(&user);
    assert_eq!(std::fs::read_to_string(user.at(".bashrc")).unwrap(), "# mine\n");
    assert!(user.project().join("inside/.bashrc").exists(), "some calls succeed");
}

#[test]
fn no_protected_file_is_written_by_a_name_that_led_elsewhere() {
    let calls = [("Write", r##"{ file_path = "here/config", content = "[core]\n\tfsmonitor = \"#\"\n" }"##)];
    let user = user(&turns(8, &calls), |user| user.project().join(".git"));
    let config = user.project().join(".git/config");
    let before = std::fs::read(&config).unwrap();
    run(&user);
    assert_eq!(std::fs::read(&config).unwrap(), before);
    assert!(user.project().join("inside/config").exists(), "some calls succeed");
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
