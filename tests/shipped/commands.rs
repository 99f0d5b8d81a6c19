//! Commands of a run.

use super::user::User;

/// Writes within the project and in the home.
const WRITING: &str = r#"
    [[turn]]
    [[turn.call]]
    tool = "Bash"
    arguments = { command = "git config user.name; echo within >within.txt; echo beyond >../beyond.txt" }
    [[turn]]
    text = "Done."
    "#;

#[test]
fn a_run_is_confined_to_its_project_and_kept() {
    // Each of them confines commands.
    if !pintle_test_conditions::BUBBLEWRAP.is_present() && !pintle_test_conditions::LANDLOCK.is_present() {
        return;
    }
    let user = User::new(WRITING);
    let ran = user.run("Write two files");
    assert!(ran.contains("Done."), "{ran}");
    assert_eq!(std::fs::read_to_string(user.project().join("within.txt")).unwrap(), "within\n");
    assert!(!user.at("beyond.txt").exists(), "{ran}");
    // The command has the git configuration of its user.
    let result = user.request(1);
    assert!(result.contains("A User"), "{result}");
    let listed = user.pintle(&["sessions", "list"]);
    assert!(listed.contains("Write two files"), "{listed}");
    assert!(user.at(".local/state/pintle/sessions").is_dir());
}

/// Has a name that would set the title and the colours of a terminal.
const ODD_NAME: &str = r#"
    [[turn]]
    [[turn.call]]
    tool = "Bash"
    arguments = { command = "touch \"$(printf 'a\\033[31mred\\033]0;title\\007\\nb')\"" }
    [[turn]]
    text = "Done."
    "#;

#[test]
fn names_of_files_steer_no_terminal() {
    let user = User::new(ODD_NAME);
    user.run("Touch a file");
    let listed = user.pintle(&["sessions", "list"]);
    let point = format!("{}@0", listed.split_whitespace().next().unwrap());
    for arguments in [&["sessions", "rewind", point.as_str(), "--dry-run"][..], &["sessions", "diff", &point]]
    {
        let said = user.pintle(arguments);
        assert!(said.contains("red") && !said.contains('\u{1b}'), "{arguments:?}: {said:?}");
        assert!(!said.contains("\nb"), "the name is in one line: {said:?}");
    }
}

