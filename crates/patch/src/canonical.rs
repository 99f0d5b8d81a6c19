//! Canonical decomposition (Unicode Standard Annex 15, form D), so that composed and decomposed
//! accents compare equal. Compatibility equivalence is deliberately not applied: it would make
//! `x²` and `x2` the same line.

use unicode_normalization::UnicodeNormalization as _;

/// Decomposes every character of `text` and puts combining marks into canonical order.
pub(crate) fn decompose(text: &str) -> impl Iterator<Item = char> {
    text.nfd()
}

#[cfg(test)]
mod tests {
    fn decompose(text: &str) -> String {
        super::decompose(text).collect()
    }

    #[test]
    fn canonically_equal_spellings_decompose_alike() {
        let equal = [
            ("caf\u{E9}", "cafe\u{301}"),
            ("\u{1EA5}", "a\u{302}\u{301}"),
            ("\u{212B}", "A\u{30A}"),
            ("\u{D55C}\u{AE00}", "\u{1112}\u{1161}\u{11AB}\u{1100}\u{1173}\u{11AF}"),
            ("\u{AC00}", "\u{1100}\u{1161}"),
            // Marks of different classes may come in any order.
            ("q\u{307}\u{323}", "q\u{323}\u{307}"),
            ("\u{1E69}", "s\u{307}\u{323}"),
        ];
        for (left, right) in equal {
            assert_eq!(decompose(left), decompose(right), "{left} and {right}");
        }
    }

    #[test]
    fn canonically_different_texts_stay_different() {
        let different = [
            ("x\u{B2}", "x2"),
            ("\u{FB01}", "fi"),
            ("\u{FF21}", "A"),
            ("e\u{301}", "e\u{300}"),
            // Marks of one class keep their order.
            ("a\u{301}\u{300}", "a\u{300}\u{301}"),
        ];
        for (left, right) in different {
            assert_ne!(decompose(left), decompose(right), "{left} and {right}");
        }
    }
}
