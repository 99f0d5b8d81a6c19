//! The values of `--env`.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

use clap::builder::{TypedValueParser, ValueParserFactory};
use clap::error::ErrorKind;
use clap::{Arg, Command};

const FORMS: &str = "expected local, docker:CONTAINER or ssh:[USER@]HOST[:PORT]";

/// A place where tools can run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// This machine.
    Local,
    /// A container that runs already, by its name or its id.
    Docker(String),
    /// Another host.
    Ssh(SshHost),
}

/// A host in the words of the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SshHost {
    user: Option<String>,
    /// A name, an address, or a host of the ssh configuration; without brackets.
    name: String,
    port: Option<u16>,
}

impl SshHost {
    /// Who and where, as `ssh` takes it.
    pub(crate) fn destination(&self) -> String {
        match &self.user {
            Some(user) => format!("{user}@{}", self.name),
            None => self.name.clone(),
        }
    }

    /// The port, if it was named.
    pub(crate) fn port(&self) -> Option<u16> {
        self.port
    }
}

impl Place {
    /// A value as it may be shown: what stands where people put a password is left out.
    fn shown(text: &str) -> Cow<'_, str> {
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

impl ValueParserFactory for Place {
    type Parser = PlaceParser;

    fn value_parser() -> PlaceParser {
        PlaceParser
    }
}

/// Reads a place for the command line. The usual parser would repeat a refused value as it is.
#[derive(Clone, Debug)]
pub(crate) struct PlaceParser;

impl TypedValueParser for PlaceParser {
    type Value = Place;

    fn parse_ref(&self, cmd: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<Place, clap::Error> {
        let parsed = match value.to_str() {
            Some(text) => text.parse(),
            None => Err(format!("found bytes that are no UTF-8, {FORMS}")),
        };
        parsed.map_err(|why: String| {
            let text = value.to_string_lossy();
            let of = arg.map(|arg| format!(" for '{arg}'")).unwrap_or_default();
            let said = format!("invalid value '{}'{of}: {why}", Place::shown(&text));
            clap::Error::raw(ErrorKind::ValueValidation, said).with_cmd(cmd)
        })
    }
}

impl FromStr for Place {
    type Err = String;

    /// Reads one of the three forms. What comes out of it holds nothing that a client program would take for an option.
    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "local" => Ok(Self::Local),
            Some(("docker", container)) => container_name(container).map(Self::Docker),
            Some(("ssh", host)) => host.parse().map(Self::Ssh),
            None | Some(_) => Err(FORMS.to_owned()),
        }
    }
}

impl FromStr for SshHost {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // A user may be called `name@domain`.
        let (user, rest) = match text.rsplit_once('@') {
            // Before anything else is said of the user: it would repeat the password.
            Some((user, _)) if user.contains(':') => {
                return Err(
                    "found a `:` in the user, expected ssh:[USER@]HOST[:PORT]; there is no place for a \
                            password, keys are used"
                        .to_owned(),
                );
            }
            Some((user, rest)) => (Some(part("user", user)?), rest),
            None => (None, text),
        };
        let (name, port) = match rest.strip_prefix('[') {
            Some(rest) => bracketed(rest)?,
            None => plain(rest)?,
        };
        Ok(Self { user, name, port })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local => f.write_str("local"),
            Self::Docker(container) => write!(f, "docker:{container}"),
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

/// The engines give names of these characters, and ids have no others.
fn container_name(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("found no container, expected docker:CONTAINER".to_owned());
    }
    let begins = text.starts_with(|first: char| first.is_ascii_alphanumeric());
    let goes_on = |other: char| other.is_ascii_alphanumeric() || matches!(other, '_' | '.' | '-');
    if begins && text.chars().all(goes_on) {
        return Ok(text.to_owned());
    }
    let text = Place::shown(text);
    Err(format!(
        "found the container {text:?}, expected the name or the id of a running one: letters, digits, `_`, `.` and \
         `-`, a letter or a digit first; an image is no container"
    ))
}

/// An address of version 6 after its opening bracket.
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

fn plain(text: &str) -> Result<(String, Option<u16>), String> {
    match text.split_once(':') {
        None => Ok((host(text)?, None)),
        Some((_, rest)) if rest.contains(':') => {
            Err("found more than one `:`, expected ssh:[USER@]HOST[:PORT]; an IPv6 address stands in brackets, as in \
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

/// A part that ssh is given as it is.
fn part(what: &str, text: &str) -> Result<String, String> {
    let expected = "expected ssh:[USER@]HOST[:PORT]";
    if text.is_empty() {
        return Err(format!("found no {what}, {expected}"));
    }
    if text.starts_with('-') {
        return Err(format!("found the {what} {text:?}, expected one that does not begin with `-`"));
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