/// Names from outside that commands print: of a session, a rule, a server and its program, and of a grant.
#[test]
fn no_list_steers_a_terminal() {
    let user = User::new(ODD_NAME);
    let odd = "a\u{1b}[31mred\u{1b}]0;title\u{7}b\u{202e}c";
    user.run(odd);
    let escaped = odd.replace('\u{1b}', "\\u001b").replace('\u{7}', "\\u0007");
    let servers =
        format!(r#"{{"mcpServers": {{"server": {{"command": "{escaped}", "args": ["{escaped}"]}}}}}}"#);
    std::fs::create_dir_all(user.at(".config/pintle")).unwrap();
    std::fs::write(user.at(".config/pintle/mcp.json"), servers).unwrap();
    let rules = format!("deny = [\"@read({escaped})\"]\n");
    std::fs::write(user.at(".config/pintle/rules.toml"), rules).unwrap();
    user.pintle(&["grants", "revoke", odd]);
    let listed = user.pintle(&["sessions", "list"]);
    let id = listed.split_whitespace().next().unwrap().to_owned();
    for arguments in [
        &["sessions", "list"][..],
        &["sessions", "show", &id],
        &["sessions", "verify", &id],
        &["sessions", "export", &id, "--format", "markdown"],
        &["audit", &id],
        &["rules", "list"],
        &["rules", "check", "shell(ls)"],
        &["mcp", "list"],
        &["grants", "list"],
        &["approvals", "list"],
        &["trust", "--list"],
        &["config", "list"],
        &["worktree", "list"],
    ] {
        let printed = user.pintle(arguments);
        let is_steering = |c: char| c.is_control() && !"\n\t".contains(c) || c == '\u{202e}';
        assert!(!printed.contains(is_steering), "{arguments:?}: {printed:?}");
    }
}

#[test]
fn a_command_at_the_level_writes_leaves_other_processes_alone() {
    if !pintle_test_conditions::LANDLOCK.is_present() {
        return;
    }
    let mut other = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
    let id = other.id();
    let limits = || std::fs::read_to_string(format!("/proc/{id}/limits")).unwrap();
    let before = limits();
    let turns = format!(
        "[[turn]]\n[[turn.call]]\ntool = \"Bash\"\narguments = {{ command = \"prlimit --pid {id} --nofile=64:64; renice 19 {id}; true\" }}\n\
         [[turn]]\ntext = \"Done.\"\n"
    );
    let user = User::new(&turns);
    let ran = user.run_command("Limit it").args(["--sandbox", "writes"]).output().unwrap();
    let after = limits();
    other.kill().unwrap();
    other.wait().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    let notices = String::from_utf8_lossy(&ran.stderr);
    assert!(notices.contains("and change git's settings\n"), "the user chose the level: {notices}");
    assert_eq!(after, before);
    let result = user.request(1);
    assert!(result.contains("prlimit"), "the command ran: {result}");
}

/// Makes a directory below the temporary one that its owner cannot list.
const LOCKING: &str = r#"
    [[turn]]
    [[turn.call]]
    tool = "Bash"
    arguments = { command = "mkdir -p $TMPDIR/a/b && touch $TMPDIR/a/b/c && chmod 000 $TMPDIR/a/b $TMPDIR/a && echo locked" }
    [[turn]]
    text = "Done."
    "#;

#[test]
fn temporary_directories_without_permissions_are_removed() {
    if !pintle_test_conditions::BUBBLEWRAP.is_present() {
        return;
    }
    let user = User::new(LOCKING);
    let temporary = user.at("temporary");
    std::fs::create_dir(&temporary).unwrap();
    let output = user.run_command("Go").env("TMPDIR", &temporary).output().unwrap();
    assert!(output.status.success() && user.request(1).contains("locked"), "{output:?}");
    let left: Vec<_> = std::fs::read_dir(&temporary).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Waits in a command, or answers.
const WAITING: &str = r#"
    [[turn]]
    [[turn.call]]
    tool = "Bash"
    arguments = { command = "touch $TMPDIR/left started; sleep 600" }
    [[turn]]
    text = "Done."
    "#;

#[test]
fn the_temporary_directory_of_a_killed_run_is_removed_by_the_next_one() {
    if !pintle_test_conditions::BUBBLEWRAP.is_present() && !pintle_test_conditions::LANDLOCK.is_present() {
        return;
    }
    let user = User::new(WAITING);
    let temporary = user.at("temporary");
    std::fs::create_dir(&temporary).unwrap();
    let mut killed = user.run_command("Go").env("TMPDIR", &temporary).spawn().unwrap();
    user.wait_for_file("started");
    // One turn of a run without a session; the rest of the killed run, and the next message.
    let user = user.with_turns(&"[[turn]]\ntext = \"Done.\"\n".repeat(3));
    let run = |more: &[&str]| {
        let output = user.run_command("Answer").args(more).env("TMPDIR", &temporary).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        std::fs::read_dir(&temporary).unwrap().count()
    };
    assert_eq!(run(&["--no-session"]), 1, "the session is alive");
    killed.kill().unwrap();
    killed.wait().unwrap();
    // Its commands end soon after it.
    std::thread::sleep(std::time::Duration::from_secs(4));
    assert_eq!(run(&["--continue"]), 0);
}

/// Keys of another user, as after `su`.
#[test]
fn variables_that_lead_to_a_closed_directory_stop_no_run() {
    if !pintle_test_conditions::BUBBLEWRAP.is_present() {
        return;
    }
    use std::os::unix::fs::PermissionsExt as _;

    let user = User::new(WRITING);
    let closed = user.at("closed");
    std::fs::create_dir_all(closed.join("below")).unwrap();
    std::fs::write(closed.join("below/credentials"), "x").unwrap();
    let set_mode = |mode| std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(mode)).unwrap();
    set_mode(0o000);
    let usual = user.run_command("Write");
    // Root reads everything, unless it gives that up.
    let is_root = std::fs::read_dir(&closed).is_ok();
    let mut command = std::process::Command::new(if is_root {
        std::ffi::OsStr::new("setpriv")
    } else {
        usual.get_program()
    });
    if is_root {
        command.args(["--bounding-set", "-dac_override,-dac_read_search"]).arg(usual.get_program());
    }
    command.args(usual.get_args()).current_dir(user.project()).env_clear();
    command.envs(usual.get_envs().filter_map(|(name, value)| Some((name, value?))));
    for name in ["CARGO_HOME", "KUBECONFIG", "AWS_SHARED_CREDENTIALS_FILE", "GNUPGHOME"] {
        command.env(name, closed.join("below/credentials"));
    }
    let output = command.stdin(std::process::Stdio::null()).output().unwrap();
    set_mode(0o700);
    assert!(output.status.success(), "{output:?}");
    assert!(user.project().join("within.txt").exists(), "{output:?}");
}

/// Starts a server, as Python's `forkserver` and node do, and connects to a service of the machine.
const SOCKETS: &str = r#"
    [[turn]]
    [[turn.call]]
    tool = "Bash"
    arguments = { command = '''cat >sockets.py <<'END'
import multiprocessing, os, socket
def square(n):
    return n * n
def reaches(path):
    try:
        socket.socket(socket.AF_UNIX).connect(path)
        return True
    except OSError:
        return False
if __name__ == "__main__":
    with multiprocessing.get_context("forkserver").Pool(1) as pool:
        print("squares", pool.map(square, [3]))
    # TMPDIR may be /tmp.
    for name in ["./a.sock", os.environ["TMPDIR"] + "/b.sock", "/tmp/c.sock"]:
        own = socket.socket(socket.AF_UNIX)
        own.bind(name)
        own.listen()
        print("own", reaches(name))
    print("service", reaches("../service.sock"))
END
python3 sockets.py''' }
    [[turn]]
    text = "Done."
    "#;

#[test]
fn commands_have_sockets_of_their_own_and_none_of_services() {
    if !pintle_test_conditions::BUBBLEWRAP.is_present() {
        return;
    }
    let user = User::new(SOCKETS);
    let _service = std::os::unix::net::UnixListener::bind(user.at("service.sock")).unwrap();
    user.run("Go");
    let result = user.request(1);
    assert!(result.contains("squares [9]") && result.contains("service False"), "{result}");
    assert_eq!(result.matches("own True").count(), 3, "{result}");
}
