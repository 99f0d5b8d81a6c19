//! Command line.

use std::path::PathBuf;

const USAGE: &str = "usage: wire DIR [FILTER] [--seed N]";

/// The command line.
#[derive(Debug)]
pub(crate) struct Arguments {
    /// Directory of `manifest.json`.
    pub(crate) directory: PathBuf,
    /// Part of the names of the recordings to replay; `None` for all of them.
    pub(crate) filter: Option<String>,
    /// Seed to repeat a run with.
    pub(crate) seed: Option<u64>,
}

impl Arguments {
    pub(crate) fn parse(given: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut seed = None;
        let mut words = Vec::new();
        let mut given = given;
        while let Some(word) = given.next() {
            if word == "--seed" {
                let value = given.next().unwrap_or_default();
                let number =
                    value.parse().map_err(|_| format!("--seed takes a whole number; found `{value}`"))?;
                seed = Some(number);
            } else {
                words.push(word);
            }
        }
        let mut words = words.into_iter();
        match (words.next(), words.next(), words.next()) {
            (Some(directory), filter, None) => Ok(Self { directory: directory.into(), filter, seed }),
            (None, _, _) => Err(format!("no directory was given; {USAGE}")),
            (Some(_), _, Some(extra)) => Err(format!("`{extra}` is one word too many; {USAGE}")),
        }
    }
}
