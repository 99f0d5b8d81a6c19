//! Why a patch was refused. A model reads these messages and tries again, so they say where,
//! what was found and what was expected, and they stay short.

mod apply;
mod difference;
mod parse;

pub use apply::{Action, ApplyError, ApplyErrorKind, Candidate, Elsewhere};
pub use difference::{BlankDifference, Difference, Mistake};
pub(crate) use difference::{as_meant, blanks_in_words};
pub use parse::{ParseError, ParseErrorKind, Wrapper};
