//! Two ssh servers on loopback: one that allows many sessions per connection, and one with the default limit.
//!
//! Each has its own PID namespace: users see and signal only its processes, and all of them exit with it.
//!
//! `ssh_config` defines the hosts `root` and `tester` on the first server, and `limits` (as `tester`) on the second. The
//! hosts `bash`, `csh` and `fish` are users with those login shells, whose start-up files print noise.

use std::{
    fs,
    io::Read,
    net::{Ipv4Addr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use super::{
    Variables, cannot, create_directory,
    daemon::{self, Daemon},
    install::find_or_install,
    quoted, write,
};
use crate::failure::{Context as _, Failure};

/// User who is not root. Created if missing, and not removed.
const USER: &str = "tester";

/// Users with other login shells: host name, shell, package, and start-up file in the home directory.
const SHELLS: [(&str, &str, &str, &str); 3] = [
    ("bash", "/bin/bash", "bash", ".bashrc"),
    ("csh", "/bin/csh", "csh", ".cshrc"),
    ("fish", "/usr/bin/fish", "fish", ".config/fish/config.fish"),
];

/// Content of the start-up files, valid in each shell. It prints to both streams without a line end.
const NOISE: &str = "sh -c 'printf noise; printf noise >&2'\n";

/// Empty directory that `sshd` needs for privilege separation.
const PRIVILEGE_SEPARATION: &str = "/run/sshd";

const SERVERS: [(&str, &str); 2] =
    [("many", "MaxSessions 64\nMaxStartups 100\n"), ("limits", "MaxStartups 100\n")];

/// Starts both servers and writes the clients' configuration.
pub(super) fn up(directory: &Path) -> Result<Variables, Failure> {
    let sshd = find_or_install("sshd", &["openssh-server"])?;
    find_or_install("ssh", &["openssh-client"])?;
    create_user(USER, "/bin/sh")?;
    for (host, shell, package, start_up) in SHELLS {
        find_or_install(shell.rsplit('/').next().unwrap_or(shell), &[package])?;
        let user = user_of(host);
        create_user(&user, shell)?;
        let file = Path::new("/home").join(user).join(start_up);
        create_directory(file.parent().unwrap_or(&file))?;
        write(&file, NOISE)?;
    }
    create_directory(Path::new(PRIVILEGE_SEPARATION))?;
    create_key(&directory.join("host_key"))?;
    create_key(&directory.join("id"))?;
    let [many, limits] = SERVERS.map(|(name, limits)| start(directory, &sshd, name, limits));
    let (many, limits) = (many?, limits?);
    let host_key = read(&directory.join("host_key.pub"))?;
    write(&directory.join("known_hosts"), &known_hosts(&host_key, [many, limits]))?;
    let config = directory.join("ssh_config");
    write(&config, &client_config(directory, many, limits))?;
    Ok(vec![("PINTLE_TEST_SSH", config.display().to_string())])
}

/// Stops both servers. Their keys and logs are kept.
pub(super) fn down(directory: &Path) -> Result<bool, Failure> {
    let mut was_up = false;
    for (name, _) in SERVERS {
        was_up |= daemon(directory, name).terminate()?;
    }
    Ok(was_up)
}

fn daemon(directory: &Path, name: &str) -> Daemon {
    Daemon { pid_file: directory.join(format!("{name}.pid")), marker: server_config_path(directory, name) }
}

fn server_config_path(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}.conf"))
}

/// Starts one server unless it is running. Returns its port.
fn start(directory: &Path, sshd: &Path, name: &str, limits: &str) -> Result<u16, Failure> {
    let config = server_config_path(directory, name);
    if daemon(directory, name).id().is_some()
        && let Some(port) = port_of(&read(&config)?)
        && speaks_ssh(port)
    {
        return Ok(port);
    }
    let port = free_port()?;
    write(&config, &server_config(directory, port, limits))?;
    let mut command = Command::new(find_or_install("unshare", &["util-linux"])?);
    command.args(["--pid", "--fork", "--kill-child", "--mount-proc"]).arg(sshd);
    // In the foreground, so that it is our child and its exit is noticed.
    command.arg("-D").arg("-e").arg("-f").arg(&config);
    let id = daemon::start(&mut command, &directory.join(format!("{name}.log")), || speaks_ssh(port))?;
    write(&daemon(directory, name).pid_file, &id.to_string())?;
    Ok(port)
}

/// Returns the configuration of a server.
///
/// Keys are printed by a program that runs as root, since the users may not be able to enter our directory. `SHLVL`
/// keeps bash from reading root's start-up file on this machine, except for the user whose start-up file is tested.
fn server_config(directory: &Path, port: u16, limits: &str) -> String {
    let path = |file: &str| config_word(&directory.join(file));
    format!(
        "ListenAddress 127.0.0.1:{port}\n\
         HostKey {}\n\
         PidFile none\n\
         AuthorizedKeysFile none\n\
         AuthorizedKeysCommand /bin/cat {}\n\
         AuthorizedKeysCommandUser root\n\
         PasswordAuthentication no\n\
         KbdInteractiveAuthentication no\n\
         UsePAM no\n\
         PermitRootLogin prohibit-password\n\
         SetEnv SHLVL=1\n\
         {limits}\
         Match User {}\n    SetEnv SHLVL=0\n",
        path("host_key"),
        path("id.pub"),
        user_of("bash"),
    )
}

fn client_config(directory: &Path, many: u16, limits: u16) -> String {
    let path = |file: &str| config_word(&directory.join(file));
    let shells =
        SHELLS.map(|(host, ..)| format!("Host {host}\n    User {}\n    Port {many}\n", user_of(host)));
    let names = SHELLS.map(|(host, ..)| host).join(" ");
    format!(
        "Host root\n    User root\n    Port {many}\n\
         Host tester\n    User {USER}\n    Port {many}\n\
         Host limits\n    User {USER}\n    Port {limits}\n\
         {}Host root tester limits {names}\n    HostName 127.0.0.1\n    IdentityFile {}\n    IdentitiesOnly yes\n    \
         IdentityAgent none\n    UserKnownHostsFile {}\n    GlobalKnownHostsFile none\n    \
         StrictHostKeyChecking yes\n",
        shells.concat(),
        path("id"),
        path("known_hosts"),
    )
}

fn known_hosts(host_key: &str, ports: [u16; 2]) -> String {
    ports.map(|port| format!("[127.0.0.1]:{port} {}\n", host_key.trim())).concat()
}

/// Quotes a path as one word of a client or server configuration.
fn config_word(path: &Path) -> String {
    format!("\"{}\"", path.display().to_string().replace('%', "%%"))
}

fn port_of(config: &str) -> Option<u16> {
    config.lines().find_map(|line| line.strip_prefix("ListenAddress 127.0.0.1:"))?.parse().ok()
}

/// Returns whether an ssh server answers on `port`.
fn speaks_ssh(port: u16) -> bool {
    let greeting = || -> std::io::Result<[u8; 4]> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        let mut greeting = [0; 4];
        stream.read_exact(&mut greeting)?;
        Ok(greeting)
    };
    greeting().is_ok_and(|greeting| &greeting == b"SSH-")
}

