//! What a container is started from.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::PathBuf,
};

/// An image with the options of the container that is to be started from it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ContainerImage {
    /// The name or id of the image, with a tag or digest if need be. The engine may fetch it.
    pub name: String,
    /// What of the host the container sees; default nothing.
    pub mounts: Vec<Mount>,
    /// Who the container runs as, in the engine's words; default the image's own user.
    pub user: Option<String>,
    /// The network, in the engine's words, for instance `none`; default the engine's.
    pub network: Option<String>,
    /// The most memory in bytes; default no limit.
    pub memory: Option<u64>,
    /// The most processors, of which fractions are possible; default no limit.
    pub cpus: Option<f64>,
    /// The most processes; default no limit. Each command takes up to four of our own beside its own.
    pub pids: Option<u32>,
}

/// A directory or file of the host that a container sees.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mount {
    /// Where it is on the host; absolute.
    pub source: PathBuf,
    /// Where it is in the container; absolute.
    pub target: PathBuf,
    /// Whether the container can only read it; default no.
    pub read_only: bool,
}

impl ContainerImage {
    /// An image without options.
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
        }
    }

    /// Adds a mount.
    #[must_use]
    pub fn with_mount(mut self, mount: Mount) -> Self {
        self.mounts.push(mount);
        self
    }

    /// Sets who the container runs as.
    #[must_use]
    pub fn with_user(mut self, user: impl Into<String>) -> Self {
        self.user = Some(user.into());
        self
    }

    /// Sets the network.
    #[must_use]
    pub fn with_network(mut self, network: impl Into<String>) -> Self {
        self.network = Some(network.into());
        self
    }

    /// Limits the memory, in bytes.
    #[must_use]
    pub fn with_memory(mut self, bytes: u64) -> Self {
        self.memory = Some(bytes);
        self
    }

    /// Limits the processors.
    #[must_use]
    pub fn with_cpus(mut self, cpus: f64) -> Self {
        self.cpus = Some(cpus);
        self
    }

    /// Limits the number of processes.
    #[must_use]
    pub fn with_pids(mut self, pids: u32) -> Self {
        self.pids = Some(pids);
        self
    }

    /// The options in the engine's words, without the image itself.
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
        options
    }
}

impl Mount {
    /// Shows `source` of the host as `target` in the container.
    #[must_use]
    pub fn new(source: impl Into<PathBuf>, target: impl Into<PathBuf>) -> Self {
        Self { source: source.into(), target: target.into(), read_only: false }
    }

    /// Says whether the container can only read it.
    #[must_use]
    pub fn with_read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }

    /// The engine reads a mount as a line of comma-separated values.
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

/// Appends one value in quotes, in which a quote is doubled.
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
    fn options_are_in_the_engines_words() {
        let image = ContainerImage::new("image:1")
            .with_mount(Mount::new("/a, b", "/c\"d").with_read_only(true))
            .with_user("1000:1000")
            .with_network("none")
            .with_memory(1 << 20)
            .with_cpus(0.5)
            .with_pids(64);
        let options: Vec<_> = image.options().into_iter().map(|word| word.into_string().unwrap()).collect();
        assert_eq!(
            options.join(" "),
            "--mount type=bind,\"source=/a, b\",\"target=/c\"\"d\",readonly --user 1000:1000 --network none \
             --memory 1048576b --cpus 0.5 --pids-limit 64"
        );
        assert!(ContainerImage::new("image").options().is_empty());
    }
}
