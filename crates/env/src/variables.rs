//! Variables of commands: those that they inherit, and the tag of their processes.

#[cfg(feature = "local")]
mod outside;

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
};

#[cfg(feature = "local")]
pub use self::outside::without_paths_below;
use crate::secret::is_secret;

/// Variable that tags every process of a command, so that it is found after it left its process
/// group. Tags of nested environments are joined by a slash.
pub(crate) const TAG_VARIABLE: &str = "PINTLE_COMMAND_TAG";

/// Policy for the variables that commands inherit (loop specification, section 4.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum EnvPolicy {
    /// All except those recognized as secrets. The default.
    ///
    /// Recognized are the patterns `*_API_KEY`, `*_SECRET`, `*_TOKEN`, `*_PASSWORD`, `*_CREDENTIAL`
    /// of the specification and names used by common tools, for instance `AWS_SECRET_ACCESS_KEY`,
    /// `PGPASSWORD`, `NPM_CONFIG__AUTH` and names ending with `PASSPHRASE`, `JWT`, `COOKIE` or
    /// `WEBHOOK_URL`, in any case; values that contain a URL with a password;
    /// and values in common key formats, for instance `sk-…`, `ghp_…` or a private key in PEM. A
    /// secret in another format under another name is passed on: where that matters use
    /// [`InheritCore`](Self::InheritCore) or [`InheritNone`](Self::InheritNone).
    #[default]
    InheritFiltered,
    /// All.
    InheritAll,
    /// Variables needed by a shell and by common languages: `PATH`, `HOME`, `USER`, `SHELL`,
    /// `LANG`, `TERM`, `TMPDIR`, `CARGO_HOME`, `GOPATH`, `NVM_DIR` and similar.
    InheritCore,
    /// None.
    InheritNone,
}

/// Variables needed by a shell and by common languages.
const CORE: [&str; 39] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "TERM",
    "TMPDIR",
    "TZ",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "BUN_INSTALL",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "CONDA_PREFIX",
    "DENO_DIR",
    "DOTNET_ROOT",
    "GEM_HOME",
    "GEM_PATH",
    "GOPATH",
    "GOROOT",
    "GOCACHE",
    "GOMODCACHE",
    "GRADLE_HOME",
    "JAVA_HOME",
    "MAVEN_HOME",
    "NODE_PATH",
    "NVM_DIR",
    "PNPM_HOME",
    "PYENV_ROOT",
    "PYTHONPATH",
    "RBENV_ROOT",
    "VIRTUAL_ENV",
];

impl EnvPolicy {
    /// Returns true if commands inherit a variable with this name and value.
    #[must_use]
    pub fn lets_through(self, name: &OsStr, value: &OsStr) -> bool {
        match self {
            Self::InheritAll => true,
            Self::InheritFiltered => is_core(name) || !is_secret(name, value),
            Self::InheritCore => is_core(name),
            Self::InheritNone => false,
        }
    }

    /// Returns the variables that the policy passes on.
    pub(crate) fn choose(self, mut variables: BTreeMap<OsString, OsString>) -> BTreeMap<OsString, OsString> {
        variables.retain(|name, value| self.lets_through(name, value));
        variables
    }
}

fn is_core(name: &OsStr) -> bool {
    CORE.iter().any(|core| name == *core)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_policy_passes_its_variables() {
        let host = [
            "PATH",
            "CARGO_HOME",
            "EDITOR",
            "OPENAI_API_KEY",
            "openai_api_key",
            "My_Secret",
            "GH_TOKEN",
            "DB_PASSWORD",
            "X_CREDENTIAL",
            "TOKENIZER",
            "SECRET_SANTA",
        ];
        let chosen = |policy: EnvPolicy| {
            let variables = host.map(|name| (name.into(), "value".into()));
            let chosen = policy.choose(variables.into());
            chosen.into_keys().map(|name| name.into_string().unwrap()).collect::<Vec<_>>()
        };
        let mut all = host.map(str::to_owned).to_vec();
        all.sort();
        assert_eq!(chosen(EnvPolicy::InheritAll), all);
        assert_eq!(
            chosen(EnvPolicy::InheritFiltered),
            ["CARGO_HOME", "EDITOR", "PATH", "SECRET_SANTA", "TOKENIZER"]
        );
        assert_eq!(chosen(EnvPolicy::InheritCore), ["CARGO_HOME", "PATH"]);
        assert!(chosen(EnvPolicy::InheritNone).is_empty());
    }
}
