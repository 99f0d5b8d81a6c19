//! Roman numerals, and sorting of chapter headings numbered with them.
//!
//! ```
//! assert_eq!(roman::parse("XIV"), Ok(14));
//! assert_eq!(roman::to_roman(14).as_deref(), Some("XIV"));
//! ```

mod outline;
mod parse;
mod render;
mod symbol;

pub use outline::sort_headings;
pub use parse::{parse, ParseError};
pub use render::to_roman;
pub use symbol::Symbol;
