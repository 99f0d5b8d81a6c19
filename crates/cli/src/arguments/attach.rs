//! `pintle attach`.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use super::ConversationArgs;

/// `pintle attach`.
#[derive(Debug, Args)]
pub(crate) struct AttachArgs {
    /// URL that `pintle serve` prints, or `unix:FILE`; the token may be in PINTLE_TOKEN instead
    #[arg(value_name = "URL", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) url: String,
    /// Id of the session, or a unique prefix [default: the newest session]
    #[arg(value_name = "SESSION", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) session: Option<String>,
    /// Start a new session
    #[arg(long, conflicts_with = "session")]
    pub(crate) new: bool,
    /// Working directory of the new session, on the server [default: the server's directory]
    #[arg(long, value_name = "DIR", requires = "new")]
    pub(crate) dir: Option<String>,
    #[command(flatten)]
    pub(crate) conversation: ConversationArgs,
}
