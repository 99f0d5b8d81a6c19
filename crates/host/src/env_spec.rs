//! Values of `--env`.

use std::borrow::Cow;
use std::fmt;
use std::net::Ipv6Addr;
use std::path::PathBuf;
use std::str::FromStr;

use crate::failure::Failure;
use crate::named_value::parse_setting;
use crate::spec::{SandboxLevel, SessionSpec};

/// Environment and working directory of the tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvironmentChoice {
    /// Where the tools run.
    pub spec: EnvSpec,
    /// As given. A relative directory of a container or a remote host starts at its login directory.
    pub directory: Option<PathBuf>,
}

/// Execution environment named on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnvSpec {
    /// This machine.
    Local,
    /// Running container, by name or id. For a task, an image.
    Docker(String),
    /// Image, by a name that no container can have, such as `debian:12`. Only for tasks.
    Image(String),
    /// Remote host.
    Ssh(SshHost),
}

/// Remote host named on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SshHost {
    user: Option<String>,
    /// Host name, address without brackets, or alias from the ssh configuration.
    name: String,
    port: Option<u16>,
}

impl SshHost {
    /// Returns the `[USER@]HOST` argument for `ssh`.
    pub fn destination(&self) -> String {
        match &self.user {
            Some(user) => format!("{user}@{}", self.name),
            None => self.name.clone(),
        }
    }

    /// Returns the port, if one was given.
    pub fn port(&self) -> Option<u16> {
        self.port
    }
}

impl TryFrom<&SessionSpec> for EnvironmentChoice {
    type Error = Failure;

    /// Fails for an environment of no known form, and for one that cannot limit commands to a list of hosts if there is one.
    fn try_from(spec: &SessionSpec) -> Result<Self, Failure> {
        let environment = &spec.environment;
        let choice = Self { spec: parse_setting(&environment.kind)?, directory: environment.dir.clone() };
        if environment.hosts().is_some() {
            require_host_limits(&choice.spec, environment.sandbox)?;
        }
        Ok(choice)
    }
}

/// Fails if commands in this environment have no separate network, which a list of hosts needs.
fn require_host_limits(environment: &EnvSpec, sandbox: SandboxLevel) -> Result<(), Failure> {
    if *environment != EnvSpec::Local {
        return Err(unsupported_hosts(&format!("it is not supported in the environment {environment}")));
    }
    match sandbox {
        SandboxLevel::Full | SandboxLevel::Auto => Ok(()),
        SandboxLevel::Writes => Err(unsupported_hosts("it is not supported at the sandbox level writes")),
        SandboxLevel::Off => Err(unsupported_hosts("it is not supported without a sandbox")),
    }
}

/// Returns the failure for a list of hosts that cannot be enforced.
pub(crate) fn unsupported_hosts(reason: &str) -> Failure {
    Failure::usage(format!("cannot limit the network to a list of hosts: {reason}"))
        .with_setting("environment.network")
        .with_hint("use the sandbox level full on this machine, or network = \"off\" or \"on\"")
}

impl EnvironmentChoice {
    /// Returns the current directory of this machine.
    pub const fn here() -> Self {
        Self { spec: EnvSpec::Local, directory: None }
    }
}

impl EnvSpec {
    /// Name of this machine.
    pub const LOCAL: &str = "local";

    /// The forms of a value, for errors.
    pub const EXPECTED: &str = "expected local, docker:CONTAINER or ssh:[USER@]HOST[:PORT]";

    /// Returns the value for use in an error, with the password redacted if it contains one.
    pub fn redact(text: &str) -> Cow<'_, str> {
        let Some((before, host)) = text.rsplit_once('@') else { return text.into() };
        let (scheme, user) = match before.split_once(':') {
            Some(("ssh", user)) => ("ssh:", user),
            Some(_) | None => ("", before),
        };
        match user.split_once(':') {
            Some((user, _password)) => format!("{scheme}{user}:…@{host}").into(),
            None => text.into(),
        }
    }
}

impl FromStr for EnvSpec {
    type Err = String;

    /// Parses one of the forms. No part of the result can be mistaken for an option by `docker` or `ssh`.
    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == Self::LOCAL => Ok(Self::Local),
            Some(("docker", image)) if is_image_name(image) => Ok(Self::Image(image.to_owned())),
            Some(("docker", container)) => container_name(container).map(Self::Docker),
            Some(("ssh", host)) => host.parse().map(Self::Ssh),
            None | Some(_) => Err(Self::EXPECTED.to_owned()),
        }
    }
}

impl FromStr for SshHost {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // User names may contain `@`, as in `name@domain`.
        let (user, rest) = match text.rsplit_once('@') {
            // Checked first: other errors would repeat the password.
            Some((user, _)) if user.contains(':') => {
                return Err(
                    "found a `:` in the user, expected ssh:[USER@]HOST[:PORT]; passwords are not supported, use \
                     keys"
                        .to_owned(),
                );
            }
            Some((user, rest)) => (Some(part("user", user)?), rest),
            None => (None, text),
        };
        let (name, port) = match rest.strip_prefix('[') {
            Some(rest) => bracketed(rest)?,
            None => unbracketed(rest)?,
        };
        Ok(Self { user, name, port })
    }
}

