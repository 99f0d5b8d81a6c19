//! Unusable environments: one message, the documented exit code, and no local fallback.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use pintle_test_conditions::SSH_SERVERS;
use tempfile::TempDir;

use super::remote::{Remote, service, stdout_of};
use crate::harness::{CommandOutput, pintle, run};

/// Script that leaves a trace in the current directory if the run starts.
const TURNS: &str = "[[turn]]\n[[turn.call]]\ntool = \"shell\"\narguments = { command = \"echo ran > trace\" }\n[[turn]]\ntext = \"Done.\"\n";

/// Asserts the exit code, an empty standard output, and one line on standard error with all the parts.
fn assert_clear(output: &CommandOutput, code: i32, parts: &[&str]) {
    assert_eq!(
        (output.code, output.stdout.as_str(), output.stderr.lines().count()),
        (Some(code), "", 1),
        "{output:?}"
    );
    for part in parts {
        assert!(output.stderr.contains(part), "{part} in {output:?}");
    }
}

/// Asserts that `run` and `prompt` fail alike.
fn assert_rejected(remote: &Remote, arguments: &[&str], code: i32, parts: &[&str]) {
    let output = run(remote.run(TURNS, &["--toolset", "spec"]).args(arguments).arg("Go"));
    assert_clear(&output, code, parts);
    assert_clear(&run(remote.pintle(&["prompt"]).args(arguments)), code, parts);
    assert_eq!(remote.local_files(), ["script.toml"], "the task ran locally");
}

#[test]
fn container_must_be_running() {
    let Some(mut remote) = Remote::docker() else { return };
    assert_rejected(
        &remote,
        &["--dir", "/no/such"],
        2,
        &["directory /no/such", "does not exist on docker:", "existing directory; `--dir` sets it"],
    );
    assert_rejected(&remote, &["--dir", "no/such"], 2, &["directory no/such", "does not exist on docker:"]);
    assert_rejected(
        &remote,
        &["--dir", "/bin/sh"],
        2,
        &["directory /bin/sh", "is not a directory on docker:"],
    );
    assert_rejected(&remote, &["--dir", ""], 2, &["a value is required for '--dir <DIR>'"]);
    stdout_of(Command::new("docker").args(["pause", remote.container()]));
    assert_rejected(
        &remote,
        &[],
        1,
        &["cannot reach docker:", "the container is paused, expected a running one"],
    );
    stdout_of(Command::new("docker").args(["unpause", remote.container()]));
    remote.assert_clean();
    remote.env = "docker:no-such-container".to_owned();
    assert_rejected(&remote, &[], 1, &["cannot reach docker:no-such-container: ", "No such container"]);
    remote.variables[0].1 = "unix:///no/such.sock".into();
    assert_rejected(&remote, &[], 1, &["cannot reach docker:no-such-container: ", "unix:///no/such.sock"]);
}

#[test]
fn client_program_must_be_installed() {
    let directory = tempfile::tempdir().unwrap();
    for (env, parts) in [
        ("docker:box", ["cannot reach docker:box", "neither docker nor podman was found"]),
        ("ssh:host", ["cannot use ssh:host", "cannot start \"ssh\""]),
    ] {
        let mut command = pintle(&["prompt", "--env", env]);
        assert_clear(&run(command.env("PATH", directory.path()).env("TMPDIR", directory.path())), 1, &parts);
    }
}

/// Returns an option of `tester` in the configuration of the services.
fn option(services: &Path, name: &str) -> String {
    let known = stdout_of(Command::new("ssh").arg("-F").arg(services).args(["-G", "tester"]));
    let value = known.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.unwrap_or_else(|| panic!("ssh -G does not print {name}: {known}")).to_owned()
}

/// Writes a configuration like that of the services, with additional options for `tester`. User and port only apply to
/// `tester`.
fn configuration(services: &Path, lines: &str) -> (TempDir, PathBuf) {
    let get = |name| option(services, name);
    // ssh would try each of several keys.
    let own_key = if lines.contains("IdentityFile") { None } else { Some(get("identityfile")) };
    let key = own_key.map(|key| format!(" IdentityFile {key}\n")).unwrap_or_default();
    let config = format!(
        "Host tester\n{lines} User tester\n Port {}\nHost *\n HostName 127.0.0.1\n IdentitiesOnly yes\n \
         IdentityAgent none\n GlobalKnownHostsFile none\n UserKnownHostsFile {}\n StrictHostKeyChecking yes\n{key}",
        get("port"),
        get("userknownhostsfile"),
    );
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("config");
    fs::write(&file, config).unwrap();
    (directory, file)
}

#[test]
fn directory_must_exist() {
    let Some(remote) = Remote::ssh() else { return };
    let expected = ["does not exist on ssh:tester", "expected an existing directory"];
    assert_rejected(&remote, &["--dir", "/no/such"], 2, &[&["directory /no/such"], &expected[..]].concat());
    assert_rejected(&remote, &["--dir", "no/such"], 2, &[&["directory no/such"], &expected[..]].concat());
    remote.sh("mkdir -p shut/x && chmod 0 shut");
    let shut = format!("{}/shut/x", remote.directory);
    assert_rejected(
        &remote,
        &["--dir", &shut],
        2,
        &[&format!("directory {shut}: is not accessible on ssh:tester")],
    );
    remote.sh("chmod 700 shut");
    remote.assert_clean();
}

#[test]
fn ssh_failures_are_explained() {
    let Some(mut remote) = Remote::ssh() else { return };
    let services = service(&SSH_SERVERS, "PINTLE_TEST_SSH").unwrap();
    let services = Path::new(&services);
    let directory = tempfile::tempdir().unwrap();
    let key = directory.path().join("key");
    stdout_of(Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&key));
    let empty = directory.path().join("empty");
    fs::write(&empty, "").unwrap();
    let port = option(services, "port");
    let changed = directory.path().join("changed");
    let public = fs::read_to_string(key.with_extension("pub")).unwrap();
    fs::write(&changed, format!("[127.0.0.1]:{port} {public}")).unwrap();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();

    let cases = [
        (format!(" Port {closed}\n"), "the host refused the connection"),
        (format!(" HostName {}\n", "a".repeat(64)), "cannot resolve the host name"),
        (format!(" IdentityFile {}\n", key.display()), "the host accepted none of the keys"),
        (
            format!(" UserKnownHostsFile {}\n", empty.display()),
            "connect once with `ssh` to verify and accept the host key",
        ),
        (format!(" UserKnownHostsFile {}\n", changed.display()), "the host key has changed"),
        (" Jabber yes\n".to_owned(), "ssh rejected the host name or its configuration"),
    ];
    for (lines, part) in cases {
        let (_directory, config) = configuration(services, &lines);
        remote.use_configuration(&config);
        assert_rejected(&remote, &[], 1, &["cannot reach ssh:tester: ", part]);
    }
}

#[test]
fn user_and_port_can_be_given() {
    let Some(services) = service(&SSH_SERVERS, "PINTLE_TEST_SSH") else { return };
    let services = Path::new(&services);
    let (_directory, config) = configuration(services, "");
    let env = format!("ssh:tester@127.0.0.1:{}", option(services, "port"));
    let remote = Remote::ssh_with(&config, &env);
    let output = run(&mut remote.pintle(&["prompt", "--output", "plain"]));
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(
        output.stdout.contains(&format!("Working directory: {}\n", remote.login_directory())),
        "{output:?}"
    );
    remote.assert_clean();
}
