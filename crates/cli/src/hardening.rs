//! Keeps the keys of this process from the commands that a model runs.
//!
//! On Linux the kernel shows the environment with which a process was started, as `/proc/PID/environ`, and the memory
//! of a process to debuggers of the same user. So secrets are wiped from the initial environment, and the process is
//! made undumpable: only the superuser can read its memory from then on.
#![expect(unsafe_code, reason = "the initial environment can only be wiped where it is")]

use std::ffi::{CStr, OsStr, c_char};
use std::os::unix::ffi::OsStrExt as _;

use clap::ValueEnum as _;
use pintle_env::EnvPolicy;

use crate::args::Command;
use crate::environment::Place;
use crate::host::Host;
use crate::provider::Provider;

/// The end of names, in capitals, of variables that the HTTP client of this process reads later on.
const OF_HTTP_CLIENT: &str = "_PROXY";

unsafe extern "C" {
    /// The variables of this process, `NAME=VALUE` each, with a null pointer behind the last (POSIX).
    static environ: *const *mut c_char;
}

/// Makes the process undumpable, and removes secrets from its environment; they remain in `host`.
///
/// Keys of model providers are always removed. Where commands run on this machine, so is every variable that they do
/// not get, but for those of proxies. Elsewhere the client program may need them to get there.
///
/// # Safety
///
/// No other thread of this process is running.
pub(crate) unsafe fn hide_secrets(host: &Host, command: &Command) {
    make_undumpable();
    let is_local = !matches!(command, Command::Run(args) if args.place.env != Place::Local);
    for (name, value) in host.variables() {
        if is_provider_key(&name) || is_local && is_withheld(&name, &value) {
            // SAFETY: as promised by the caller.
            unsafe {
                wipe(&name);
                std::env::remove_var(&name);
            }
        }
    }
}

fn is_provider_key(name: &OsStr) -> bool {
    Provider::value_variants().iter().any(|provider| provider.variables().keys.iter().any(|key| name == *key))
}

fn is_withheld(name: &OsStr, value: &OsStr) -> bool {
    let is_of_http_client = name.to_ascii_uppercase().to_string_lossy().ends_with(OF_HTTP_CLIENT);
    !is_of_http_client && !EnvPolicy::InheritFiltered.lets_through(name, value)
}

#[cfg(target_os = "linux")]
fn make_undumpable() {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};

    // The system call fails for unknown values only.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

/// Elsewhere a process is debugged with a special right only.
#[cfg(not(target_os = "linux"))]
fn make_undumpable() {}

/// Overwrites the values of all variables of this name.
///
/// # Safety
///
/// No other thread of this process is running.
unsafe fn wipe(name: &OsStr) {
    // SAFETY: nobody changes the list or its strings meanwhile. Each string is writable memory: the stack that the
    // kernel made, or an allocation of the C library.
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

/// The offset of the value in `NAME=VALUE`.
fn value_offset(variable: &[u8], name: &[u8]) -> Option<usize> {
    variable.strip_prefix(name)?.starts_with(b"=").then_some(name.len() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_begins_behind_the_whole_name() {
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
