//! Flags and subcommands for the policy of a run.

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};
use pintle_governance::Mode;
use pintle_host::policy::PolicyChoice;

use super::{ConfigurationArgs, ListFormat};

/// Which calls run, and which are asked about.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct PolicyArgs {
    /// Mode for calls that match no rule: `plan` (read only), `ask`, `edit` (files in the directory may change, commands
    /// need approval) or `auto` (all calls run, commands in the sandbox) [default: auto; edit in conversations]
    #[arg(long, value_name = "MODE", value_parser = mode)]
    pub(crate) mode: Option<Mode>,
    /// Mode after an accepted plan of `--mode plan`: `ask`, `edit` or `auto` [default: edit]
    #[arg(long, value_name = "MODE", value_parser = mode_after_plan)]
    pub(crate) after_plan: Option<Mode>,
    /// Allow calls that match this rule, such as 'shell(cargo test *)', while this command runs; may be repeated
    #[arg(long, value_name = "RULE", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) allow: Vec<String>,
    /// Deny calls that match this rule, such as '@write(src/**)', while this command runs; may be repeated
    #[arg(long, value_name = "RULE", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) deny: Vec<String>,
}

impl From<&PolicyArgs> for PolicyChoice {
    fn from(args: &PolicyArgs) -> Self {
        Self { mode: args.mode, allow: args.allow.clone(), ask: Vec::new(), deny: args.deny.clone() }
    }
}

/// `pintle rules`.
#[derive(Debug, Args)]
pub(crate) struct RulesArgs {
    #[command(subcommand)]
    pub(crate) command: RulesCommand,
}

/// Subcommands of `pintle rules`.
#[derive(Debug, Subcommand)]
pub(crate) enum RulesCommand {
    /// List the rules that apply in this directory with their sources
    List(RulesScope),
    /// Show the decision for a call and its reason, without running the call
    Check(CheckRulesArgs),
}

impl RulesCommand {
    /// Returns the directory and the flags whose rules apply, to change them.
    pub(crate) fn scope_mut(&mut self) -> &mut RulesScope {
        match self {
            Self::List(scope) => scope,
            Self::Check(args) => &mut args.scope,
        }
    }
}

/// `pintle rules check`.
#[derive(Debug, Args)]
pub(crate) struct CheckRulesArgs {
    /// Call, such as 'shell(git push)', 'write_file(src/main.rs)' or 'web_fetch(docs.rs)'
    #[arg(value_name = "CALL", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) call: String,
    #[command(flatten)]
    pub(crate) scope: RulesScope,
}

/// Directory and flags whose rules are meant.
#[derive(Debug, Args)]
pub(crate) struct RulesScope {
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,
    /// Directory of the project [default: the current directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: ListFormat,
    #[command(flatten)]
    pub(crate) configuration: ConfigurationArgs,
}

/// `pintle trust`.
#[derive(Debug, Args)]
pub(crate) struct TrustArgs {
    /// Directory of the project [default: the current directory]
    #[arg(value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Revoke the trust in the project
    #[arg(long, conflicts_with = "list")]
    pub(crate) revoke: bool,
    /// List trusted projects
    #[arg(long)]
    pub(crate) list: bool,
    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: ListFormat,
}

fn mode_after_plan(text: &str) -> Result<Mode, String> {
    match mode(text)? {
        Mode::Plan => Err("a plan is carried out in mode `ask`, `edit` or `auto`".to_owned()),
        mode @ (Mode::Ask | Mode::Edit | Mode::Auto) => Ok(mode),
    }
}

fn mode(text: &str) -> Result<Mode, String> {
    text.parse().map_err(|error: pintle_governance::UnknownMode| error.to_string())
}
