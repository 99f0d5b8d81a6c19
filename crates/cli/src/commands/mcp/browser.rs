//! The browser of the user, if a variable names one.
#![expect(
    clippy::disallowed_methods,
    reason = "the browser of the user is no tool, and outlives the command"
)]

use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use pintle_host::process_env::ProcessEnv;

/// Opens a URL in the browser that `BROWSER` names, which may have arguments. Returns whether one was started.
pub(super) fn open(url: &str, process_env: &ProcessEnv) -> bool {
    let Some(browser) = process_env.variable("BROWSER") else { return false };
    // A server may name anything else as its page, such as a program that the browser would start.
    if !url.starts_with("https://") && !url.starts_with("http://") {
        return false;
    }
    let script = format!("exec {browser} \"$1\"");
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", &script, "pintle", url])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Ctrl+C ends the login, and no browser.
        .process_group(0);
    process_env.prepare_unsandboxed(&mut command);
    command.spawn().is_ok()
}
