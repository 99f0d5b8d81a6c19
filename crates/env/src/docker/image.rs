//! Options for starting a container.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::PathBuf,
};

use crate::setters::setters;

/// An image and the options of the container to start from it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ContainerImage {
    /// The name or id of the image, optionally with a tag or digest. The engine may fetch it.
    pub name: String,
    /// Local directories and files visible in the container; default none.
    pub mounts: Vec<Mount>,
    /// The user the container runs as, in the engine's syntax; default the image's user.
    pub user: Option<String>,
    /// The network, in the engine's syntax, for instance `none`; default the engine's default.
    pub network: Option<String>,
    /// Memory limit in bytes; default none.
    pub memory: Option<u64>,
    /// Limit on processors, possibly fractional; default none.
    pub cpus: Option<f64>,
    /// Limit on processes; default none. Each command needs up to four helper processes beside its
    /// own.
    pub pids: Option<u32>,
    /// The name of the container; default a new one. A container that has the name is removed before the start, since the
    /// application that started it may have been killed.
    pub container: Option<String>,
    /// Variables of all processes in the container; default none.
    pub variables: BTreeMap<String, String>,
}

/// A local directory or file that is visible in a container.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mount {
    /// The local path; absolute.
    pub source: PathBuf,
    /// The path in the container; absolute.
    pub target: PathBuf,
    /// Makes the mount read-only; default false.
    pub read_only: bool,
}

impl ContainerImage {
    /// Creates an image without options.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            mounts: Vec::new(),
            user: None,
            network: None,
            memory: None,
            cpus: None,
            pids: None,
            container: None,
            variables: BTreeMap::new(),
        }
    }

    /// Adds a mount.
    #[must_use]
    pub fn with_mount(mut self, mount: Mount) -> Self {
        self.mounts.push(mount);
        self
    }

    setters! {
        /// Sets the user the container runs as.
        pub fn with_user(user: impl Into<String>) => user = Some(user.into());
        /// Sets the network.
        pub fn with_network(network: impl Into<String>) => network = Some(network.into());
        /// Limits the memory, in bytes.
        pub fn with_memory(bytes: u64) => memory = Some(bytes);
        /// Limits the number of processors.
        pub fn with_cpus(cpus: f64) => cpus = Some(cpus);
        /// Limits the number of processes.
        pub fn with_pids(pids: u32) => pids = Some(pids);
        /// Sets the name of the container, which no other application may use.
        pub fn with_container(name: impl Into<String>) => container = Some(name.into());
    }

    /// Adds a variable of all processes in the container.
    #[must_use]
    pub fn with_variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.variables.insert(name.into(), value.into());
        self
    }

    /// Returns the options in the engine's syntax, without the image.
    pub(super) fn options(&self) -> Vec<OsString> {
        let mut options: Vec<OsString> = Vec::new();
        for mount in &self.mounts {
            options.extend(["--mount".into(), mount.word()]);
        }
        for (option, value) in [
            ("--user", self.user.clone()),
            ("--network", self.network.clone()),
            ("--memory", self.memory.map(|bytes| format!("{bytes}b"))),
            ("--cpus", self.cpus.map(|cpus| cpus.to_string())),
            ("--pids-limit", self.pids.map(|pids| pids.to_string())),
        ] {
            if let Some(value) = value {
                options.extend([option.into(), value.into()]);
            }
        }
        for (name, value) in &self.variables {
            options.extend(["--env".into(), format!("{name}={value}").into()]);
        }
        options
    }
}

impl Mount {
    /// Mounts the local `source` as `target` in the container.
    #[must_use]
    pub fn new(source: impl Into<PathBuf>, target: impl Into<PathBuf>) -> Self {
        Self { source: source.into(), target: target.into(), read_only: false }
    }

    /// Sets whether the mount is read-only.
    #[must_use]
    pub fn with_read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }

    /// Formats the mount as comma-separated values, as the engine parses it.
    fn word(&self) -> OsString {
        let mut word = b"type=bind,".to_vec();
        field(&mut word, "source=", self.source.as_os_str());
        word.push(b',');
        field(&mut word, "target=", self.target.as_os_str());
        if self.read_only {
            word.extend_from_slice(b",readonly");
        }
        OsString::from_vec(word)
    }
}

/// Appends one quoted value; quotes inside are doubled.
fn field(word: &mut Vec<u8>, name: &str, value: &OsStr) {
    word.push(b'"');
    word.extend_from_slice(name.as_bytes());
    for byte in value.as_bytes() {
        if *byte == b'"' {
            word.push(b'"');
        }
        word.push(*byte);
    }
    word.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_use_the_engines_syntax() {
        let image = ContainerImage::new("image:1")
            .with_mount(Mount::new("/a, b", "/c\"d").with_read_only(true))
            .with_user("1000:1000")
            .with_network("none")
            .with_memory(1 << 20)
            .with_cpus(0.5)
            .with_pids(64)
            .with_variable("A", "b c");
        let options: Vec<_> = image.options().into_iter().map(|word| word.into_string().unwrap()).collect();
        assert_eq!(
            options.join(" "),
            "--mount type=bind,\"source=/a, b\",\"target=/c\"\"d\",readonly --user 1000:1000 --network none \
             --memory 1048576b --cpus 0.5 --pids-limit 64 --env A=b c"
        );
        assert!(ContainerImage::new("image").options().is_empty());
    }
}
