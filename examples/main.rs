//! Runs one of the examples: `cargo run -p pintle-examples -- NAME`.
//!
//! Each file beside this one is a program of its own: its `main` is all that is called here, and the file can be copied
//! to become yours. They are modules of one binary because a binary each would be linked, and kept, nine times.
#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::wildcard_enum_match_arm,
    reason = "an example is a host: it has files and variables, prints what happens, and picks the events that it shows"
)]

mod approval;
mod custom_environment;
mod custom_tool;
mod http_host;
mod own_provider;
mod replay;
mod resume;
mod steering;
mod subagents;

type Main = fn() -> Result<(), Box<dyn std::error::Error>>;

const EXAMPLES: &[(&str, Main)] = &[
    ("custom_tool", custom_tool::main),
    ("custom_environment", custom_environment::main),
    ("approval", approval::main),
    ("steering", steering::main),
    ("subagents", subagents::main),
    ("replay", replay::main),
    ("resume", resume::main),
    ("own_provider", own_provider::main),
    ("http_host", http_host::main),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let asked = std::env::args().nth(1).unwrap_or_default();
    match EXAMPLES.iter().find(|(name, _)| *name == asked) {
        Some((_, main)) => main(),
        None => {
            let names: Vec<&str> = EXAMPLES.iter().map(|(name, _)| *name).collect();
            Err(format!("found no example `{asked}`, expected one of {}", names.join(", ")).into())
        }
    }
}
