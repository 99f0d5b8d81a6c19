//! What the program was asked to do.

use std::path::PathBuf;

const USAGE: &str = "usage: wire DIR [FILTER] [--seed N]";

/// The command line.
#[derive(Debug)]
pub(crate) struct Arguments {
    /// Where `manifest.json` is.
    pub(crate) folder: PathBuf,
    /// A part of the names of the recordings to play; all of them if `None`.
    pub(crate) filter: Option<String>,
    /// The seed to play again.
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
            (Some(folder), filter, None) => Ok(Self { folder: folder.into(), filter, seed }),
            (None, _, _) => Err(format!("no folder was given; {USAGE}")),
            (Some(_), _, Some(extra)) => Err(format!("`{extra}` is one word too many; {USAGE}")),
        }
    }
}
