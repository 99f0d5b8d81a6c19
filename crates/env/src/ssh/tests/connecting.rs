//! Connections: establishing, refusals, loss and closing.

use std::{
    error::Error,
    fs,
    process::{Output, Stdio},
    time::{Duration, Instant},
};

use tokio::io::AsyncReadExt as _;

use super::service::{Harness, Proxy, closed_port, config_file, option, processes_naming, silent_server};
use crate::{
    error::EnvError,
    remote::tests::matrix::{LONG, until},
    remote::transport::Transport,
    ssh::{SshError, SshErrorKind, transport::SshTransport},
};

async fn run(transport: &SshTransport, line: &str) -> Output {
    let mut command = tokio::process::Command::from(transport.command(line));
    let running = command.stdin(Stdio::null()).kill_on_drop(true).output();
    tokio::time::timeout(LONG, running).await.expect("a line hangs").unwrap()
}

fn kind(error: &EnvError) -> SshErrorKind {
    let source = error.source().unwrap_or_else(|| panic!("{error:?} has no source"));
    source.downcast_ref::<SshError>().unwrap_or_else(|| panic!("{source:?} is of another type")).kind
}

#[tokio::test]
async fn lines_run_with_their_streams_and_exits() {
    let Some(services) = config_file() else { return };
    let harness = Harness::new(&services, "");
    for (host, user) in [("root", "root"), ("tester", "tester"), ("limits", "tester")] {
        let transport = SshTransport::new(harness.connection(host));
        transport.open().await.unwrap();
        let output = run(&transport, "id -un; echo err >&2; exit 7").await;
        assert_eq!(String::from_utf8(output.stdout).unwrap().trim(), user);
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "err\n");
        assert_eq!(output.status.code(), Some(7));
        transport.close().await.unwrap();
    }
    assert_eq!(harness.sockets(), 0);
}

#[tokio::test]
async fn a_line_arrives_unchanged() {
    let Some(services) = config_file() else { return };
    let harness = Harness::new(&services, "");
    let transport = SshTransport::new(harness.connection("tester"));
    transport.open().await.unwrap();
    let words = "it's|\"|\\|\\\\|$(id)|`id`|*|~|!x|%h %%|a  b|ä\u{1f980}|two\nlines|;&<>|-n|#|\t|\\n";
    let line = format!("cat <<'END'\n{words}\nEND\n");
    let output = run(&transport, &line).await;
    assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{words}\n"));
    // The system's shell, without the environment of this process.
    let output = run(&transport, "echo \"$0|${CARGO_MANIFEST_DIR-unset}\"").await;
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "/bin/sh|unset\n");
    transport.close().await.unwrap();
}

#[tokio::test]
async fn the_socket_is_private_and_removed_on_close() {
    use std::os::unix::fs::PermissionsExt;
    let Some(services) = config_file() else { return };
    let harness = Harness::new(&services, "");
    let connection = harness.connection("tester");
    let sockets = connection.socket_directory.clone();
    let transport = SshTransport::new(connection);
    transport.open().await.unwrap();
    transport.open().await.unwrap();
    let created: Vec<_> = fs::read_dir(&sockets).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(created.len(), 1, "one connection is enough");
    assert_eq!(fs::metadata(&created[0]).unwrap().permissions().mode() & 0o777, 0o700);
    assert!(!processes_naming(&created[0]).is_empty());
    // Equivalent to a killed application: the lifeline closes, and no one waits.
    drop(transport);
    until("the client and its directory are gone", || {
        processes_naming(&created[0]).is_empty() && harness.sockets() == 0
    })
    .await;
}

