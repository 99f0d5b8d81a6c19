//! A separate container engine on a unix socket, with an image that contains only busybox.

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
    Variables, cannot, create_directory,
    daemon::{self, Daemon},
    install::find_or_install,
    remove_directory, write,
};
use crate::failure::{Context as _, Failure};

const IMAGE: &str = "pintle-test/busybox:1";

/// A user who is not root, with the home directory `/tester`.
const USER: &str = "tester";
const USER_ID: u32 = 1000;

/// Maximum length of the path of our unix socket; the engine appends some bytes for its own.
const SOCKET_LIMIT: usize = 80;

/// Starts the engine and imports the image.
pub(super) fn up(directory: &Path) -> Result<Variables, Failure> {
    let engine = Engine::new(directory);
    if !engine.answers() {
        engine.start()?;
    }
    engine.import(directory)?;
    Ok(vec![("DOCKER_HOST", engine.host()), ("PINTLE_TEST_IMAGE", IMAGE.to_owned())])
}

/// Stops the engine with all its containers and deletes its data.
pub(super) fn down(directory: &Path) -> Result<bool, Failure> {
    let engine = Engine::new(directory);
    if engine.answers() {
        engine.remove_containers()?;
    }
    let was_up = engine.daemon().terminate()?;
    for state in ["data", "exec", "image"] {
        let state = directory.join(state);
        unmount_below(&state);
        remove_directory(&state)?;
    }
    Ok(was_up)
}

/// Unmounts what an engine that was killed left behind.
fn unmount_below(directory: &Path) {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mount_points: Vec<_> = mounts.lines().filter_map(|line| line.split(' ').nth(1)).collect();
    // Later mounts may be inside earlier ones.
    for mount_point in mount_points.iter().rev().filter(|path| Path::new(path).starts_with(directory)) {
        // Processes of the engine may still be ending.
        let _ = Command::new("umount").arg("--lazy").arg(mount_point).stdin(Stdio::null()).status();
    }
}

struct Engine {
    directory: PathBuf,
    socket: PathBuf,
}

impl Engine {
    fn new(directory: &Path) -> Self {
        Self { directory: directory.to_path_buf(), socket: directory.join("docker.sock") }
    }

    fn host(&self) -> String {
        format!("unix://{}", self.socket.display())
    }

