//! Canonical decomposition (Unicode Standard Annex 15, form D), so that a composed and a
//! decomposed accent compare equal. Compatibility equivalence is left out on purpose: it would
//! make `x²` and `x2` the same line.

mod table;

use table::{COMBINING_CLASSES, DECOMPOSITIONS};

const HANGUL_FIRST: u32 = 0xAC00;
const HANGUL_COUNT: u32 = 11_172;
const LEADING_FIRST: u32 = 0x1100;
const VOWEL_FIRST: u32 = 0x1161;
const VOWEL_COUNT: u32 = 21;
/// One before the first trailing consonant: index 0 stands for none.
const TRAILING_BASE: u32 = 0x11A7;
const TRAILING_COUNT: u32 = 28;

/// `text` with every character decomposed and combining marks in canonical order.
pub(crate) fn decompose(text: &str) -> String {
    let mut decomposed = String::with_capacity(text.len());
    // Marks that follow one another are ordered by class before they are written.
    let mut marks: Vec<(u8, char)> = Vec::new();
    for character in text.chars() {
        each_part(character, &mut |part| match combining_class(part) {
            0 => {
                flush(&mut marks, &mut decomposed);
                decomposed.push(part);
            }
            class => marks.push((class, part)),
        });
    }
    flush(&mut marks, &mut decomposed);
    decomposed
}

fn flush(marks: &mut Vec<(u8, char)>, out: &mut String) {
    // The sort is stable, as the canonical ordering algorithm asks.
    marks.sort_by_key(|&(class, _)| class);
    out.extend(marks.drain(..).map(|(_, mark)| mark));
}

fn each_part(character: char, emit: &mut dyn FnMut(char)) {
    if character.is_ascii() {
        return emit(character);
    }
    let found = DECOMPOSITIONS.binary_search_by_key(&character, |&(composed, ..)| composed);
    match found.ok().and_then(|at| DECOMPOSITIONS.get(at)) {
        Some(&(_, first, second)) => {
            each_part(first, emit);
            if second != '\0' {
                each_part(second, emit);
            }
        }
        None => each_jamo(character, emit),
    }
}

/// A Hangul syllable is computed (Unicode Standard, section 3.12); anything else stands as it is.
fn each_jamo(character: char, emit: &mut dyn FnMut(char)) {
    let code = u32::from(character);
    let index = match code.checked_sub(HANGUL_FIRST) {
        Some(index) if index < HANGUL_COUNT => index,
        _ => return emit(character),
    };
    let per_leading = VOWEL_COUNT * TRAILING_COUNT;
    let trailing = index % TRAILING_COUNT;
    let parts = [
        LEADING_FIRST + index / per_leading,
        VOWEL_FIRST + index % per_leading / TRAILING_COUNT,
        TRAILING_BASE + trailing,
    ];
    let count = if trailing == 0 { 2 } else { 3 };
    for part in parts.into_iter().take(count).filter_map(char::from_u32) {
        emit(part);
    }
}

fn combining_class(character: char) -> u8 {
    if character < '\u{300}' {
        return 0;
    }
    let after = COMBINING_CLASSES.partition_point(|&(first, ..)| first <= character);
    match after.checked_sub(1).and_then(|at| COMBINING_CLASSES.get(at)) {
        Some(&(_, last, class)) if character <= last => class,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn what_is_not_canonically_equal_stays_apart() {
        let apart = [
            ("x\u{B2}", "x2"),
            ("\u{FB01}", "fi"),
            ("\u{FF21}", "A"),
            ("e\u{301}", "e\u{300}"),
            // Marks of one class keep their order.
            ("a\u{301}\u{300}", "a\u{300}\u{301}"),
        ];
        for (left, right) in apart {
            assert_ne!(decompose(left), decompose(right), "{left} and {right}");
        }
    }

    #[test]
    fn the_tables_are_sorted() {
        assert!(DECOMPOSITIONS.is_sorted_by(|a, b| a.0 < b.0));
        assert!(COMBINING_CLASSES.is_sorted_by(|a, b| a.0 <= a.1 && a.1 < b.0));
    }
}
