//! Text that the shell computes within the words of a command.

use super::pattern::matches_wildcard;

/// Any text, which may be several words or none.
pub(super) const SPLIT: char = '\0';

/// Any text within one word.
pub(super) const PART: char = '\u{1}';

/// Any text within one word, which the shell may repeat with other texts.
pub(super) const EACH: char = '\u{2}';

/// Word that represents any words.
pub(super) const UNKNOWN: &str = "\0";

/// Returns whether the shell computes a part of the word.
pub(super) fn is_computed(word: &str) -> bool {
    word.contains([SPLIT, PART, EACH])
}

/// Returns whether the word may become several words.
pub(super) fn is_splittable(word: &str) -> bool {
    word.contains([SPLIT, EACH])
}

/// Returns whether the word may disappear.
pub(super) fn may_vanish(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|character| character == SPLIT)
}

/// Returns whether a possible text of a word matches a pattern with `*`. Takes time proportional to the product of both
/// lengths.
pub(super) fn may_match(pattern: &str, word: &str) -> bool {
    if !is_computed(word) {
        return matches_wildcard(pattern, word);
    }
    let pattern = pattern.as_bytes();
    // Whether the text so far may match the start of the pattern of this length.
    let mut reached = vec![false; pattern.len() + 1];
    if let Some(start) = reached.first_mut() {
        *start = true;
    }
    skip_stars(pattern, &mut reached);
    for byte in word.bytes() {
        if is_computed_byte(byte) {
            let first = reached.iter().position(|is_reached| *is_reached).unwrap_or(reached.len());
            reached.iter_mut().skip(first).for_each(|is_reached| *is_reached = true);
            continue;
        }
        let mut next = vec![false; reached.len()];
        for (length, expected) in pattern.iter().enumerate() {
            if reached.get(length) != Some(&true) {
                continue;
            }
            let after = if *expected == b'*' { length } else { length + 1 };
            if (*expected == b'*' || *expected == byte)
                && let Some(is_reached) = next.get_mut(after)
            {
                *is_reached = true;
            }
        }
        skip_stars(pattern, &mut next);
        if !next.contains(&true) {
            return false;
        }
        reached = next;
    }
    reached.last() == Some(&true)
}

fn is_computed_byte(byte: u8) -> bool {
    [SPLIT, PART, EACH].contains(&char::from(byte))
}

/// Lets each `*` match nothing.
fn skip_stars(pattern: &[u8], reached: &mut [bool]) {
    let mut is_before = false;
    for (length, is_reached) in reached.iter_mut().enumerate() {
        *is_reached |= is_before;
        is_before = *is_reached && pattern.get(length) == Some(&b'*');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_matches_what_it_may_become() {
        for (pattern, word, expected) in [
            ("push", "\0", true),
            ("push", "pu\u{1}", true),
            ("push", "\u{2}sh", true),
            ("push", "p\u{1}s\u{2}h", true),
            ("push", "st\0", false),
            ("push", "\0.rs", false),
            ("push", "push\0", true),
            ("push", "push", true),
            ("p*h", "\u{1}x", false),
            ("p*h", "pa\u{1}", true),
            ("test:*", "\u{1}:unit", true),
            ("*", "\0", true),
            ("", "\0", true),
            ("", "a\0", false),
            ("é*", "\u{1}", true),
        ] {
            assert_eq!(may_match(pattern, word), expected, "{pattern:?} {word:?}");
        }
    }
}
