//! `cargo xtask services up|down [docker|ssh]`: the real services that tests of environments need.
//!
//! They live below `target/services`, listen on a unix socket or on loopback, and are ended by their pid files.
//! What is missing is installed. Everything can be done twice: what is up stays up.
//!
//! Standard output carries the `export` lines of the tests' variables and nothing else, so that a shell may say
//! `eval "$(cargo xtask services up)"`. The same lines are in `target/services/env`.

mod daemon;
mod docker;
mod install;
mod ssh;

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{failure::Failure, metadata::Metadata};

/// A service that tests need.
struct Service {
    name: &'static str,
    /// Starts it in the folder and says where it is, as variables.
    up: fn(&Path) -> Result<Variables, Failure>,
    /// Ends it; says whether it was there.
    down: fn(&Path) -> Result<bool, Failure>,
}

type Variables = Vec<(&'static str, String)>;

const SERVICES: &[Service] = &[
    Service { name: "docker", up: docker::up, down: docker::down },
    Service { name: "ssh", up: ssh::up, down: ssh::down },
];

/// The file with the variables, in each service's folder and, put together, in the one above.
const ENV_FILE: &str = "env";

/// Starts or ends the services that are named, or all.
pub(crate) fn run(metadata: &Metadata, arguments: &[String]) -> Result<(), Failure> {
    let root = metadata.target_directory.join("services");
    let (verb, names) = arguments.split_first().ok_or_else(|| usage("no verb was given"))?;
    let chosen = choose(names)?;
    match verb.as_str() {
        "up" => up(&root, &chosen),
        "down" => down(&root, &chosen),
        other => Err(usage(&format!("`{other}` is no verb"))),
    }
}

fn usage(found: &str) -> Failure {
    let names: Vec<_> = SERVICES.iter().map(|service| service.name).collect();
    Failure::new(format!("{found}; usage: cargo xtask services up|down [{}]..", names.join("|")))
}

fn choose(names: &[String]) -> Result<Vec<&'static Service>, Failure> {
    if names.is_empty() {
        return Ok(SERVICES.iter().collect());
    }
    let find = |name: &String| {
        let service = SERVICES.iter().find(|service| service.name == name);
        service.ok_or_else(|| usage(&format!("`{name}` is no service")))
    };
    names.iter().map(find).collect()
}

fn up(root: &Path, chosen: &[&Service]) -> Result<(), Failure> {
    require_root()?;
    for service in chosen {
        let folder = root.join(service.name);
        make_folder(&folder)?;
        let variables = (service.up)(&folder).map_err(|cause| {
            let what = format!("{} did not come up; its files are in {}", service.name, folder.display());
            Failure::new(what).because(cause)
        })?;
        write(&folder.join(ENV_FILE), &exports(&variables))?;
        eprintln!("{} is up", service.name);
    }
    print!("{}", collect_exports(root)?);
    Ok(())
}

/// Goes through all of them whatever happens, and fails as the first that has failed.
fn down(root: &Path, chosen: &[&Service]) -> Result<(), Failure> {
    let mut outcome = Ok(());
    for service in chosen {
        match take_down(service, &root.join(service.name)) {
            Ok(was_up) => eprintln!("{} {}", service.name, if was_up { "is down" } else { "was not up" }),
            Err(failure) => outcome = outcome.and(Err(failure)),
        }
    }
    if root.exists() {
        collect_exports(root)?;
    }
    outcome
}

fn take_down(service: &Service, folder: &Path) -> Result<bool, Failure> {
    // Tests do not look for a service that has no variables.
    let variables = folder.join(ENV_FILE);
    match fs::remove_file(&variables) {
        Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => {
            return Err(cannot("remove", &variables).because(cause));
        }
        _ => {}
    }
    (service.down)(folder)
}

/// Puts the variables of all services that are up into one file.
fn collect_exports(root: &Path) -> Result<String, Failure> {
    let mut all = String::new();
    for service in SERVICES {
        all.push_str(&fs::read_to_string(root.join(service.name).join(ENV_FILE)).unwrap_or_default());
    }
    write(&root.join(ENV_FILE), &all)?;
    Ok(all)
}

fn exports(variables: &Variables) -> String {
    variables.iter().map(|(name, value)| format!("export {name}={}\n", quoted(value))).collect()
}

/// One word for a POSIX shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Packages, a user of its own for the tests and the engine all need it.
fn require_root() -> Result<(), Failure> {
    use std::os::unix::fs::MetadataExt;
    match fs::metadata("/proc/self").map(|metadata| metadata.uid()) {
        Ok(0) => Ok(()),
        Ok(user) => Err(Failure::new(format!("services are started by root, on Linux; this is user {user}"))),
        Err(cause) => {
            Err(Failure::new("services are started on Linux; there is no /proc here").because(cause))
        }
    }
}

fn make_folder(path: &Path) -> Result<(), Failure> {
    fs::create_dir_all(path).map_err(|cause| cannot("make the folder", path).because(cause))
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|cause| cannot("write", path).because(cause))
}

fn remove_folder(path: &Path) -> Result<(), Failure> {
    match fs::remove_dir_all(path) {
        Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => {
            Err(cannot("remove", path).because(cause))
        }
        _ => Ok(()),
    }
}

fn cannot(action: &str, path: &Path) -> Failure {
    Failure::new(format!("cannot {action} {}", path.display()))
}

/// Where a program is: in the path, or where system programs are that are in no user's path.
fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(system).map(|folder| folder.join(name)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_survive_the_shell() {
        let variables = vec![("A", "it's \"$HOME\"\n".to_owned()), ("B", String::new())];
        let script = format!("{}printf '%s|%s' \"$A\" \"$B\"", exports(&variables));
        let output = std::process::Command::new("/bin/sh").arg("-c").arg(script).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "it's \"$HOME\"\n|");
    }

    #[test]
    fn all_services_are_meant_unless_some_are_named() {
        let names = |words: &[&str]| {
            let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
            choose(&words).map(|chosen| chosen.iter().map(|service| service.name).collect::<Vec<_>>())
        };
        assert_eq!(names(&[]).unwrap(), ["docker", "ssh"]);
        assert_eq!(names(&["ssh"]).unwrap(), ["ssh"]);
        let wrong = names(&["podman"]).unwrap_err().to_string();
        assert_eq!(wrong, "`podman` is no service; usage: cargo xtask services up|down [docker|ssh]..");
    }
}
