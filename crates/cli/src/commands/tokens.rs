//! `pintle tokens`: manages the tokens of users of a server, which are stored as hashes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pintle_agent::{Clock as _, SystemClock, Timestamp};
use pintle_host::failure::{Failure, OrFailure as _};
use pintle_host::process_env::{self, ProcessEnv};
use pintle_host::sanitize::{json_line, sanitize, to_single_line};
use pintle_server::{AccessToken, TokenScope};
use pintle_tui::console;
use serde::{Deserialize, Serialize};

use crate::arguments::{AddTokenArgs, ListFormat, TokensArgs, TokensCommand};
use crate::exit::Exit;

/// Name of the file in the directory of the configuration.
const STORED: &str = "tokens.json";

/// Tokens of a server, in a file that only the user can read.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredTokens {
    tokens: Vec<AccessToken>,
}

/// File of the tokens of a server.
#[derive(Clone, Debug)]
pub(crate) struct TokenFile {
    path: PathBuf,
}

impl TokenFile {
    /// Selects the given file, or the file in the user's configuration.
    pub(crate) fn new(given: Option<&Path>, process_env: &ProcessEnv) -> Result<Self, Failure> {
        let stored = || process_env.configuration_directory().map(|directory| directory.join(STORED));
        let path = given.map(Path::to_path_buf).or_else(stored).ok_or_else(|| {
            Failure::usage("no directory for tokens: expected PINTLE_CONFIG_DIR, XDG_CONFIG_HOME or HOME")
        })?;
        Ok(Self { path })
    }

    /// Reads the tokens. A missing file counts as empty.
    ///
    /// A file that other users can read is a usage failure.
    pub(crate) fn read(&self) -> Result<Vec<AccessToken>, Failure> {
        let Some(text) = process_env::read_private_if_exists("token file", &self.path)? else {
            return Ok(Vec::new());
        };
        let form: StoredTokens = serde_json::from_str(&text).map_err(|error| {
            Failure::usage(format!("invalid token file {}: {error}", self.path.display()))
                .with_hint("`pintle tokens` writes it")
        })?;
        Ok(form.tokens)
    }

    fn write(&self, tokens: Vec<AccessToken>, process_env: &ProcessEnv) -> Result<(), Failure> {
        let text =
            serde_json::to_string_pretty(&StoredTokens { tokens }).or_failed("cannot write the tokens")?;
        process_env.write_configuration(&self.path, &format!("{text}\n"))
    }
}

/// Longest name of a token or tenant, in characters.
const MAX_NAME: usize = 100;

/// Runs `pintle tokens`.
pub(crate) async fn tokens(args: TokensArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    let file = TokenFile::new(args.tokens.as_deref(), process_env)?;
    let text = match args.command {
        TokensCommand::Add(args) => {
            let name = args.name.clone();
            let text = add(&file, args, process_env)?;
            let written = console::print(&text).await;
            if written.is_err() {
                // It was never shown, and would only occupy the name.
                revoke(&file, &[name], process_env)?;
            }
            return written.map(|()| Exit::Done);
        }
        TokensCommand::List { output } => list(&file.read()?, output, SystemClock.now())?,
        TokensCommand::Revoke { names } => revoke(&file, &names, process_env)?,
    };
    console::print(&text).await?;
    Ok(Exit::Done)
}

fn add(file: &TokenFile, args: AddTokenArgs, process_env: &ProcessEnv) -> Result<String, Failure> {
    let mut tokens = file.read()?;
    let AddTokenArgs { name, scope, expires, tenant } = args;
    expect_printable("NAME", &name)?;
    tenant.as_deref().map_or(Ok(()), |tenant| expect_printable("--tenant", tenant))?;
    if tokens.iter().any(|token| token.name == name) {
        return Err(Failure::usage(format!("token `{name}` already exists"))
            .with_hint("revoke it first, or choose another name"));
    }
    let mut scopes: Vec<TokenScope> = scope.into_iter().map(TokenScope::from).collect();
    scopes.sort_unstable();
    scopes.dedup();
    let (mut token, secret) = AccessToken::generate(name, scopes).or_failed("cannot create a token")?;
    token.expires = expires.map(|age| after(SystemClock.now(), age));
    token.tenant = tenant;
    tokens.push(token);
    file.write(tokens, process_env)?;
    Ok(format!("{secret}\n"))
}

/// Checks that a name looks the same in each list, log and terminal: records identify the actor by it.
fn expect_printable(what: &str, name: &str) -> Result<(), Failure> {
    let is_plain = name.trim() == name && !name.contains('\t') && to_single_line(name) == name;
    if name.is_empty() || name.chars().count() > MAX_NAME || !is_plain {
        let message = format!("{what}: expected one line of at most {MAX_NAME} printable characters");
        return Err(Failure::usage(message));
    }
    Ok(())
}

fn after(now: Timestamp, age: Duration) -> Timestamp {
    let millis = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(now.as_millis().saturating_add(millis))
}

fn revoke(file: &TokenFile, names: &[String], process_env: &ProcessEnv) -> Result<String, Failure> {
    let mut tokens = file.read()?;
    if let Some(missing) = names.iter().find(|name| !tokens.iter().any(|token| token.name == **name)) {
        return Err(Failure::usage(format!("no token `{missing}` exists: no token was revoked")));
    }
    tokens.retain(|token| !names.contains(&token.name));
    file.write(tokens, process_env)?;
    Ok(String::new())
}

/// Row of the list.
#[derive(Debug, Serialize)]
struct TokenRow<'a> {
    name: &'a str,
    scopes: &'a [TokenScope],
    tenant: Option<&'a str>,
    expires: Option<String>,
    expired: bool,
}

fn list(tokens: &[AccessToken], output: ListFormat, now: Timestamp) -> Result<String, Failure> {
    let row = |token: &'_ AccessToken| -> String {
        let scopes: Vec<_> = token.scopes.iter().map(|scope| scope.as_str()).collect();
        let tenant = token.tenant.as_ref().map(|tenant| format!("  of {}", sanitize(tenant)));
        let expires = token.expires.map(|expires| match now < expires {
            true => format!("  until {expires}"),
            false => format!("  expired at {expires}"),
        });
        let (tenant, expires) = (tenant.unwrap_or_default(), expires.unwrap_or_default());
        format!("{}  {}{tenant}{expires}\n", sanitize(&token.name), scopes.join(","))
    };
    if output == ListFormat::Text {
        return Ok(tokens.iter().map(row).collect());
    }
    let rows = tokens.iter().map(|token| TokenRow {
        name: &token.name,
        scopes: &token.scopes,
        tenant: token.tenant.as_deref(),
        expires: token.expires.map(|expires| expires.to_string()),
        expired: token.expires.is_some_and(|expires| now >= expires),
    });
    json_line(&rows.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_one_printable_line() {
        for name in ["ann", "Ann Lee", "ci/deploy-1", "Zoë"] {
            assert!(expect_printable("NAME", name).is_ok(), "{name}");
        }
        let long = "x".repeat(MAX_NAME + 1);
        for name in ["", " ann", "ann\n", "a\nb", "a\u{1b}[2Jb", "a\u{202e}b", "a\u{200b}b", "a\tb", &long] {
            assert!(expect_printable("NAME", name).is_err(), "{name:?}");
        }
    }
}
