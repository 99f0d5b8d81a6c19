//! Parsing of numerals.

use std::fmt;

use crate::symbol::Symbol;

/// Error for a text that is not a numeral.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParseError {
    /// The text is empty.
    Empty,
    /// A character is not one of the seven letters.
    Letter(char),
    /// A smaller symbol precedes a larger one from which it may not be subtracted.
    Order(Symbol, Symbol),
}

impl fmt::Display for ParseError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => formatter.write_str("a numeral has at least one letter"),
            Self::Letter(letter) => write!(formatter, "{letter:?} is not a Roman letter"),
            Self::Order(small, large) => write!(formatter, "{small:?} may not precede {large:?}"),
        }
    }
}

impl std::error::Error for ParseError {}

/// Parses a numeral.
pub fn parse(text: &str) -> Result<u32, ParseError> {
    let symbols = text
        .chars()
        .map(|letter| Symbol::from_letter(letter).ok_or(ParseError::Letter(letter)))
        .collect::<Result<Vec<Symbol>, ParseError>>()?;
    if symbols.is_empty() {
        return Err(ParseError::Empty);
    }
    let mut total = 0;
    let mut rest = symbols.iter().copied().peekable();
    while let Some(symbol) = rest.next() {
        match rest.next_if(|next| symbol.value() < next.value()) {
            Some(larger) if symbol.may_precede(larger) => total += larger.value() - symbol.value(),
            Some(larger) => return Err(ParseError::Order(symbol, larger)),
            None => total += symbol.value(),
        }
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_add_up() {
        assert_eq!(parse("III"), Ok(3));
        assert_eq!(parse("LXVI"), Ok(66));
        assert_eq!(parse("MDCLXVI"), Ok(1666));
    }

    #[test]
    fn a_smaller_symbol_in_front_is_subtracted() {
        assert_eq!(parse("IV"), Ok(4));
        assert_eq!(parse("XLIV"), Ok(44));
        assert_eq!(parse("CD"), Ok(400));
    }

    #[test]
    fn invalid_numerals_are_rejected() {
        assert_eq!(parse(""), Err(ParseError::Empty));
        assert_eq!(parse("XYZ"), Err(ParseError::Letter('Y')));
        assert_eq!(parse("IM"), Err(ParseError::Order(Symbol::I, Symbol::M)));
    }
}
