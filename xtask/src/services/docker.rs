//! An engine of its own on a unix socket, with an image that holds busybox and nothing else.

use std::{
    fs::{self, Permissions},
    io::{Read, Write},
    os::unix::{
        fs::{PermissionsExt, chown, symlink},
        net::UnixStream,
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::{
    Variables, cannot,
    daemon::{self, Daemon},
    install::need,
    make_folder, remove_folder, write,
};
use crate::failure::Failure;

const IMAGE: &str = "pintle-test/busybox:1";

/// Somebody who is not root; the home is `/tester`.
const USER: &str = "tester";
const USER_ID: u32 = 1000;

/// The longest path of a unix socket; the engine's own is some bytes longer than ours.
const SOCKET_LIMIT: usize = 80;

/// Starts the engine and imports the image.
pub(super) fn up(folder: &Path) -> Result<Variables, Failure> {
    let engine = Engine::new(folder);
    if !engine.answers() {
        engine.start()?;
    }
    engine.import(folder)?;
    Ok(vec![("DOCKER_HOST", engine.host()), ("PINTLE_TEST_IMAGE", IMAGE.to_owned())])
}

/// Ends the engine with all its containers and forgets its data.
pub(super) fn down(folder: &Path) -> Result<bool, Failure> {
    let engine = Engine::new(folder);
    if engine.answers() {
        engine.remove_containers()?;
    }
    let was_up = engine.daemon().end()?;
    for state in ["data", "exec", "image"] {
        let state = folder.join(state);
        unmount_below(&state);
        remove_folder(&state)?;
    }
    Ok(was_up)
}

/// An engine that was killed leaves its mounts; one that was not has left none.
fn unmount_below(folder: &Path) {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let places: Vec<_> = mounts.lines().filter_map(|line| line.split(' ').nth(1)).collect();
    // The later ones may stand on the earlier ones.
    for place in places.iter().rev().filter(|place| Path::new(place).starts_with(folder)) {
        let _ = Command::new("umount").arg(place).stdin(Stdio::null()).status();
    }
}

struct Engine {
    folder: PathBuf,
    socket: PathBuf,
}

impl Engine {
    fn new(folder: &Path) -> Self {
        Self { folder: folder.to_path_buf(), socket: folder.join("docker.sock") }
    }

    fn host(&self) -> String {
        format!("unix://{}", self.socket.display())
    }

    fn daemon(&self) -> Daemon {
        Daemon { pid_file: self.folder.join("docker.pid"), mark: self.socket.clone() }
    }

    fn answers(&self) -> bool {
        let ping = || -> std::io::Result<String> {
            let mut stream = UnixStream::connect(&self.socket)?;
            stream.write_all(b"GET /_ping HTTP/1.0\r\n\r\n")?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        };
        ping().is_ok_and(|answer| answer.lines().next().is_some_and(|line| line.contains(" 200 ")))
    }

    /// No bridge, no rules, no forwarding: containers have no network or the host's.
    fn start(&self) -> Result<(), Failure> {
        if self.socket.as_os_str().len() > SOCKET_LIMIT {
            let found = self.socket.display();
            return Err(Failure::new(format!(
                "the socket {found} has a path of more than {SOCKET_LIMIT} bytes; build in a shorter place, with \
                 CARGO_TARGET_DIR"
            )));
        }
        let dockerd = need("dockerd", &["docker.io", "iptables"])?;
        // It has ended, or it would answer; what is in the file may be the number of somebody else.
        let _ = fs::remove_file(self.folder.join("docker.pid"));
        let option = |name: &str, place: &str| format!("--{name}={}", self.folder.join(place).display());
        let mut command = Command::new(dockerd);
        command.arg(format!("--host={}", self.host())).args([
            option("data-root", "data"),
            option("exec-root", "exec"),
            option("pidfile", "docker.pid"),
        ]);
        command.args(["--iptables=false", "--bridge=none", "--ip-forward=false", "--ip-masq=false"]);
        daemon::start(&mut command, &self.folder.join("dockerd.log"), || self.answers()).map(drop)
    }

    fn docker(&self, arguments: &[&str]) -> Result<Command, Failure> {
        let mut command = Command::new(need("docker", &["docker.io"])?);
        command.args(arguments).env("DOCKER_HOST", self.host());
        Ok(command)
    }

    /// Makes the image from a folder, and runs it: a busybox that is linked dynamically has no libraries there.
    fn import(&self, folder: &Path) -> Result<(), Failure> {
        let known =
            self.docker(&["image", "inspect", IMAGE])?.stdout(Stdio::null()).stderr(Stdio::null()).status();
        if known.is_ok_and(|status| status.success()) {
            return Ok(());
        }
        let root = folder.join("image");
        lay_out(&root)?;
        let mut tar = Command::new("tar")
            .arg("-C")
            .arg(&root)
            .args(["-c", "."])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|cause| Failure::new("tar could not be started").because(cause))?;
        let mut import = self.docker(&["import", "--change", "CMD [\"/bin/sh\"]", "-", IMAGE])?;
        let content = tar.stdout.take().map_or_else(Stdio::null, Stdio::from);
        require(import.stdin(content), "the image could not be imported")?;
        let packed = tar.wait().map_err(|cause| Failure::new("tar could not be awaited").because(cause))?;
        if !packed.success() {
            return Err(Failure::new(format!("tar of {} ended with {packed}", root.display())));
        }
        let mut first = self.docker(&["run", "--rm", "--network=none", IMAGE, "/bin/sh", "-c", "true"])?;
        require(first.stdin(Stdio::null()), "a container of the image did not run")
    }

    /// The engine is ours alone, and so are its containers.
    fn remove_containers(&self) -> Result<(), Failure> {
        let listed = self.docker(&["ps", "--all", "--quiet"])?.output();
        let listed = listed.map_err(|cause| Failure::new("docker could not be started").because(cause))?;
        let ids = String::from_utf8_lossy(&listed.stdout).into_owned();
        let ids: Vec<_> = ids.split_whitespace().collect();
        if ids.is_empty() {
            return Ok(());
        }
        let mut remove = self.docker(&[&["rm", "--force"], ids.as_slice()].concat())?;
        require(remove.stdin(Stdio::null()), "the containers could not be removed")
    }
}

/// Writes the root of a file system: busybox under all its names, two users, and the folders that the engine mounts.
fn lay_out(root: &Path) -> Result<(), Failure> {
    remove_folder(root)?;
    let busybox = need("busybox", &["busybox-static"])?;
    for name in ["bin", "dev", "etc", "proc", "sys", "tmp", USER] {
        make_folder(&root.join(name))?;
    }
    let inside = root.join("bin/busybox");
    fs::copy(&busybox, &inside).map_err(|cause| cannot("copy busybox to", &inside).because(cause))?;
    let listed = Command::new(&busybox).arg("--list").output();
    let listed = listed.map_err(|cause| Failure::new("busybox could not be started").because(cause))?;
    for name in String::from_utf8_lossy(&listed.stdout).lines().filter(|name| *name != "busybox") {
        let link = root.join("bin").join(name);
        symlink("busybox", &link).map_err(|cause| cannot("make the link", &link).because(cause))?;
    }
    let user = format!("{USER}:x:{USER_ID}:{USER_ID}::/{USER}:/bin/sh");
    write(&root.join("etc/passwd"), &format!("root:x:0:0:root:/:/bin/sh\n{user}\n"))?;
    write(&root.join("etc/group"), &format!("root:x:0:\n{USER}:x:{USER_ID}:\n"))?;
    let (tmp, home) = (root.join("tmp"), root.join(USER));
    fs::set_permissions(&tmp, Permissions::from_mode(0o1777))
        .map_err(|cause| cannot("set the mode of", &tmp).because(cause))?;
    chown(&home, Some(USER_ID), Some(USER_ID)).map_err(|cause| cannot("give away", &home).because(cause))
}

/// Runs a command whose own words say what is wrong.
fn require(command: &mut Command, what: &str) -> Result<(), Failure> {
    let output = command
        .stderr(Stdio::piped())
        .stdout(Stdio::piped())
        .output()
        .map_err(|cause| Failure::new(what).because(cause))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Failure::new(format!("{what} ({}): {}", output.status, said.trim())))
}
