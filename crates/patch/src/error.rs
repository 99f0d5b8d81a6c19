//! Errors of parsing and planning. A model reads these messages and tries again. They therefore name the position, the
//! text found and the text expected, and are bounded in length.

mod apply;
mod difference;
mod parse;

pub use apply::{Action, ApplyError, ApplyErrorKind, Candidate, UnusableMatch};
pub use difference::{Difference, Mistake, WhitespaceDifference};
pub(crate) use difference::{describe_whitespace, undo_common_mistakes};
pub use parse::{ParseError, ParseErrorKind, Wrapper};