#[tokio::test]
async fn lines_fail_without_a_connection() {
    let Some(services) = config_file() else { return };
    let harness = Harness::new(&services, "");
    let transport = SshTransport::new(harness.connection("tester"));
    for _ in 0..2 {
        let output = run(&transport, "echo ran").await;
        assert!(!output.status.success());
        assert!(output.stdout.is_empty(), "a line ran without the connection");
        let error = transport.exit_error(output.status, &String::from_utf8_lossy(&output.stderr));
        assert!(
            matches!(&error, EnvError::EnvironmentLost { environment, .. } if environment == "ssh:tester")
        );
        assert_eq!(kind(&error), SshErrorKind::NotConnected);
        transport.open().await.unwrap();
        assert!(run(&transport, "true").await.status.success());
        transport.close().await.unwrap();
    }
}

#[tokio::test]
async fn bytes_pass_through_unchanged() {
    let Some(services) = config_file() else { return };
    let harness = Harness::new(&services, "");
    let transport = SshTransport::new(harness.connection("tester"));
    transport.open().await.unwrap();
    let bytes: Vec<u8> =
        (0..3_000_000_u32).map(|number| (number * 31 % 251) as u8 ^ (number % 256) as u8).collect();
    let mut command = tokio::process::Command::from(transport.command("cat; cat >&2 /dev/null"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let feed = async {
        tokio::io::AsyncWriteExt::write_all(&mut stdin, &bytes).await.unwrap();
        drop(stdin);
    };
    let ((), output) = tokio::join!(feed, child.wait_with_output());
    let output = output.unwrap();
    assert!(output.status.success());
    assert!(output.stdout == bytes, "{} bytes came back", output.stdout.len());
    assert!(output.stderr.is_empty());
    transport.close().await.unwrap();
}

#[tokio::test]
async fn a_refused_session_keeps_the_connection() {
    let Some(services) = config_file() else { return };
    let harness = Harness::new(&services, "");
    let transport = SshTransport::new(harness.connection("limits"));
    transport.open().await.unwrap();
    // The default of servers, and exactly what eight commands with their helpers need.
    let mut sessions = Vec::new();
    for _ in 0..10 {
        let mut command = tokio::process::Command::from(transport.command("echo up; cat"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut session = command.spawn().unwrap();
        let mut up = [0; 3];
        tokio::io::AsyncReadExt::read_exact(session.stdout.as_mut().unwrap(), &mut up).await.unwrap();
        sessions.push(session);
    }
    let output = run(&transport, "echo ran").await;
    assert!(output.stdout.is_empty(), "a line ran without the connection");
    let error = transport.exit_error(output.status, &String::from_utf8_lossy(&output.stderr));
    assert_eq!(kind(&error), SshErrorKind::SessionRefused);
    for session in &mut sessions {
        drop(session.stdin.take());
        assert!(session.wait().await.unwrap().success());
    }
    transport.open().await.unwrap();
    assert!(run(&transport, "true").await.status.success());
    transport.close().await.unwrap();
}

/// Fails to connect within the time limit plus a margin, and returns the kind of error.
async fn refusal(harness: &Harness, host: &str, limit: Duration) -> SshErrorKind {
    let mut connection = harness.connection(host);
    connection.connect_timeout = limit;
    let started = Instant::now();
    let error = SshTransport::new(connection).open().await.unwrap_err();
    assert!(started.elapsed() < limit + Duration::from_secs(5), "{error:?} took {:?}", started.elapsed());
    assert!(
        matches!(&error, EnvError::Unreachable { environment, .. } if *environment == format!("ssh:{host}"))
    );
    assert_eq!(harness.sockets(), 0, "{error:?} leaves a socket");
    kind(&error)
}

#[tokio::test]
async fn unreachable_hosts_are_typed_errors() {
    let Some(services) = config_file() else { return };
    let (silent, _tasks) = silent_server().await;
    let unknown = "a".repeat(64);
    let lines = format!(
        "Host refuses\n Port {}\nHost nowhere\n HostName {unknown}\nHost silent\n Port {}\n\
         Host refuses silent\n HostName 127.0.0.1\n",
        closed_port(),
        silent.port(),
    );
    let harness = Harness::new(&services, &lines);
    let limit = Duration::from_secs(3);
    assert_eq!(refusal(&harness, "refuses", LONG).await, SshErrorKind::Refused);
    assert_eq!(refusal(&harness, "nowhere", LONG).await, SshErrorKind::UnknownHost);
    assert_eq!(refusal(&harness, "silent", limit).await, SshErrorKind::TimedOut);
    assert_eq!(
        refusal(&Harness::new(&services, "Jabber yes"), "tester", LONG).await,
        SshErrorKind::Configuration
    );
    let missing = Harness::new(&services, "");
    fs::remove_file(missing.directory.path().join("config")).unwrap();
    assert_eq!(refusal(&missing, "tester", LONG).await, SshErrorKind::Configuration);
    assert_eq!(refusal(&missing, "-oProxyCommand=true", LONG).await, SshErrorKind::Configuration);
}

#[tokio::test]
async fn key_problems_are_typed_errors() {
    let Some(services) = config_file() else { return };
    let harness = Harness::new(&services, "");
    let (key, empty) = (harness.key("key"), harness.directory.path().join("empty"));
    fs::write(&empty, "").unwrap();
    let port = option(&services, "tester", "port");
    let public = fs::read_to_string(key.with_extension("pub")).unwrap();
    let changed = harness.directory.path().join("changed");
    fs::write(&changed, format!("[127.0.0.1]:{port} {public}")).unwrap();
    for (line, expected) in [
        (format!("IdentityFile {}", key.display()), SshErrorKind::AuthenticationFailed),
        (format!("UserKnownHostsFile {}", empty.display()), SshErrorKind::HostKeyUnknown),
        (
            format!("UserKnownHostsFile {}\n StrictHostKeyChecking ask", empty.display()),
            SshErrorKind::HostKeyUnknown,
        ),
        (format!("UserKnownHostsFile {}", changed.display()), SshErrorKind::HostKeyChanged),
        (
            format!("UserKnownHostsFile {}\n StrictHostKeyChecking accept-new", changed.display()),
            SshErrorKind::HostKeyChanged,
        ),
    ] {
        // ssh tries each of several keys, so the configuration of the services is not included
        // here.
        let own = Harness::new(&harness.directory.path().join("nothing"), &bare_host(&services, &line));
        assert_eq!(refusal(&own, "tester", LONG).await, expected, "{line}");
    }
}

/// Configuration of a host like `tester`, with `line` before the settings of the services.
fn bare_host(services: &std::path::Path, line: &str) -> String {
    let get = |name| option(services, "tester", name);
    format!(
        "Host tester\n {line}\n HostName 127.0.0.1\n User tester\n Port {}\n IdentitiesOnly yes\n \
         IdentityAgent none\n GlobalKnownHostsFile none\n UserKnownHostsFile {}\n StrictHostKeyChecking yes\n{}",
        get("port"),
        get("userknownhostsfile"),
        if line.starts_with("IdentityFile") {
            String::new()
        } else {
            format!(" IdentityFile {}\n", get("identityfile"))
        },
    )
}

#[tokio::test]
async fn a_missing_client_is_not_started() {
    let Some(services) = config_file() else { return };
    let harness = Harness::new(&services, "");
    let mut connection = harness.connection("tester");
    connection.program = "no-such-client".into();
    let error = SshTransport::new(connection).open().await.unwrap_err();
    assert!(matches!(&error, EnvError::Spawn { program, .. } if program == "no-such-client"), "{error:?}");
}

#[tokio::test]
async fn jump_hosts_and_user_configuration_are_used() {
    let Some(services) = config_file() else { return };
    // Settings that would affect the lines; none of them may have an effect.
    let lines = "Host behind\n ProxyJump limits\n HostName 127.0.0.1\n User root\n RequestTTY force\n \
                 RemoteCommand echo no\n ControlMaster auto\n ControlPersist yes\n SetEnv PINTLE=1\n \
                 LocalForward 127.0.0.1:1 127.0.0.1:2\n";
    let port = option(&services, "root", "port");
    let get = |name| option(&services, "root", name);
    let keys = format!(
        " Port {port}\n IdentityFile {}\n UserKnownHostsFile {}\n IdentitiesOnly yes\n",
        get("identityfile"),
        get("userknownhostsfile")
    );
    let harness = Harness::new(&services, &format!("{lines}{keys}"));
    let transport = SshTransport::new(harness.connection("behind"));
    transport.open().await.unwrap();
    let output = run(&transport, "id -un; [ -t 0 ] || echo no terminal").await;
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "root\nno terminal\n");
    transport.close().await.unwrap();
    assert_eq!(harness.sockets(), 0);
}

#[tokio::test]
async fn the_client_of_a_jump_host_does_not_prompt() {
    let Some(services) = config_file() else { return };
    let harness = Harness::new(&services, "");
    let empty = harness.directory.path().join("empty");
    fs::write(&empty, "").unwrap();
    // The jump host's client does not receive our options: it would ask to confirm the key.
    let known = format!(" UserKnownHostsFile {}\n StrictHostKeyChecking ask\n", empty.display());
    let lines = format!("Host behind\n ProxyJump limits\n HostName 127.0.0.1\nHost limits\n{known}");
    let harness = Harness::new(&services, &lines);
    let kind = refusal(&harness, "behind", LONG).await;
    assert_eq!(kind, SshErrorKind::HostKeyUnknown);
}

#[tokio::test]
async fn a_cut_connection_is_lost_and_reopened_later() {
    let Some(services) = config_file() else { return };
    let port: u16 = option(&services, "tester", "port").parse().unwrap();
    let proxy = Proxy::in_front_of(port).await;
    let harness = Harness::new(&services, &proxy.host_lines("tester", port));
    let transport = SshTransport::new(harness.connection("tester"));
    transport.open().await.unwrap();
    let mut command = tokio::process::Command::from(transport.command("echo begun; sleep 100"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut running = command.spawn().unwrap();
    let mut line = [0; 6];
    running.stdout.as_mut().unwrap().read_exact(&mut line).await.unwrap();
    assert_eq!(&line, b"begun\n");
    proxy.cut();
    let since = Instant::now();
    let output = tokio::time::timeout(LONG, running.wait_with_output()).await.expect("a line hangs").unwrap();
    assert!(since.elapsed() < Duration::from_secs(5), "{:?}", since.elapsed());
    assert!(!output.status.success());
    let error = transport.exit_error(output.status, &String::from_utf8_lossy(&output.stderr));
    assert!(matches!(&error, EnvError::EnvironmentLost { .. }), "{error:?}");
    // The proxy is closed now, so a new attempt fails.
    let error = transport.open().await.unwrap_err();
    assert!(matches!(&error, EnvError::Unreachable { .. }), "{error:?}");
    let again = Harness::new(&services, "");
    fs::copy(again.directory.path().join("config"), harness.directory.path().join("config")).unwrap();
    transport.open().await.unwrap();
    assert!(run(&transport, "true").await.status.success());
    transport.close().await.unwrap();
}

#[tokio::test]
async fn a_half_open_connection_is_detected() {
    let Some(services) = config_file() else { return };
    let port: u16 = option(&services, "tester", "port").parse().unwrap();
    let proxy = Proxy::in_front_of(port).await;
    let harness = Harness::new(&services, &proxy.host_lines("tester", port));
    let mut connection = harness.connection("tester");
    connection.alive_interval = Duration::from_secs(1);
    let transport = SshTransport::new(connection);
    transport.open().await.unwrap();
    proxy.freeze();
    let started = Instant::now();
    let output = run(&transport, "echo unheard").await;
    // Three seconds, plus a margin.
    assert!(started.elapsed() < Duration::from_secs(6), "{:?}", started.elapsed());
    let error = transport.exit_error(output.status, &String::from_utf8_lossy(&output.stderr));
    assert_eq!(kind(&error), SshErrorKind::ConnectionLost);
    transport.close().await.unwrap();
}
