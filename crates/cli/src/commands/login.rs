//! `pintle login` and `pintle logout`: stored keys of providers.

mod hidden_input;

use pintle_host::failure::{Failure, OrFailure as _};
use pintle_host::keys::{self, ConfiguredKeys, Credentials, RemovedKey, Secret};
use pintle_host::process_env::{self, ProcessEnv};
use pintle_host::provider::Provider;
use pintle_host::sanitize::{json_line, sanitize};
use pintle_tui::console;
use pintle_tui::interrupt::Interrupts;
use serde::Serialize;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use self::hidden_input::HiddenInput;
use crate::arguments::{ListFormat, LoginArgs, LogoutArgs};
use crate::exit::Exit;

/// Maximum size of standard input, in bytes.
const MAX_INPUT: u64 = 1 << 20;

/// Provider and where its key comes from.
#[derive(Debug, Serialize)]
struct KeySourceRow {
    provider: &'static str,
    /// A variable, `key_command` or `credentials.toml`; `None` without a key.
    source: Option<&'static str>,
}

/// Stores the key of a provider, or lists where keys come from.
pub(crate) async fn login(args: LoginArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    if args.list {
        let text = list(args.output, process_env)?;
        console::print(&text).await?;
        return Ok(Exit::Done);
    }
    // Before the user types anything.
    let mut credentials = Credentials::read(process_env)?;
    let (provider, key) = if args.stdin {
        let provider = args.provider.ok_or_else(|| Failure::usage("--stdin requires a provider"))?;
        (provider, process_env::read_stdin_within(MAX_INPUT)?)
    } else {
        let interrupts = Interrupts::listen()?;
        interrupts.race(from_terminal(args.provider)).await?
    };
    let key = key.trim();
    keys::check(provider, key)?;
    credentials.set(provider, Some(Secret::new(key)), process_env)?;
    console::print(&describe_stored_key(provider, process_env)?).await?;
    Ok(Exit::Done)
}

/// Removes the stored key of a provider.
pub(crate) async fn logout(args: &LogoutArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    let name = args.provider.name();
    let RemovedKey { was_stored, other } = keys::remove(args.provider, process_env)?;
    let text = match was_stored {
        false => format!("no key for {name} is stored\n{}\n", keys::SUBSCRIPTION_NOTICE),
        true => format!("removed the key for {name}; to invalidate it, revoke it at the provider\n"),
    };
    console::print(&text).await?;
    if let Some(other) = other {
        console::notice(&format!("the key of {name} in {other} is still used"));
    }
    Ok(Exit::Done)
}

/// Describes where the key is stored, and which sources take precedence.
fn describe_stored_key(provider: Provider, process_env: &ProcessEnv) -> Result<String, Failure> {
    let path = Credentials::path(process_env).unwrap_or_default();
    let name = provider.name();
    match ConfiguredKeys::read(process_env)?.source_or_variable(provider, process_env) {
        Some(keys::CREDENTIALS_FILE) | None => {}
        Some(before) => {
            console::notice(&format!("the key for {name} in {before} takes precedence over the stored key"))
        }
    }
    Ok(format!("stored the key for {name} in {}\n", sanitize(&path.display().to_string())))
}

/// Reads provider and key from the terminal, the key without showing it.
async fn from_terminal(provider: Option<Provider>) -> Result<(Provider, String), Failure> {
    if !process_env::stdin_is_terminal() || !console::stderr_is_terminal() {
        return Err(Failure::usage("cannot prompt for a key without a terminal")
            .with_hint("`pintle login PROVIDER --stdin` reads it from standard input"));
    }
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut line = async || {
        let line = lines.next_line().await.or_failed("cannot read the terminal")?;
        line.ok_or_else(|| Failure::usage("no key was given"))
    };
    console::notice(keys::SUBSCRIPTION_NOTICE);
    let provider = match provider {
        Some(provider) => provider,
        None => {
            console::prompt(&format!("Provider ({}): ", names().join(", ")));
            let name = line().await?;
            console::prompt_answered();
            name.trim().to_ascii_lowercase().parse::<Provider>().map_err(|_| {
                Failure::usage(format!("unknown provider: expected one of {}", names().join(", ")))
            })?
        }
    };
    let hidden = HiddenInput::begin().or_failed("cannot use the terminal")?;
    console::prompt(&format!("Key of {} (not shown): ", provider.name()));
    let key = line().await?;
    drop(hidden);
    // The terminal has echoed only the line end.
    console::prompt_answered();
    Ok((provider, key))
}

fn names() -> [&'static str; 4] {
    Provider::ALL.map(Provider::name)
}

fn list(output: ListFormat, process_env: &ProcessEnv) -> Result<String, Failure> {
    let configured = ConfiguredKeys::read(process_env)?;
    let rows: Vec<KeySourceRow> = Provider::ALL
        .into_iter()
        .map(|provider| KeySourceRow {
            provider: provider.name(),
            source: configured.source_or_variable(provider, process_env),
        })
        .collect();
    match output {
        ListFormat::Json => json_line(&rows),
        ListFormat::Text => {
            let line =
                |row: &KeySourceRow| format!("{:<18} {}\n", row.provider, row.source.unwrap_or("no key"));
            Ok(rows.iter().map(line).collect())
        }
    }
}
