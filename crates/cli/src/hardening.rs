//! Hides the API keys of this process from the commands that a model runs.
//!
//! Linux exposes the initial environment of a process as `/proc/PID/environ`, and its memory to debuggers of the same
//! user. Secrets are therefore wiped from the initial environment, and the process is made undumpable, so that only root
//! can read its memory.
#![expect(unsafe_code, reason = "the initial environment can only be wiped in place")]

use std::ffi::{CStr, OsStr, c_char};
use std::os::unix::ffi::OsStrExt as _;

use pintle_env::{EnvPolicy, Redactions};

use crate::args::Command;
use crate::env_spec::EnvSpec;
use crate::kept_in::{STORE_VARIABLE, secrets_of_store};
use crate::keys::{Credentials, Secret};
use crate::process_env::ProcessEnv;
use crate::provider::Provider;

/// Suffix, in capitals, of variables that the HTTP client of this process reads later.
const PROXY_SUFFIX: &str = "_PROXY";

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

/// Length in bytes below which the value of a variable may also be an ordinary word.
const SHORTEST_SECRET: usize = 12;

/// Returns the secrets of this process: the keys of model providers, whether in variables, stored or `in_use`, the tokens of
/// servers, and the values of other variables that commands must not see, if they look like keys.
pub(crate) fn secrets(process_env: &ProcessEnv, in_use: Option<&Secret>) -> Redactions {
    let stored = Credentials::for_redaction(process_env);
    let keys = stored.all().chain(in_use).map(|key| key.expose().to_owned());
    let secrets = process_env.variables().filter_map(|(name, value)| {
        let value = value.to_str()?;
        let looks_like_key = value.len() >= SHORTEST_SECRET
            && value.bytes().any(|byte| byte.is_ascii_digit())
            && !value.contains(char::is_whitespace);
        let is_secret = is_provider_key(&name) || is_withheld(&name, OsStr::new(value)) && looks_like_key;
        is_secret.then(|| value.to_owned())
    });
    #[cfg(feature = "mcp")]
    let secrets = secrets.chain(crate::server_tokens::secrets_of_tokens(process_env));
    Redactions::new(secrets.chain(keys).chain(secrets_of_store(process_env)))
}

/// Returns whether the variable has the key of a model provider.
#[cfg(feature = "mcp")]
pub(crate) fn is_model_key(name: &str) -> bool {
    is_provider_key(OsStr::new(name))
}

fn is_provider_key(name: &OsStr) -> bool {
    Provider::ALL.iter().any(|provider| provider.variables().keys.iter().any(|key| name == *key))
}

fn is_withheld(name: &OsStr, value: &OsStr) -> bool {
    // It may have a password.
    if name == STORE_VARIABLE {
        return true;
    }
    let is_proxy = name.to_ascii_uppercase().to_string_lossy().ends_with(PROXY_SUFFIX);
    !is_proxy && !EnvPolicy::InheritFiltered.lets_through(name, value)
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
