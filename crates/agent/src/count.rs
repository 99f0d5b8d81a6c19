//! Numbers and counts as text.

use std::fmt;

/// Displays a number in groups of three digits: `12,345`.
///
/// ```
/// assert_eq!(pintle_agent::GroupedNumber(1_234_567).to_string(), "1,234,567");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupedNumber(pub u64);

impl fmt::Display for GroupedNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        for (index, digit) in digits.chars().enumerate() {
            if index > 0 && (digits.len() - index).is_multiple_of(3) {
                f.write_str(",")?;
            }
            write!(f, "{digit}")?;
        }
        Ok(())
    }
}

/// Displays a number with its noun, which is given in the singular: `1 call`, `2 calls`, `2 entries`.
///
/// ```
/// assert_eq!(pintle_agent::Count(1_000, "entry").to_string(), "1,000 entries");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Count<'a>(pub u64, pub &'a str);

impl fmt::Display for Count<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(number, noun) = *self;
        write!(f, "{} ", GroupedNumber(number))?;
        let stem = noun.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'i', 'o', 'u']));
        match stem {
            _ if number == 1 => f.write_str(noun),
            Some(stem) => write!(f, "{stem}ies"),
            None => write!(f, "{noun}s"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        let cases = [(0, "0"), (999, "999"), (1_000, "1,000"), (12_345, "12,345"), (1_234_567, "1,234,567")];
        for (number, expected) in cases {
            assert_eq!(GroupedNumber(number).to_string(), expected);
        }
    }

    #[test]
    fn nouns_agree_with_their_number() {
        for (number, noun, expected) in [
            (1, "call", "1 call"),
            (0, "call", "0 calls"),
            (1, "entry", "1 entry"),
            (3, "entry", "3 entries"),
            (1_000, "day", "1,000 days"),
            (0, "large value", "0 large values"),
            (1, "checkpoint", "1 checkpoint"),
        ] {
            assert_eq!(Count(number, noun).to_string(), expected);
        }
    }
}