impl fmt::Display for EnvSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local => f.write_str(Self::LOCAL),
            Self::Docker(name) | Self::Image(name) => write!(f, "docker:{name}"),
            Self::Ssh(SshHost { user, name, port }) => {
                f.write_str("ssh:")?;
                if let Some(user) = user {
                    write!(f, "{user}@")?;
                }
                if name.contains(':') { write!(f, "[{name}]") } else { f.write_str(name) }?;
                port.map_or(Ok(()), |port| write!(f, ":{port}"))
            }
        }
    }
}

/// Returns whether only an image can have a name: it has a registry, a directory, a tag or a digest.
fn is_image_name(text: &str) -> bool {
    let starts_valid = text.starts_with(|first: char| first.is_ascii_alphanumeric());
    let is_valid =
        |other: char| other.is_ascii_alphanumeric() || matches!(other, '_' | '.' | '-' | '/' | ':' | '@');
    // Without a digest, the text after `@` could be a host and the text before it a password.
    let has_host = text.contains('@') && !text.contains("@sha256:");
    starts_valid && text.contains(['/', ':']) && text.chars().all(is_valid) && !has_host
}

/// Parses a container name or id. Engines accept no other characters in either.
fn container_name(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("found no container, expected docker:CONTAINER".to_owned());
    }
    let starts_valid = text.starts_with(|first: char| first.is_ascii_alphanumeric());
    let is_valid = |other: char| other.is_ascii_alphanumeric() || matches!(other, '_' | '.' | '-');
    if starts_valid && text.chars().all(is_valid) {
        return Ok(text.to_owned());
    }
    let text = EnvSpec::redact(text);
    Err(format!(
        "found the container {text:?}, expected the name or the id of a running one: letters, digits, `_`, `.` and \
         `-`, starting with a letter or a digit; an image is not a container"
    ))
}

/// Parses an IPv6 address and port, after the opening bracket.
fn bracketed(text: &str) -> Result<(String, Option<u16>), String> {
    let expected = "expected an IPv6 address in brackets, as in ssh:[::1]";
    let (address, rest) = text.split_once(']').ok_or_else(|| format!("found no `]`, {expected}"))?;
    let (number, zone) =
        address.split_once('%').map_or((address, None), |(number, zone)| (number, Some(zone)));
    let is_zone = |zone: &str| {
        !zone.is_empty()
            && zone.chars().all(|other| other.is_ascii_alphanumeric() || matches!(other, '_' | '.' | '-'))
    };
    if number.parse::<Ipv6Addr>().is_err() || !zone.is_none_or(is_zone) {
        return Err(format!("found {address:?} in brackets, {expected}"));
    }
    match rest.strip_prefix(':') {
        None if rest.is_empty() => Ok((address.to_owned(), None)),
        Some(digits) => Ok((address.to_owned(), Some(port(digits)?))),
        None => Err(format!("found {rest:?} after the address, expected `:` and a port, or nothing")),
    }
}

fn unbracketed(text: &str) -> Result<(String, Option<u16>), String> {
    match text.split_once(':') {
        None => Ok((host(text)?, None)),
        Some((_, rest)) if rest.contains(':') => {
            Err("found more than one `:`, expected ssh:[USER@]HOST[:PORT]; an IPv6 address must be in brackets, as in \
                 ssh:[::1]"
                .to_owned())
        }
        Some((name, digits)) => Ok((host(name)?, Some(port(digits)?))),
    }
}

fn host(text: &str) -> Result<String, String> {
    if text.contains(['/', '[', ']']) {
        return Err(format!(
            "found the host {text:?}, expected a name or an address without `/` and brackets"
        ));
    }
    part("host", text)
}

/// Validates a part that is passed to `ssh` unchanged.
fn part(what: &str, text: &str) -> Result<String, String> {
    let expected = "expected ssh:[USER@]HOST[:PORT]";
    if text.is_empty() {
        return Err(format!("found no {what}, {expected}"));
    }
    if text.starts_with('-') {
        return Err(format!("found the {what} {text:?}, expected one that does not start with `-`"));
    }
    if text.chars().any(|character| character.is_whitespace() || character.is_control()) {
        return Err(format!("found the {what} {text:?}, expected one without spaces and control characters"));
    }
    Ok(text.to_owned())
}

fn port(digits: &str) -> Result<u16, String> {
    let number = Some(digits).filter(|digits| digits.chars().all(|digit| digit.is_ascii_digit()));
    let number = number.and_then(|digits| digits.parse().ok()).filter(|port| *port != 0);
    number.ok_or_else(|| format!("found the port {digits:?}, expected a number from 1 to 65535"))
}

#[cfg(test)]
mod tests;
