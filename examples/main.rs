//! Runs one of the examples: `cargo run -p pintle-examples -- NAME`.
//!
//! Each example is a complete program that you can copy; only its `main` is called here. The examples are modules of one
//! binary to avoid linking each.
#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::wildcard_enum_match_arm,
    reason = "examples use files and variables, print to standard output and select events"
)]

mod approval;
mod complete;
mod custom_environment;
mod custom_tool;
mod governed;
mod host_session;
mod images;
mod mcp;
mod minimal;
mod mounted_server;
mod object;
mod observability;
mod own_provider;
mod passive_tools;
mod persistence;
mod replay;
mod resume;
mod session;
mod stream;
mod subagents;
mod task;

type Main = fn() -> Result<(), Box<dyn std::error::Error>>;

const EXAMPLES: &[(&str, Main)] = &[
    ("complete", complete::main),
    ("stream", stream::main),
    ("object", object::main),
    ("passive_tools", passive_tools::main),
    ("images", images::main),
    ("custom_tool", custom_tool::main),
    ("custom_environment", custom_environment::main),
    ("approval", approval::main),
    ("session", session::main),
    ("subagents", subagents::main),
    ("replay", replay::main),
    ("resume", resume::main),
    ("persistence", persistence::main),
    ("mcp", mcp::main),
    ("task", task::main),
    ("observability", observability::main),
    ("minimal", minimal::main),
    ("own_provider", own_provider::main),
    ("mounted_server", mounted_server::main),
    ("governed", governed::main),
    ("host_session", host_session::main),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let name = std::env::args().nth(1).unwrap_or_default();
    match EXAMPLES.iter().find(|(known, _)| *known == name) {
        Some((_, main)) => main(),
        None => {
            let names: Vec<&str> = EXAMPLES.iter().map(|(name, _)| *name).collect();
            Err(format!("no example named `{name}`, expected one of {}", names.join(", ")).into())
        }
    }
}