fn free_port() -> Result<u16, Failure> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
    Ok(listener.context("there is no free port on loopback")?.port())
}

fn create_key(path: &Path) -> Result<(), Failure> {
    if path.is_file() && path.with_extension("pub").is_file() {
        return Ok(());
    }
    // With only one file of the pair, the program would ask whether to overwrite it.
    let _ = fs::remove_file(path);
    let mut keygen = Command::new(find_or_install("ssh-keygen", &["openssh-client"])?);
    run(keygen.args(["-q", "-t", "ed25519", "-N", "", "-C", "pintle tests", "-f"]).arg(path))
}

/// Returns the user of a host with another login shell.
fn user_of(host: &str) -> String {
    format!("{USER}-{host}")
}

/// Creates a user. The password is `*`, since a locked account is refused even with a key.
fn create_user(user: &str, shell: &str) -> Result<(), Failure> {
    let known = Command::new("id").arg(user).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if known.is_ok_and(|status| status.success()) {
        return Ok(());
    }
    let useradd = find_or_install("useradd", &["passwd"])?;
    run(Command::new(useradd).args(["--create-home", "--shell", shell, "--password", "*", user]))
}

fn run(command: &mut Command) -> Result<(), Failure> {
    let program = quoted(&command.get_program().to_string_lossy());
    match command.stdin(Stdio::null()).stdout(std::io::stderr()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::new(format!("{program} ended with {status}"))),
        Err(cause) => Err(Failure::new(format!("{program} could not be started")).with_source(cause)),
    }
}

fn read(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|cause| cannot("read", path).with_source(cause))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_parsed_from_the_configuration() {
        let config = server_config(Path::new("/a b"), 1234, "MaxSessions 64\n");
        assert_eq!(port_of(&config), Some(1234));
        assert!(config.contains("HostKey \"/a b/host_key\"\n"), "{config}");
        assert!(config.contains("\nMaxSessions 64\nMatch User tester-bash\n"), "{config}");
    }
}
