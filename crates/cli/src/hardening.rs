//! Hides the API keys of this process from the commands that a model runs.
//!
//! Linux exposes the initial environment of a process as `/proc/PID/environ`, and its memory to debuggers of the same
//! user. Secrets are therefore wiped from the initial environment, and the process is made undumpable, so that only root
//! can read its memory.
#![expect(unsafe_code, reason = "the initial environment can only be wiped in place")]

use std::ffi::{CStr, OsStr, c_char};
use std::os::unix::ffi::OsStrExt as _;

use pintle_host::env_spec::EnvSpec;
use pintle_host::process_env::ProcessEnv;
use pintle_host::process_secrets::{is_provider_key, is_withheld};

use crate::arguments::Command;

unsafe extern "C" {
    /// Environment of this process: `NAME=VALUE` strings, terminated by a null pointer (POSIX).
    static environ: *const *mut c_char;
}

/// Makes the process undumpable and removes secrets from its environment. They remain in `process_env`.
///
/// Keys of model providers are always removed. If commands run locally, so is every variable that they must not see,
/// except proxy settings. With a container or a remote host, `docker` or `ssh` may need those variables to connect.
///
/// # Safety
///
/// No other thread of this process may be running.
pub(crate) unsafe fn hide_secrets(process_env: &ProcessEnv, command: &Command) {
    make_undumpable();
    let is_local = match command {
        #[cfg(feature = "mcp")]
        Command::Mcp(args) => args.command.is_local(),
        command => command.session().is_none_or(|args| args.environment.env == EnvSpec::Local),
    };
    for (name, value) in process_env.variables() {
        if is_provider_key(&name) || is_local && is_withheld(&name, &value) {
            // SAFETY: the caller guarantees that there is no other thread.
            unsafe {
                wipe(&name);
                std::env::remove_var(&name);
            }
        }
    }
}

#[cfg(target_os = "linux")]
fn make_undumpable() {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};

    // Fails only for unknown values.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

/// Other systems require a special privilege to debug a process.
#[cfg(not(target_os = "linux"))]
fn make_undumpable() {}

/// Overwrites the values of all variables with this name.
///
/// # Safety
///
/// No other thread of this process may be running.
unsafe fn wipe(name: &OsStr) {
    // SAFETY: without other threads, nothing changes the list or its strings. Each string is in writable memory: the
    // stack set up by the kernel, or an allocation of the C library.
    unsafe {
        let mut entry = environ;
        while !entry.is_null() && !(*entry).is_null() {
            let variable = *entry;
            if let Some(value) = value_offset(CStr::from_ptr(variable).to_bytes(), name.as_bytes()) {
                let value = variable.add(value);
                value.write_bytes(0, CStr::from_ptr(value).count_bytes());
            }
            entry = entry.add(1);
        }
    }
}

/// Returns the offset of the value in `NAME=VALUE`.
fn value_offset(variable: &[u8], name: &[u8]) -> Option<usize> {
    variable.strip_prefix(name)?.starts_with(b"=").then_some(name.len() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_offset_requires_the_full_name() {
        for (variable, name, offset) in [
            ("A_KEY=x", "A_KEY", Some(6)),
            ("A_KEY=", "A_KEY", Some(6)),
            ("A_KEYS=x", "A_KEY", None),
            ("A_KEY", "A_KEY", None),
            ("X=A_KEY=x", "A_KEY", None),
        ] {
            assert_eq!(value_offset(variable.as_bytes(), name.as_bytes()), offset, "{variable}");
        }
    }
}
