//! The seven symbols and their values.

/// Letter of a numeral.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symbol {
    I,
    V,
    X,
    L,
    C,
    D,
    M,
}

impl Symbol {
    /// Returns the symbol for a letter.
    pub fn from_letter(letter: char) -> Option<Self> {
        match letter {
            'I' => Some(Self::I),
            'V' => Some(Self::V),
            'X' => Some(Self::X),
            'L' => Some(Self::L),
            'C' => Some(Self::C),
            'D' => Some(Self::D),
            'M' => Some(Self::M),
            _ => None,
        }
    }

    /// Returns the value of the symbol.
    pub fn value(self) -> u32 {
        match self {
            Self::I => 1,
            Self::V => 5,
            Self::X => 10,
            Self::L => 50,
            Self::C => 100,
            Self::D => 500,
            Self::M => 1000,
        }
    }

    /// Returns whether the symbol may precede a larger one and be subtracted from it.
    ///
    /// Only I, X and C may, and each only before the next two larger symbols:
    /// I before V and X, X before L and C, C before D and M.
    pub fn may_precede(self, larger: Self) -> bool {
        let subtractive = matches!(self, Self::I | Self::X | Self::C);
        subtractive && larger.value() / self.value() <= 5
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_have_their_values() {
        let values: Vec<u32> = "IVXLCDM".chars().filter_map(Symbol::from_letter).map(Symbol::value).collect();
        assert_eq!(values, [1, 5, 10, 50, 100, 500, 1000]);
    }

    #[test]
    fn fives_are_never_subtracted() {
        assert!(!Symbol::V.may_precede(Symbol::X));
        assert!(!Symbol::L.may_precede(Symbol::C));
    }
}
