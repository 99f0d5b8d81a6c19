//! Secrets of this process: keys of model providers, tokens of servers, and other variables that commands must not see.

use std::ffi::OsStr;

use pintle_env::{EnvPolicy, Redactions};

use crate::keys::{Credentials, Secret};
use crate::process_env::ProcessEnv;
use crate::provider::Provider;
use crate::session_store::{STORE_VARIABLE, store_secrets};

/// Suffix, in capitals, of variables that the HTTP client of this process reads later.
const PROXY_SUFFIX: &str = "_PROXY";

/// Length in bytes below which the value of a variable may also be an ordinary word.
const SHORTEST_SECRET: usize = 12;

/// Returns the secrets of this process: the keys of model providers, whether in variables, stored or `in_use`, the tokens of
/// servers, and the values of other variables that commands must not see, if they look like keys.
pub fn redactions(process_env: &ProcessEnv, in_use: Option<&Secret>) -> Redactions {
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
    let secrets = secrets.chain(crate::server_tokens::token_secrets(process_env));
    Redactions::new(secrets.chain(keys).chain(store_secrets(process_env)))
}

/// Returns whether the variable has the key of a model provider.
pub fn is_provider_key(name: &OsStr) -> bool {
    Provider::ALL.iter().any(|provider| provider.variables().keys.iter().any(|key| name == *key))
}

/// Returns whether commands must not see the variable, because it may contain a secret. Proxy settings are visible.
pub fn is_withheld(name: &OsStr, value: &OsStr) -> bool {
    // It may have a password.
    if name == STORE_VARIABLE {
        return true;
    }
    let is_proxy = name.to_ascii_uppercase().to_string_lossy().ends_with(PROXY_SUFFIX);
    !is_proxy && !EnvPolicy::InheritFiltered.lets_through(name, value)
}
