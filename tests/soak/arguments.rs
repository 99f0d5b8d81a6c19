//! Command line.

const USAGE: &str = "usage: soak [--turns N] [--seed N] | soak --sessions N";

/// Default number of inputs.
const TURNS: usize = 2_000;

/// The command line.
#[derive(Debug)]
pub(crate) struct Arguments {
    pub(crate) mode: Mode,
    /// Seed to repeat a run with.
    pub(crate) seed: Option<u64>,
}

/// Mode of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Sequential inputs in each worker.
    Turns(usize),
    /// Concurrent sessions.
    Sessions(usize),
    /// The server for them, in a separate process.
    Serve,
}

impl Arguments {
    pub(crate) fn parse(mut given: impl Iterator<Item = String>) -> Result<Self, String> {
        let (mut mode, mut seed) = (Mode::Turns(TURNS), None);
        while let Some(word) = given.next() {
            match word.as_str() {
                "--turns" => mode = Mode::Turns(number(&word, given.next())?),
                "--sessions" => mode = Mode::Sessions(number(&word, given.next())?),
                "--seed" => seed = Some(number(&word, given.next())?),
                "serve" => mode = Mode::Serve,
                other => return Err(format!("`{other}` is not understood; {USAGE}")),
            }
        }
        Ok(Self { mode, seed })
    }
}

fn number<N: std::str::FromStr>(flag: &str, value: Option<String>) -> Result<N, String> {
    let value = value.unwrap_or_default();
    value.parse().map_err(|_| format!("{flag} takes a whole number; found `{value}`"))
}
