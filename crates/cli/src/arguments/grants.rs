//! `pintle grants`.

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};

use super::ListFormat;

/// `pintle grants`.
#[derive(Debug, Args)]
pub(crate) struct GrantsArgs {
    #[command(subcommand)]
    pub(crate) command: GrantsCommand,
}

/// Subcommands of `pintle grants`.
#[derive(Debug, Subcommand)]
pub(crate) enum GrantsCommand {
    /// Revoke grants: their sessions can neither call tools nor be resumed
    Revoke(RevokeArgs),
    /// List revoked grants
    List {
        /// Output format
        #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
        output: ListFormat,
    },
    /// Generate a key that signs grants, and print its public key
    Keygen {
        /// New file for the private key; only you can read it
        #[arg(value_name = "FILE", value_parser = clap::value_parser!(PathBuf))]
        file: PathBuf,
    },
    /// Sign a grant as its first issuer, and print it
    Issue(SignGrantArgs),
    /// Sign a narrower grant as the holder of a signed one, and print both as a chain
    Attenuate {
        /// File of the signed grant
        #[arg(value_name = "FILE", value_parser = clap::value_parser!(PathBuf))]
        file: PathBuf,
        #[command(flatten)]
        signed: SignGrantArgs,
    },
    /// Show the grants of a signed chain; its root is not verified
    Show {
        /// File of the signed grant
        #[arg(value_name = "FILE", value_parser = clap::value_parser!(PathBuf))]
        file: PathBuf,
    },
    /// Verify a signed grant here and now, as a run with `--grant` does
    Verify(VerifyGrantArgs),
}

/// A grant to sign.
#[derive(Debug, Args)]
pub(crate) struct SignGrantArgs {
    /// File of the private key that signs
    #[arg(long, value_name = "FILE", value_parser = clap::value_parser!(PathBuf))]
    pub(crate) key: PathBuf,
    /// File of the grant, in JSON
    #[arg(long, value_name = "FILE", value_parser = clap::value_parser!(PathBuf))]
    pub(crate) grant: PathBuf,
    /// User that may use the grant
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) subject: String,
    /// Server or store that accepts the grant; can be repeated
    #[arg(long, value_name = "NAME", required = true, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) audience: Vec<String>,
    /// Public key that may attenuate the grant
    #[arg(long, value_name = "KEY")]
    pub(crate) holder: Option<String>,
}

/// `pintle grants verify`.
#[derive(Debug, Args)]
pub(crate) struct VerifyGrantArgs {
    /// File of the signed grant
    #[arg(value_name = "FILE", value_parser = clap::value_parser!(PathBuf))]
    pub(crate) file: PathBuf,
    /// Public key of a root, in place of the roots in `grant-roots.toml`; can be repeated
    #[arg(long, value_name = "KEY")]
    pub(crate) root: Vec<String>,
    /// Accepted audience, in place of the one in `grant-roots.toml`; can be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) audience: Vec<String>,
    /// Accepted user, in place of the users in `grant-roots.toml`; can be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) subject: Vec<String>,
}

/// `pintle grants revoke`.
#[derive(Debug, Args)]
pub(crate) struct RevokeArgs {
    /// Id of the grant; the grants of its subagents are revoked as well
    #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new(), required_unless_present_any = ["before", "issuer"])]
    pub(crate) ids: Vec<String>,
    /// Revoke all grants with a lower `epoch`; with `--issuer`, those that the key signed
    #[arg(long, value_name = "EPOCH")]
    pub(crate) before: Option<u64>,
    /// Revoke the grants that this public key signed, and their attenuations
    #[arg(long, value_name = "KEY")]
    pub(crate) issuer: Option<String>,
}
