//! File with the keys that `pintle login` stores.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{CREDENTIALS_FILE, Secret, line_number};
use crate::failure::Failure;
use crate::process_env::{self, ProcessEnv};
use crate::provider::Provider;

/// First lines of the file.
const HEAD: &str = "# Written by `pintle login`. Only you may read it.\n\n[keys]\n";

/// Stored keys.
#[derive(Debug, Default)]
pub struct Credentials {
    /// Keys by the name of their provider.
    keys: BTreeMap<String, Secret>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct CredentialsFile {
    #[serde(default)]
    keys: BTreeMap<String, String>,
}

impl Credentials {
    /// Reads the file. No file is an empty one.
    ///
    /// A file that other users can read is a usage failure.
    pub fn read(process_env: &ProcessEnv) -> Result<Self, Failure> {
        let Some(path) = Self::path(process_env) else { return Ok(Self::default()) };
        let Some(text) = process_env::read_private_if_exists("file of keys", &path)? else {
            return Ok(Self::default());
        };
        Self::parse(&path, &text)
    }

    /// Returns the stored keys for redaction, even if other users can read the file. An invalid file has no keys.
    pub(crate) fn for_redaction(process_env: &ProcessEnv) -> Self {
        let path = Self::path(process_env);
        let read = path.and_then(|path| {
            let text = process_env::read_text_if_exists("file of keys", &path).ok()??;
            Self::parse(&path, &text).ok()
        });
        read.unwrap_or_default()
    }

    fn parse(path: &Path, text: &str) -> Result<Self, Failure> {
        // The parser's own message may quote a key.
        let form: CredentialsFile = toml::from_str(text).map_err(|error| {
            Failure::usage(format!(
                "the file of keys {} is wrong in line {}: expected `[keys]` and lines like `anthropic = \"…\"`",
                path.display(),
                line_number(&error, text)
            ))
        })?;
        Ok(Self { keys: form.keys.into_iter().map(|(name, key)| (name, Secret::new(key))).collect() })
    }

    /// Returns the path of the file; `None` if no variable names the directory.
    pub fn path(process_env: &ProcessEnv) -> Option<PathBuf> {
        process_env.configuration_directory().map(|directory| directory.join(CREDENTIALS_FILE))
    }

    /// Returns the stored key of a provider; `None` also for an empty one.
    pub fn get(&self, provider: Provider) -> Option<&Secret> {
        self.keys.get(provider.name()).filter(|key| !key.expose().is_empty())
    }

    /// Returns all stored keys.
    pub fn all(&self) -> impl Iterator<Item = &Secret> {
        self.keys.values()
    }

    /// Sets or, with `None`, removes the key of a provider and writes the file. Returns whether there was a key before.
    pub fn set(
        &mut self,
        provider: Provider,
        key: Option<Secret>,
        process_env: &ProcessEnv,
    ) -> Result<bool, Failure> {
        let path = Self::path(process_env).ok_or_else(no_directory)?;
        let before = match key {
            Some(key) => self.keys.insert(provider.name().to_owned(), key),
            None => self.keys.remove(provider.name()),
        };
        process_env.write_configuration(&path, &self.text())?;
        Ok(before.is_some())
    }

    /// Formats the file. Keys of unknown providers are kept.
    fn text(&self) -> String {
        let known = |name: &str| name.parse::<Provider>().is_ok();
        let line = |(name, key): (&String, &Secret)| {
            // Names and keys are visible ASCII, for which Rust and TOML have the same escapes.
            let name = if known(name) { name.clone() } else { format!("{name:?}") };
            format!("{name} = {:?}\n", key.expose())
        };
        std::iter::once(HEAD.to_owned()).chain(self.keys.iter().map(line)).collect()
    }
}

/// Failure if no variable names the directory of the user's configuration.
fn no_directory() -> Failure {
    Failure::usage("no directory for keys: expected PINTLE_CONFIG_DIR, XDG_CONFIG_HOME or HOME")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn process_env(directory: &tempfile::TempDir) -> ProcessEnv {
        ProcessEnv::from_variables([("PINTLE_CONFIG_DIR", directory.path().as_os_str())])
    }

    #[test]
    fn stored_keys_are_private_and_removable() {
        let directory = tempfile::tempdir().unwrap();
        let process_env = process_env(&directory);
        let mut credentials = Credentials::read(&process_env).unwrap();
        let odd = Secret::new(r#"k"ey\with'quotes"#);
        assert!(!credentials.set(Provider::Gemini, Some(odd.clone()), &process_env).unwrap());
        let other = Some(Secret::new("sk-other-0123"));
        credentials.set(Provider::OpenAiCompatible, other, &process_env).unwrap();
        let path = directory.path().join("credentials.toml");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let mut read = Credentials::read(&process_env).unwrap();
        assert_eq!(read.get(Provider::Gemini), Some(&odd));
        assert_eq!(read.all().count(), 2);
        assert!(!format!("{read:?}").contains("quotes"));
        assert!(read.set(Provider::Gemini, None, &process_env).unwrap());
        read.set(Provider::OpenAi, Some(Secret::new("")), &process_env).unwrap();
        assert_eq!(Credentials::read(&process_env).unwrap().get(Provider::OpenAi), None);
        assert_eq!(Credentials::read(&process_env).unwrap().get(Provider::Gemini), None);
    }

    #[test]
    fn file_that_others_can_read_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("credentials.toml");
        process_env(&directory).write_private(&path, "[keys]\ngemini = \"AIza-0123456789\"\n").unwrap();
        for mode in [0o644, 0o640, 0o602] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let message = Credentials::read(&process_env(&directory)).unwrap_err().message();
            assert!(message.contains(&format!("mode {mode:04o}")), "{message}");
            assert!(message.contains("chmod 600"), "{message}");
            assert_eq!(Credentials::for_redaction(&process_env(&directory)).all().count(), 1);
        }
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o400)).unwrap();
        assert_eq!(Credentials::read(&process_env(&directory)).unwrap().all().count(), 1);
    }

    #[test]
    fn wrong_file_is_reported_without_its_keys() {
        let directory = tempfile::tempdir().unwrap();
        for text in
            ["[keys]\ngemini = sk-secret-0123\n", "\ngemini = \"sk-secret-0123\"\n", "[keys]\ngemini = 5\n"]
        {
            process_env(&directory).write_private(&directory.path().join("credentials.toml"), text).unwrap();
            let message = Credentials::read(&process_env(&directory)).unwrap_err().message();
            assert!(
                message.contains("is wrong in line 2") || message.contains("is wrong in line 1"),
                "{message}"
            );
            assert!(!message.contains("secret"), "{message}");
        }
    }
}