    fn daemon(&self) -> Daemon {
        Daemon { pid_file: self.directory.join("docker.pid"), marker: self.socket.clone() }
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

    /// Starts the engine without bridge, firewall rules and forwarding: containers have no network or that of the host.
    fn start(&self) -> Result<(), Failure> {
        if self.socket.as_os_str().len() > SOCKET_LIMIT {
            let found = self.socket.display();
            return Err(Failure::new(format!(
                "the socket {found} has a path of more than {SOCKET_LIMIT} bytes; build below a shorter path, with \
                 CARGO_TARGET_DIR"
            )));
        }
        let dockerd = find_or_install("dockerd", &["docker.io", "iptables"])?;
        self.mount_data()?;
        // It is not running, or it would answer. The id in the file may have been reused.
        let _ = fs::remove_file(self.directory.join("docker.pid"));
        let option = |name: &str, file: &str| format!("--{name}={}", self.directory.join(file).display());
        let mut command = Command::new(dockerd);
        command.arg(format!("--host={}", self.host())).args([
            option("data-root", "data"),
            option("exec-root", "exec"),
            option("pidfile", "docker.pid"),
        ]);
        command.args(["--iptables=false", "--bridge=none", "--ip-forward=false", "--ip-masq=false"]);
        daemon::start(&mut command, &self.directory.join("dockerd.log"), || self.answers()).map(drop)
    }

    /// Keeps containers in memory. The engine synchronizes each change of one with the disk, which took 50 seconds for a start
    /// beside a build that writes. Where nothing may be mounted, they are on the disk.
    fn mount_data(&self) -> Result<(), Failure> {
        let data = self.directory.join("data");
        create_directory(&data)?;
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "mode=0711", "pintle-test-containers"]).arg(&data);
        let mounted = mount.stdin(Stdio::null()).stderr(Stdio::null()).status();
        if !mounted.is_ok_and(|status| status.success()) {
            eprintln!("containers are on the disk: {} cannot be mounted", data.display());
        }
        Ok(())
    }

    fn docker(&self, arguments: &[&str]) -> Result<Command, Failure> {
        let mut command = Command::new(find_or_install("docker", &["docker.io"])?);
        command.args(arguments).env("DOCKER_HOST", self.host());
        Ok(command)
    }

    /// Imports the image from a directory and tests it: a dynamically linked busybox would lack its libraries.
    fn import(&self, directory: &Path) -> Result<(), Failure> {
        let known =
            self.docker(&["image", "inspect", IMAGE])?.stdout(Stdio::null()).stderr(Stdio::null()).status();
        if known.is_ok_and(|status| status.success()) {
            return Ok(());
        }
        let root = directory.join("image");
        write_root_file_system(&root)?;
        let mut tar = Command::new("tar")
            .arg("-C")
            .arg(&root)
            .args(["-c", "."])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("tar could not be started")?;
        let mut import = self.docker(&["import", "--change", "CMD [\"/bin/sh\"]", "-", IMAGE])?;
        let content = tar.stdout.take().map_or_else(Stdio::null, Stdio::from);
        require(import.stdin(content), "the image could not be imported")?;
        let packed = tar.wait().context("could not wait for tar")?;
        if !packed.success() {
            return Err(Failure::new(format!("tar of {} ended with {packed}", root.display())));
        }
        let mut first = self.docker(&["run", "--rm", "--network=none", IMAGE, "/bin/sh", "-c", "true"])?;
        require(first.stdin(Stdio::null()), "a container of the image did not run")
    }

    /// Removes all containers. The engine has no other users.
    fn remove_containers(&self) -> Result<(), Failure> {
        let listed = self.docker(&["ps", "--all", "--quiet"])?.output();
        let listed = listed.context("docker could not be started")?;
        let ids = String::from_utf8_lossy(&listed.stdout).into_owned();
        let ids: Vec<_> = ids.split_whitespace().collect();
        if ids.is_empty() {
            return Ok(());
        }
        let mut remove = self.docker(&[&["rm", "--force"], ids.as_slice()].concat())?;
        require(remove.stdin(Stdio::null()), "the containers could not be removed")
    }
}

/// Writes a root file system: busybox under all its names, two users, and the directories that the engine mounts.
fn write_root_file_system(root: &Path) -> Result<(), Failure> {
    remove_directory(root)?;
    let busybox = find_or_install("busybox", &["busybox-static"])?;
    for name in ["bin", "dev", "etc", "proc", "sys", "tmp", USER] {
        create_directory(&root.join(name))?;
    }
    let inside = root.join("bin/busybox");
    fs::copy(&busybox, &inside).map_err(|cause| cannot("copy busybox to", &inside).with_source(cause))?;
    let listed = Command::new(&busybox).arg("--list").output();
    let listed = listed.context("busybox could not be started")?;
    for name in String::from_utf8_lossy(&listed.stdout).lines().filter(|name| *name != "busybox") {
        let link = root.join("bin").join(name);
        symlink("busybox", &link).map_err(|cause| cannot("create the link", &link).with_source(cause))?;
    }
    let user = format!("{USER}:x:{USER_ID}:{USER_ID}::/{USER}:/bin/sh");
    write(&root.join("etc/passwd"), &format!("root:x:0:0:root:/:/bin/sh\n{user}\n"))?;
    write(&root.join("etc/group"), &format!("root:x:0:\n{USER}:x:{USER_ID}:\n"))?;
    let (tmp, home) = (root.join("tmp"), root.join(USER));
    fs::set_permissions(&tmp, Permissions::from_mode(0o1777))
        .map_err(|cause| cannot("set the mode of", &tmp).with_source(cause))?;
    chown(&home, Some(USER_ID), Some(USER_ID))
        .map_err(|cause| cannot("change the owner of", &home).with_source(cause))
}

/// Runs a command and reports its standard error if it fails.
fn require(command: &mut Command, what: &str) -> Result<(), Failure> {
    let output = command.stderr(Stdio::piped()).stdout(Stdio::piped()).output().context(what)?;
    if output.status.success() {
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(Failure::new(format!("{what} ({}): {}", output.status, errors.trim())))
}
