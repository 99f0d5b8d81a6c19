//! Two ssh servers on loopback: one that allows many sessions on a connection, and one with its own default.
//!
//! Each sees and can end its own processes only, whoever logs in, and all of them end with it.
//!
//! `ssh_config` names the hosts `root` and `tester` on the first server, and `limits` (as `tester`) on the second. More
//! of them, `bash`, `csh` and `fish`, lead to users with those login shells, whose start-up files print.

use std::{
    fs,
    io::Read,
    net::{Ipv4Addr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use super::{
    Variables, cannot,
    daemon::{self, Daemon},
    install::need,
    make_folder, quoted, write,
};
use crate::failure::Failure;

/// The user that the tests log in as who is not root; made if missing, and left.
const USER: &str = "tester";

/// Users with other login shells: the host that leads there, the shell with its package, and its start-up file in the
/// user's home.
const SHELLS: [(&str, &str, &str, &str); 3] = [
    ("bash", "/bin/bash", "bash", ".bashrc"),
    ("csh", "/bin/csh", "csh", ".cshrc"),
    ("fish", "/usr/bin/fish", "fish", ".config/fish/config.fish"),
];

/// What the start-up files do: each shell understands it, and neither stream gets a line end.
const NOISE: &str = "sh -c 'printf noise; printf noise >&2'\n";

/// Where `sshd` wants an empty folder to lock itself into.
const PRIVILEGE_SEPARATION: &str = "/run/sshd";

const SERVERS: [(&str, &str); 2] =
    [("many", "MaxSessions 64\nMaxStartups 100\n"), ("limits", "MaxStartups 100\n")];

/// Starts both servers and writes the clients' configuration.
pub(super) fn up(folder: &Path) -> Result<Variables, Failure> {
    let sshd = need("sshd", &["openssh-server"])?;
    need("ssh", &["openssh-client"])?;
    make_user(USER, "/bin/sh")?;
    for (host, shell, package, start_up) in SHELLS {
        need(shell.rsplit('/').next().unwrap_or(shell), &[package])?;
        let user = user_of(host);
        make_user(&user, shell)?;
        let file = Path::new("/home").join(user).join(start_up);
        make_folder(file.parent().unwrap_or(&file))?;
        write(&file, NOISE)?;
    }
    make_folder(Path::new(PRIVILEGE_SEPARATION))?;
    make_key(&folder.join("host_key"))?;
    make_key(&folder.join("id"))?;
    let [many, limits] = SERVERS.map(|(name, limits)| start(folder, &sshd, name, limits));
    let (many, limits) = (many?, limits?);
    let host_key = read(&folder.join("host_key.pub"))?;
    write(&folder.join("known_hosts"), &known_hosts(&host_key, [many, limits]))?;
    let config = folder.join("ssh_config");
    write(&config, &client_config(folder, many, limits))?;
    Ok(vec![("PINTLE_TEST_SSH", config.display().to_string())])
}

/// Ends both servers; their keys and logs stay.
pub(super) fn down(folder: &Path) -> Result<bool, Failure> {
    let mut was_up = false;
    for (name, _) in SERVERS {
        was_up |= daemon(folder, name).end()?;
    }
    Ok(was_up)
}

fn daemon(folder: &Path, name: &str) -> Daemon {
    Daemon { pid_file: folder.join(format!("{name}.pid")), mark: server_config_path(folder, name) }
}

fn server_config_path(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.conf"))
}

/// Starts one server, unless it runs, and says its port.
fn start(folder: &Path, sshd: &Path, name: &str, limits: &str) -> Result<u16, Failure> {
    let config = server_config_path(folder, name);
    if daemon(folder, name).id().is_some()
        && let Some(port) = port_of(&read(&config)?)
        && greets(port)
    {
        return Ok(port);
    }
    let port = free_port()?;
    write(&config, &server_config(folder, port, limits))?;
    let mut command = Command::new(need("unshare", &["util-linux"])?);
    command.args(["--pid", "--fork", "--kill-child", "--mount-proc"]).arg(sshd);
    // In the foreground: then it is our child until it is ready, and its end is seen.
    command.arg("-D").arg("-e").arg("-f").arg(&config);
    let id = daemon::start(&mut command, &folder.join(format!("{name}.log")), || greets(port))?;
    write(&daemon(folder, name).pid_file, &id.to_string())?;
    Ok(port)
}

/// The keys are printed by a program that runs as root, since the users may not be able to enter our folder. The level
/// keeps a bash from reading what the root of this machine has in its start-up file, but for the user who is to read one.
fn server_config(folder: &Path, port: u16, limits: &str) -> String {
    let path = |file: &str| config_word(&folder.join(file));
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

fn client_config(folder: &Path, many: u16, limits: u16) -> String {
    let path = |file: &str| config_word(&folder.join(file));
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

/// A path as one word of either configuration.
fn config_word(path: &Path) -> String {
    format!("\"{}\"", path.display().to_string().replace('%', "%%"))
}

fn port_of(config: &str) -> Option<u16> {
    config.lines().find_map(|line| line.strip_prefix("ListenAddress 127.0.0.1:"))?.parse().ok()
}

/// Whether an ssh server says its name there.
fn greets(port: u16) -> bool {
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
    Ok(listener.map_err(|cause| Failure::new("there is no free port on loopback").because(cause))?.port())
}

fn make_key(path: &Path) -> Result<(), Failure> {
    if path.is_file() && path.with_extension("pub").is_file() {
        return Ok(());
    }
    // Half a pair makes the program ask whether to overwrite it.
    let _ = fs::remove_file(path);
    let mut keygen = Command::new(need("ssh-keygen", &["openssh-client"])?);
    run(keygen.args(["-q", "-t", "ed25519", "-N", "", "-C", "pintle tests", "-f"]).arg(path))
}

/// The user that a host with a login shell of its own leads to.
fn user_of(host: &str) -> String {
    format!("{USER}-{host}")
}

/// A `*` for the password: a locked account is refused even with a key.
fn make_user(user: &str, shell: &str) -> Result<(), Failure> {
    let known = Command::new("id").arg(user).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if known.is_ok_and(|status| status.success()) {
        return Ok(());
    }
    let useradd = need("useradd", &["passwd"])?;
    run(Command::new(useradd).args(["--create-home", "--shell", shell, "--password", "*", user]))
}

fn run(command: &mut Command) -> Result<(), Failure> {
    let program = quoted(&command.get_program().to_string_lossy());
    match command.stdin(Stdio::null()).stdout(std::io::stderr()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::new(format!("{program} ended with {status}"))),
        Err(cause) => Err(Failure::new(format!("{program} could not be started")).because(cause)),
    }
}

fn read(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|cause| cannot("read", path).because(cause))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_read_back_from_the_configuration() {
        let config = server_config(Path::new("/a b"), 1234, "MaxSessions 64\n");
        assert_eq!(port_of(&config), Some(1234));
        assert!(config.contains("HostKey \"/a b/host_key\"\n"), "{config}");
        assert!(config.contains("\nMaxSessions 64\nMatch User tester-bash\n"), "{config}");
    }
}
