//! Places that are not there: one sentence, the documented exit code, and nothing done here instead.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::far::{Far, output, service};
use crate::lab::{Said, pintle, say};

/// What a run would leave in the current directory if it ever began.
const TURNS: &str = "[[turn]]\n[[turn.call]]\ntool = \"shell\"\narguments = { command = \"echo ran > trace\" }\n[[turn]]\ntext = \"Done.\"\n";

/// Nothing on standard output, one line on standard error with all the parts.
fn is_clear(said: &Said, code: i32, parts: &[&str]) {
    assert_eq!((said.code, said.out.as_str(), said.err.lines().count()), (Some(code), "", 1), "{said:?}");
    for part in parts {
        assert!(said.err.contains(part), "{part} in {said:?}");
    }
}

/// Both commands that go somewhere say the same.
fn is_refused(far: &Far, words: &[&str], code: i32, parts: &[&str]) {
    let run = say(far.run(TURNS, &["--toolset", "spec"]).args(words).arg("Go"));
    is_clear(&run, code, parts);
    is_clear(&say(far.pintle(&["prompt"]).args(words)), code, parts);
    assert_eq!(far.files_here(), ["script.toml"], "it was done here");
}

#[test]
fn a_container_must_be_there_and_run() {
    let Some(mut far) = Far::docker() else { return };
    is_refused(
        &far,
        &["--dir", "/no/such"],
        2,
        &["--dir /no/such", "does not exist at docker:", "existing directory"],
    );
    is_refused(&far, &["--dir", "no/such"], 2, &["--dir no/such", "does not exist at docker:"]);
    is_refused(&far, &["--dir", "/bin/sh"], 2, &["--dir /bin/sh", "is not a directory at docker:"]);
    is_refused(&far, &["--dir", ""], 2, &["a value is required for '--dir <DIR>'"]);
    output(Command::new("docker").args(["pause", far.container()]));
    is_refused(&far, &[], 1, &["cannot reach docker:", "the container is paused, expected a running one"]);
    output(Command::new("docker").args(["unpause", far.container()]));
    far.is_left_in_order();
    far.place = "docker:no-such-container".to_owned();
    is_refused(&far, &[], 1, &["cannot reach docker:no-such-container: ", "No such container"]);
    far.variables[0].1 = "unix:///no/such.sock".into();
    is_refused(&far, &[], 1, &["cannot reach docker:no-such-container: ", "unix:///no/such.sock"]);
}

#[test]
fn a_client_must_be_there() {
    let folder = tempfile::tempdir().unwrap();
    for (place, parts) in [
        ("docker:box", ["cannot reach docker:box", "neither docker nor podman was found"]),
        ("ssh:host", ["ssh:host cannot be used", "cannot start \"ssh\""]),
    ] {
        let mut command = pintle(&["prompt", "--env", place]);
        is_clear(&say(command.env("PATH", folder.path()).env("TMPDIR", folder.path())), 1, &parts);
    }
}

/// What the services say of `tester`.
fn option(services: &Path, name: &str) -> String {
    let known = output(Command::new("ssh").arg("-F").arg(services).args(["-G", "tester"]));
    let value = known.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.unwrap_or_else(|| panic!("ssh -G does not say {name}: {known}")).to_owned()
}

/// A configuration like that of the services, where `tester` begins with these lines. Who and which port is said of
/// `tester` only.
fn configuration(services: &Path, lines: &str) -> (TempDir, PathBuf) {
    let get = |name| option(services, name);
    // Of several keys each would be tried.
    let own_key = if lines.contains("IdentityFile") { None } else { Some(get("identityfile")) };
    let key = own_key.map(|key| format!(" IdentityFile {key}\n")).unwrap_or_default();
    let config = format!(
        "Host tester\n{lines} User tester\n Port {}\nHost *\n HostName 127.0.0.1\n IdentitiesOnly yes\n \
         IdentityAgent none\n GlobalKnownHostsFile none\n UserKnownHostsFile {}\n StrictHostKeyChecking yes\n{key}",
        get("port"),
        get("userknownhostsfile"),
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config");
    fs::write(&file, config).unwrap();
    (folder, file)
}

#[test]
fn a_directory_must_be_there() {
    let Some(far) = Far::ssh() else { return };
    let expected = ["does not exist at ssh:tester", "expected an existing directory there"];
    is_refused(&far, &["--dir", "/no/such"], 2, &[&["--dir /no/such"], &expected[..]].concat());
    is_refused(&far, &["--dir", "no/such"], 2, &[&["--dir no/such"], &expected[..]].concat());
    far.sh("mkdir -p shut/x && chmod 0 shut");
    let shut = format!("{}/shut/x", far.directory);
    is_refused(&far, &["--dir", &shut], 2, &[&format!("--dir {shut}: is not accessible at ssh:tester")]);
    far.sh("chmod 700 shut");
    far.is_left_in_order();
}

#[test]
fn a_host_must_be_known_and_let_us_in() {
    let Some(mut far) = Far::ssh() else { return };
    let services = service("PINTLE_TEST_SSH").unwrap();
    let services = Path::new(&services);
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    output(Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&key));
    let empty = folder.path().join("empty");
    fs::write(&empty, "").unwrap();
    let port = option(services, "port");
    let changed = folder.path().join("changed");
    let public = fs::read_to_string(key.with_extension("pub")).unwrap();
    fs::write(&changed, format!("[127.0.0.1]:{port} {public}")).unwrap();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();

    let rows = [
        (format!(" Port {closed}\n"), "the host refused the connection"),
        (format!(" HostName {}\n", "a".repeat(64)), "cannot resolve the host name"),
        (format!(" IdentityFile {}\n", key.display()), "the host accepted none of the keys"),
        (
            format!(" UserKnownHostsFile {}\n", empty.display()),
            "connect once with `ssh` to check and accept the key",
        ),
        (format!(" UserKnownHostsFile {}\n", changed.display()), "the host key has changed"),
        (" Jabber yes\n".to_owned(), "ssh rejected the host name or its configuration"),
    ];
    for (lines, part) in rows {
        let (_folder, config) = configuration(services, &lines);
        far.client_reads(&config);
        is_refused(&far, &[], 1, &["cannot reach ssh:tester: ", part]);
    }
}

#[test]
fn a_user_and_a_port_may_be_named() {
    let Some(services) = service("PINTLE_TEST_SSH") else { return };
    let services = Path::new(&services);
    let (_folder, config) = configuration(services, "");
    let place = format!("ssh:tester@127.0.0.1:{}", option(services, "port"));
    let far = Far::ssh_with(&config, &place);
    let said = say(&mut far.pintle(&["prompt", "--output", "plain"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains(&format!("Working directory: {}\n", far.login())), "{said:?}");
    far.is_left_in_order();
}
