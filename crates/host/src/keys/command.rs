//! Commands of the user's configuration that print a key, such as commands of password managers.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Secret;
use crate::config_file::keys::KEY_COMMAND;
use crate::config_file::{self, FILE};
use crate::failure::{Failure, FailureKind};
use crate::host_command::{self, ProgramOutcome};
use crate::process_env::ProcessEnv;
use crate::provider::Provider;
use crate::sanitize::sanitize;

/// How long a command may take, including a question to the user.
const TIME_LIMIT: Duration = Duration::from_secs(30);

/// Largest output of a command that is read, in bytes.
const MAX_OUTPUT: usize = 64 << 10;

/// Longest part of a command's standard error that is repeated, in characters.
const MAX_QUOTED: usize = 300;

/// Programs with their arguments, by provider.
#[derive(Debug, Default)]
pub(crate) struct KeyCommands {
    commands: BTreeMap<&'static str, Vec<String>>,
}

impl KeyCommands {
    /// Reads the commands from the user's configuration. A project cannot set such commands.
    pub(crate) fn read(process_env: &ProcessEnv) -> Self {
        Self { commands: config_file::key_commands(process_env) }
    }

    /// Returns whether there is a command for a provider.
    pub(crate) fn has(&self, provider: Provider) -> bool {
        self.commands.contains_key(provider.name())
    }

    /// Runs the command of a provider and returns the first line of its output; `None` without a command.
    ///
    /// Every error is an authentication failure.
    pub(crate) async fn run(
        &self,
        provider: Provider,
        process_env: &ProcessEnv,
    ) -> Result<Option<Secret>, Failure> {
        let Some(words) = self.commands.get(provider.name()) else { return Ok(None) };
        run_key_command(provider, words, TIME_LIMIT, process_env).await.map(Some)
    }
}

async fn run_key_command(
    provider: Provider,
    words: &[String],
    limit: Duration,
    process_env: &ProcessEnv,
) -> Result<Secret, Failure> {
    let failed = |problem: &str| {
        Failure::new(FailureKind::Credentials, format!("{KEY_COMMAND} of {} {problem}", provider.name()))
            .with_hint(&format!("check {FILE} in the directory of your configuration"))
    };
    let ended = host_command::run_as_user(MAX_OUTPUT, process_env, words, limit).await;
    match ended.map_err(|error| failed("cannot run").caused_by(&error))? {
        ProgramOutcome::TimedOut => Err(failed(&format!("took longer than {} s", limit.as_secs()))),
        ProgramOutcome::Exited { code: 0, stdout, .. } => {
            let stdout = String::from_utf8_lossy(&stdout);
            let key = stdout.lines().next().unwrap_or_default().trim();
            let checked = super::check(provider, key);
            checked.map_err(|failure| failed(&format!("printed no key: {}", failure.message())))?;
            Ok(Secret::new(key))
        }
        ProgramOutcome::Exited { code, stdout, stderr } => {
            let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
            Err(failed(&format!("failed with exit code {code}{}", quoted(&stderr, &stdout))))
        }
    }
}

/// Returns the beginning of a command's standard error, without lines that are also in its standard output: those may
/// be keys.
fn quoted(stderr: &str, stdout: &str) -> String {
    let printed: Vec<&str> = stdout.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let lines = stderr.lines().filter(|line| !printed.iter().any(|key| line.contains(key)));
    let text = lines.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ");
    let text: String = sanitize(&text).chars().take(MAX_QUOTED).collect();
    if text.is_empty() { String::new() } else { format!(": {text}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn printed(line: &str, limit: Duration) -> Result<Secret, Failure> {
        let words = ["sh", "-c", line].map(str::to_owned);
        let process_env = ProcessEnv::from_variables([
            ("PATH", std::ffi::OsStr::new("/usr/bin:/bin")),
            ("VAULT_TOKEN", std::ffi::OsStr::new("token-of-the-vault")),
        ]);
        run_key_command(Provider::Anthropic, &words, limit, &process_env).await
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn first_line_of_the_output_is_the_key() {
        for line in [
            "echo key-0123456789; echo and more",
            "read -r nothing; echo key-0123456789",
            "printf 'key-0123456789\\r\\n'",
            "echo key-0123456789; sleep 600 &",
        ] {
            assert_eq!(printed(line, TIME_LIMIT).await, Ok(Secret::new("key-0123456789")), "{line}");
        }
        assert_eq!(printed("echo $VAULT_TOKEN", TIME_LIMIT).await, Ok(Secret::new("token-of-the-vault")));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn command_without_a_key_is_an_authentication_failure() {
        let cases = [
            ("echo 'no such\x1b[2J entry' >&2; exit 3", "failed with exit code 3: no such"),
            (
                "echo key-0123456789; echo key-0123456789 >&2; exit 3",
                "failed with exit code 3; check config.toml",
            ),
            ("exit 0", "printed no key: this is no key of anthropic: it is empty"),
            ("echo one two three", "printed no key: this is no key of anthropic: it contains a space"),
        ];
        for (line, message) in cases {
            let failure = printed(line, TIME_LIMIT).await.unwrap_err();
            assert_eq!(failure.kind(), FailureKind::Credentials);
            assert!(failure.message().contains(message), "{line}: {}", failure.message());
            assert!(
                !failure.message().contains(['\x1b']) && !failure.message().contains("0123"),
                "{failure:?}"
            );
        }
        let failure = printed("sleep 600", Duration::from_millis(1)).await.unwrap_err();
        assert!(failure.message().contains("took longer than"), "{}", failure.message());
    }

    #[tokio::test]
    async fn missing_program_is_an_authentication_failure() {
        let words = ["no-such-program-of-keys".to_owned()];
        let process_env = ProcessEnv::from_variables([("PATH", std::ffi::OsStr::new("/usr/bin:/bin"))]);
        let failure = run_key_command(Provider::Gemini, &words, TIME_LIMIT, &process_env).await.unwrap_err();
        assert_eq!(failure.kind(), FailureKind::Credentials);
        assert!(failure.message().starts_with("key_command of gemini cannot run"), "{}", failure.message());
    }
}
