//! `cargo xtask services up|down [docker|postgres|restate|ssh]`: the services that tests of environments and stores need.
//!
//! They keep their files below `target/services`, or link them there, listen on a unix socket or on loopback, and are stopped by their pid
//! files. Missing programs are installed. Both commands are idempotent.
//!
//! Standard output contains only the `export` lines of the tests' variables, for use in a shell as
//! `eval "$(cargo xtask services up)"`. The same lines are in `target/services/env`.

mod daemon;
mod docker;
mod install;
mod postgres;
mod restate;
mod ssh;

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{failure::Failure, metadata::Metadata};

/// A service that tests need.
struct Service {
    name: &'static str,
    /// Starts the service with its files in the directory. Returns the variables that tests need to find it.
    up: fn(&Path) -> Result<Variables, Failure>,
    /// Stops the service. Returns whether it was running.
    down: fn(&Path) -> Result<bool, Failure>,
}

type Variables = Vec<(&'static str, String)>;

const SERVICES: &[Service] = &[
    Service { name: "docker", up: docker::up, down: docker::down },
    Service { name: "postgres", up: postgres::up, down: postgres::down },
    Service { name: "restate", up: restate::up, down: restate::down },
    Service { name: "ssh", up: ssh::up, down: ssh::down },
];

/// File with the variables, in the directory of each service and, combined, in the one above.
const ENV_FILE: &str = "env";

/// Starts or stops the named services, or all of them.
pub(crate) fn run(metadata: &Metadata, arguments: &[String]) -> Result<(), Failure> {
    let root = metadata.target_directory.join("services");
    let (verb, names) = arguments.split_first().ok_or_else(|| usage("no action was given"))?;
    let chosen = choose(names)?;
    match verb.as_str() {
        "up" => up(&root, &chosen),
        "down" => down(&root, &chosen),
        other => Err(usage(&format!("unknown action `{other}`"))),
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
        service.ok_or_else(|| usage(&format!("unknown service `{name}`")))
    };
    names.iter().map(find).collect()
}

fn up(root: &Path, chosen: &[&Service]) -> Result<(), Failure> {
    require_root()?;
    for service in chosen {
        let directory = root.join(service.name);
        create_directory(&directory)?;
        let variables = (service.up)(&directory).map_err(|cause| {
            let what = format!("{} did not start; its files are in {}", service.name, directory.display());
            Failure::new(what).with_source(cause)
        })?;
        write(&directory.join(ENV_FILE), &exports(&variables))?;
        eprintln!("{} is up", service.name);
    }
    print!("{}", collect_exports(root)?);
    Ok(())
}

/// Stops all chosen services, even if one fails. Returns the first failure.
fn down(root: &Path, chosen: &[&Service]) -> Result<(), Failure> {
    let mut outcome = Ok(());
    for service in chosen {
        match stop(service, &root.join(service.name)) {
            Ok(was_up) => eprintln!("{} {}", service.name, if was_up { "is down" } else { "was not up" }),
            Err(failure) => outcome = outcome.and(Err(failure)),
        }
    }
    if root.exists() {
        collect_exports(root)?;
    }
    outcome
}

fn stop(service: &Service, directory: &Path) -> Result<bool, Failure> {
    // Without its variables, tests do not use a service.
    let variables = directory.join(ENV_FILE);
    match fs::remove_file(&variables) {
        Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => {
            return Err(cannot("remove", &variables).with_source(cause));
        }
        _ => {}
    }
    (service.down)(directory)
}

/// Writes the variables of all running services into one file.
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

/// Quotes a text as one word of a POSIX shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Fails unless run by root, which is needed to install packages, to create users and to run the engine.
fn require_root() -> Result<(), Failure> {
    use std::os::unix::fs::MetadataExt;
    match fs::metadata("/proc/self").map(|metadata| metadata.uid()) {
        Ok(0) => Ok(()),
        Ok(user) => Err(Failure::new(format!("services must be started by root; this is user {user}"))),
        Err(cause) => Err(Failure::new("services need Linux, but there is no /proc here").with_source(cause)),
    }
}

fn create_directory(path: &Path) -> Result<(), Failure> {
    fs::create_dir_all(path).map_err(|cause| cannot("create the directory", path).with_source(cause))
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|cause| cannot("write", path).with_source(cause))
}

fn remove_directory(path: &Path) -> Result<(), Failure> {
    match fs::remove_dir_all(path) {
        Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => {
            Err(cannot("remove", path).with_source(cause))
        }
        _ => Ok(()),
    }
}

fn cannot(action: &str, path: &Path) -> Failure {
    Failure::new(format!("cannot {action} {}", path.display()))
}

/// Finds a program in the path or in the directories of system programs.
fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path)
        .chain(system)
        .map(|directory| directory.join(name))
        .find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_quoted_for_the_shell() {
        let variables = vec![("A", "it's \"$HOME\"\n".to_owned()), ("B", String::new())];
        let script = format!("{}printf '%s|%s' \"$A\" \"$B\"", exports(&variables));
        let output = std::process::Command::new("/bin/sh").arg("-c").arg(script).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "it's \"$HOME\"\n|");
    }

    #[test]
    fn all_services_are_chosen_by_default() {
        let names = |words: &[&str]| {
            let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
            choose(&words).map(|chosen| chosen.iter().map(|service| service.name).collect::<Vec<_>>())
        };
        assert_eq!(names(&[]).unwrap(), ["docker", "postgres", "restate", "ssh"]);
        assert_eq!(names(&["ssh"]).unwrap(), ["ssh"]);
        let wrong = names(&["podman"]).unwrap_err().to_string();
        assert_eq!(
            wrong,
            "unknown service `podman`; usage: cargo xtask services up|down [docker|postgres|restate|ssh].."
        );
    }
}
