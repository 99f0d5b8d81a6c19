//! A PostgreSQL server on a unix socket, with a password.
//!
//! The server refuses to run as root, so that it runs as the user of its package. That user may not be able to enter our
//! directory: its files are in a temporary directory of its own.

use std::{
    fs,
    io::Read,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::{
    Variables, cannot,
    daemon::{self, Daemon},
    install::{find_or_install, install},
    remove_directory, write,
};
use crate::failure::{Context as _, Failure};

/// User of the Debian package.
const USER: &str = "postgres";

/// Directory of the package that has one directory per version.
const VERSIONS: &str = "/usr/lib/postgresql";

/// User of the database that tests are.
const DATABASE_USER: &str = "pintle";

/// Program that changes the user and becomes the server, so that the server is our child.
const SETPRIV: &str = "setpriv";

/// Link in our directory to the temporary one.
const LINK: &str = "server";

/// Starts the server unless it is running.
pub(super) fn up(directory: &Path) -> Result<Variables, Failure> {
    let server = Server { directory: directory.to_path_buf() };
    if server.daemon().id().is_none() {
        server.start()?;
    }
    Ok(vec![("PINTLE_TEST_POSTGRES", server.connection()?)])
}

/// Stops the server and deletes its data.
pub(super) fn down(directory: &Path) -> Result<bool, Failure> {
    let server = Server { directory: directory.to_path_buf() };
    let was_up = server.daemon().terminate()?;
    server.remove()?;
    Ok(was_up)
}

struct Server {
    directory: PathBuf,
}

impl Server {
    fn link(&self) -> PathBuf {
        self.directory.join(LINK)
    }

    /// Returns the temporary directory, which also has the socket.
    fn files(&self) -> Result<PathBuf, Failure> {
        let link = self.link();
        fs::read_link(&link).map_err(|cause| cannot("read the link", &link).with_source(cause))
    }

    fn daemon(&self) -> Daemon {
        // Without a temporary directory there is no pid file either.
        let marker = self.files().unwrap_or_else(|_| self.link()).join("data");
        Daemon { pid_file: self.directory.join("postgres.pid"), marker }
    }

    fn connection(&self) -> Result<String, Failure> {
        let password = self.directory.join("password");
        let password =
            fs::read_to_string(&password).map_err(|cause| cannot("read", &password).with_source(cause))?;
        Ok(format!(
            "host={} user={DATABASE_USER} password={password} dbname=postgres",
            self.files()?.display()
        ))
    }

    fn start(&self) -> Result<(), Failure> {
        let programs = programs()?;
        find_or_install(SETPRIV, &["util-linux"])?;
        self.remove()?;
        let files = std::env::temp_dir().join(format!("pintle-postgres-{}", random(8)?));
        let parent = files.parent().unwrap_or(Path::new("/"));
        run(as_user(Path::new("mkdir"), parent).args(["-m", "711"]).arg(&files))?;
        let link = self.link();
        symlink(&files, &link).map_err(|cause| cannot("create the link", &link).with_source(cause))?;
        let password = self.directory.join("password");
        write(&password, &random(16)?)?;
        fs::set_permissions(&password, fs::Permissions::from_mode(0o600))
            .map_err(|cause| cannot("set the mode of", &password).with_source(cause))?;
        let input =
            fs::File::open(&password).map_err(|cause| cannot("read", &password).with_source(cause))?;
        // A copy that only the user of the server can read.
        let copy = files.join("password");
        let mut cat = as_user(Path::new("sh"), &files);
        run(cat.args(["-c", "umask 077; cat >\"$1\"", "sh"]).arg(&copy).stdin(input))?;
        let data = files.join("data");
        let mut initdb = as_user(&programs.join("initdb"), &files);
        initdb.args(["--username", DATABASE_USER, "--auth", "scram-sha-256", "--pwfile"]).arg(copy);
        run(initdb.args(["--encoding", "UTF8", "--locale", "C", "--no-sync", "--pgdata"]).arg(&data))?;
        let mut postgres = as_user(&programs.join("postgres"), &files);
        postgres.arg("-D").arg(&data).arg("-k").arg(&files).args(["-c", "listen_addresses="]);
        // All sessions of a test run at once.
        postgres.args(["-c", "max_connections=300"]);
        let id = daemon::start(&mut postgres, &self.directory.join("log"), || is_ready(&programs, &files))?;
        write(&self.daemon().pid_file, &id.to_string())
    }

    /// Deletes the files of a server that is not running.
    fn remove(&self) -> Result<(), Failure> {
        let Ok(files) = self.files() else { return Ok(()) };
        remove_directory(&files)?;
        let link = self.link();
        fs::remove_file(&link).map_err(|cause| cannot("remove", &link).with_source(cause))
    }
}

/// Returns the directory with the programs of the newest version, which is installed if there is none.
fn programs() -> Result<PathBuf, Failure> {
    if let Some(found) = newest_version(Path::new(VERSIONS)) {
        return Ok(found);
    }
    install("postgres", &["postgresql"])?;
    newest_version(Path::new(VERSIONS))
        .ok_or_else(|| Failure::new(format!("{VERSIONS} has no version with a server")))
}

fn newest_version(versions: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(versions).ok()?;
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let programs = numbers.map(|number| (number, versions.join(number.to_string()).join("bin")));
    programs.filter(|(_, programs)| programs.join("postgres").is_file()).max().map(|(_, programs)| programs)
}

/// Returns a command that runs a program as the user of the server, instead of itself.
fn as_user(program: &Path, directory: &Path) -> Command {
    let mut command = Command::new(SETPRIV);
    command.args(["--reuid", USER, "--regid", USER, "--init-groups", "--"]).arg(program);
    // It may not be able to enter the present one.
    command.current_dir(directory).stdin(Stdio::null());
    command
}

/// Runs a command and reports its standard error if it fails.
fn run(command: &mut Command) -> Result<(), Failure> {
    let program = command.get_args().nth(6).unwrap_or_default().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("{program} could not be started"))?;
    if output.status.success() {
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(Failure::new(format!("{program} ended with {}: {}", output.status, errors.trim())))
}

fn is_ready(programs: &Path, files: &Path) -> bool {
    let mut ready = Command::new(programs.join("pg_isready"));
    ready.args(["--quiet", "--dbname", "postgres", "--host"]).arg(files);
    ready.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// Returns this many random bytes as hexadecimal digits.
fn random(bytes: usize) -> Result<String, Failure> {
    let source = Path::new("/dev/urandom");
    let mut read = vec![0; bytes];
    fs::File::open(source)
        .and_then(|mut file| file.read_exact(&mut read))
        .map_err(|cause| cannot("read", source).with_source(cause))?;
    Ok(read.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_with_a_server_is_used() {
        let versions = std::env::temp_dir().join(format!("pintle-versions-{}", std::process::id()));
        for (version, has_server) in [("9", true), ("15", true), ("17", false), ("common", true)] {
            let programs = versions.join(version).join("bin");
            fs::create_dir_all(&programs).unwrap();
            if has_server {
                fs::write(programs.join("postgres"), "").unwrap();
            }
        }
        assert_eq!(newest_version(&versions), Some(versions.join("15/bin")));
        assert_eq!(newest_version(&versions.join("none")), None);
        fs::remove_dir_all(versions).unwrap();
    }
}
