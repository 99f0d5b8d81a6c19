//! Keys of providers that are not in the environment: keys printed by a command of the user, and stored keys.

mod command;
mod credentials;
mod form;

use std::fmt;

use self::command::KeyCommands;
pub use self::credentials::Credentials;
pub use self::form::check;
use crate::config_file::keys::KEY_COMMAND;
use crate::failure::Failure;
use crate::process_env::ProcessEnv;
use crate::provider::Provider;

/// Name of the file of stored keys, and of the source of such a key.
pub const CREDENTIALS_FILE: &str = "credentials.toml";

/// Notice for commands that store or remove keys.
pub const SUBSCRIPTION_NOTICE: &str =
    "vendor subscriptions, such as ChatGPT or Claude, are not supported; use an API key";

/// A key. `Debug` hides it, and there is no `Display`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a key.
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into())
    }

    /// Returns the key.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Keys that the user has configured: commands come before stored keys.
#[derive(Debug, Default)]
pub struct ConfiguredKeys {
    commands: KeyCommands,
    credentials: Credentials,
}

impl ConfiguredKeys {
    /// Reads the user's configuration. Runs nothing.
    ///
    /// A file that other users can read although it contains keys is a usage failure.
    pub fn read(process_env: &ProcessEnv) -> Result<Self, Failure> {
        let commands = KeyCommands::read(process_env);
        let credentials = Credentials::read(process_env)?;
        Ok(Self { commands, credentials })
    }

    /// Returns the name of the source of a provider's key; `None` without one.
    pub fn source(&self, provider: Provider) -> Option<&'static str> {
        if self.commands.has(provider) {
            return Some(KEY_COMMAND);
        }
        self.credentials.get(provider).map(|_| CREDENTIALS_FILE)
    }

    /// Returns the name of the source of a provider's key, which may be a variable; `None` without one.
    pub fn source_or_variable(&self, provider: Provider, process_env: &ProcessEnv) -> Option<&'static str> {
        let mut variables = provider.variables().keys.iter().copied();
        variables.find(|name| process_env.variable(name).is_some()).or_else(|| self.source(provider))
    }

    /// Returns the key of a provider and the name of its source; `None` without one. Runs the provider's command, if there
    /// is one.
    pub async fn key(
        &self,
        provider: Provider,
        process_env: &ProcessEnv,
    ) -> Result<Option<(Secret, &'static str)>, Failure> {
        if let Some(key) = self.commands.run(provider, process_env).await? {
            return Ok(Some((key, KEY_COMMAND)));
        }
        Ok(self.credentials.get(provider).map(|key| (key.clone(), CREDENTIALS_FILE)))
    }
}

/// Result of the removal of a stored key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemovedKey {
    /// Whether there was a stored key.
    pub was_stored: bool,
    /// Another source that has a key of the provider.
    pub other: Option<&'static str>,
}

/// Removes the stored key of a provider, if there is one.
///
/// A file that other users can read although it contains keys is a usage failure.
pub fn remove(provider: Provider, process_env: &ProcessEnv) -> Result<RemovedKey, Failure> {
    let mut credentials = Credentials::read(process_env)?;
    let was_stored = credentials.get(provider).is_some();
    if was_stored {
        credentials.set(provider, None, process_env)?;
    }
    let other = ConfiguredKeys::read(process_env)?.source_or_variable(provider, process_env);
    Ok(RemovedKey { was_stored, other })
}

/// Returns the number of the line in which a file is wrong.
fn line_number(error: &toml::de::Error, text: &str) -> usize {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    1 + before.matches('\n').count()
}
