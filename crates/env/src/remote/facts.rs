//! What there is to know about a far side.

use std::path::PathBuf;

use super::tool::StatWords;

/// Facts that do not change while an environment lives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    /// In the words of the loop specification: `linux`, `darwin`.
    pub(super) platform: String,
    pub(super) os_version: String,
    /// Where a line starts.
    pub(super) home: PathBuf,
    pub(super) stat: StatWords,
    pub(super) has_ripgrep: bool,
    /// The names of its variables.
    pub(super) variables: Vec<String>,
    /// The names of those with a value that looks like a secret.
    pub(super) secrets: Vec<String>,
}

impl Facts {
    /// Reads what the script `facts.sh` prints.
    pub(super) fn parse(answer: &str) -> Option<Self> {
        let mut lines = answer.lines();
        let (system, release) = (lines.next()?, lines.next()?);
        Some(Self {
            platform: system.to_lowercase(),
            os_version: format!("{system} {release}").trim().to_owned(),
            home: PathBuf::from(lines.next()?),
            stat: if lines.next()? == "c" { StatWords::C } else { StatWords::F },
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
        let facts = Facts::parse("Darwin\n24.1.0\n/Users/me\nf\nrg\nHOME\nPATH\n\nPATH\n").unwrap();
        assert_eq!((facts.platform.as_str(), facts.os_version.as_str()), ("darwin", "Darwin 24.1.0"));
        assert_eq!((facts.stat, facts.has_ripgrep), (StatWords::F, true));
        assert_eq!(facts.variables, ["HOME", "PATH"]);
        assert_eq!(facts.secrets, ["PATH"]);
        assert_eq!(Facts::parse("Linux\n6.1\n"), None);
    }
}
