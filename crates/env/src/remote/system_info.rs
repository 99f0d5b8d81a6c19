//! Properties of a remote system.

use std::path::PathBuf;

use super::script::StatDialect;

/// Properties that are constant during the lifetime of an environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SystemInfo {
    /// Platform as the loop specification names it: `linux`, `darwin`.
    pub(super) platform: String,
    pub(super) os_version: String,
    /// The directory in which a line starts.
    pub(super) directory: PathBuf,
    /// The home directory of the user; `None` if the variable is not set.
    pub(super) home: Option<PathBuf>,
    pub(super) stat: StatDialect,
    pub(super) has_ripgrep: bool,
    /// Names of the environment variables.
    pub(super) variables: Vec<String>,
    /// Names of the variables whose value is recognized as a secret.
    pub(super) secrets: Vec<String>,
}

impl SystemInfo {
    /// Parses the output of `system_info.sh`.
    pub(super) fn parse(answer: &str) -> Option<Self> {
        let mut lines = answer.lines();
        let (system, release) = (lines.next()?, lines.next()?);
        Some(Self {
            platform: system.to_lowercase(),
            os_version: format!("{system} {release}").trim().to_owned(),
            directory: PathBuf::from(lines.next()?),
            home: lines.next().map(PathBuf::from).filter(|home| home.is_absolute()),
            stat: if lines.next()? == "c" { StatDialect::Gnu } else { StatDialect::Bsd },
            has_ripgrep: lines.next()? == "rg",
            variables: lines.by_ref().take_while(|name| !name.is_empty()).map(str::to_owned).collect(),
            secrets: lines.map(str::to_owned).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_read() {
        let facts =
            SystemInfo::parse("Darwin\n24.1.0\n/srv\n/users/me\nf\nrg\nHOME\nPATH\n\nPATH\n").unwrap();
        assert_eq!((facts.platform.as_str(), facts.os_version.as_str()), ("darwin", "Darwin 24.1.0"));
        assert_eq!((facts.stat, facts.has_ripgrep), (StatDialect::Bsd, true));
        assert_eq!((facts.directory, facts.home), ("/srv".into(), Some("/users/me".into())));
        assert_eq!(facts.variables, ["HOME", "PATH"]);
        assert_eq!(facts.secrets, ["PATH"]);
        assert_eq!(SystemInfo::parse("Linux\n6.1\n"), None);
    }
}
