//! Arguments of `pintle audit`.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

/// `pintle audit`.
#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    /// Id of the session, or a unique prefix
    #[arg(value_name = "SESSION", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) session: String,
    /// Report only this call of the session or its subagents, given by its id or a unique prefix
    #[arg(value_name = "CALL", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) call: Option<String>,
    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: AuditFormat,
    /// Show complete arguments, outputs and diffs, and do not redact the secrets that this process knows
    #[arg(long)]
    pub(crate) full: bool,
    /// Head from an earlier verification, as `EPOCH:LINE:HASH`, that the record must contain
    #[arg(long, value_name = "HEAD", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) head: Option<String>,
}

/// Values of `--output` of `pintle audit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum AuditFormat {
    /// Human-readable text
    Text,
    /// One JSON object
    Json,
    /// One self-contained HTML page
    Html,
}

impl From<AuditFormat> for pintle_host::audit::AuditFormat {
    fn from(format: AuditFormat) -> Self {
        match format {
            AuditFormat::Text => Self::Text,
            AuditFormat::Json => Self::Json,
            AuditFormat::Html => Self::Html,
        }
    }
}
