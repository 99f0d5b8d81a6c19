//! Text from strangers, made fit for a place in the prompt.

/// `text` as one line of at most `limit` characters, without control characters and without those that nobody sees.
///
/// What was cut is marked by `…`, which comes on top.
pub(crate) fn single_line(text: &str, limit: usize) -> String {
    let visible = |c: &char| c.is_whitespace() || !(c.is_control() || is_invisible(*c));
    let mut rest = text.trim().chars().filter(visible).map(|c| if c.is_whitespace() { ' ' } else { c });
    let mut line: String = rest.by_ref().take(limit).collect();
    if rest.next().is_some() {
        line.push('…');
    }
    line
}

/// `text` in which the end tag `</tag` no longer stands, in whatever case.
pub(super) fn defused(text: &str, tag: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("</") {
        let closes = after.get(..tag.len()).is_some_and(|name| name.eq_ignore_ascii_case(tag));
        safe.push_str(before);
        safe.push_str(if closes { "<\\/" } else { "</" });
        rest = after;
    }
    safe.push_str(rest);
    safe
}

/// Whether it changes what is read without being seen: joiners, direction marks, tags.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_line_is_bounded_and_shows_what_it_says() {
        for (text, limit, expected) in [
            ("main", 10, "main"),
            ("  a\tb\nc  d ", 10, "a b c  d"),
            ("a\u{1b}[31mred\u{7}", 20, "a[31mred"),
            ("abc\u{202e}def\u{200b}", 10, "abcdef"),
            ("a\u{2028}b", 10, "a b"),
            ("abcdef", 3, "abc…"),
            ("ab cd", 3, "ab …"),
            ("ä€😀", 3, "ä€😀"),
            ("abc   ", 3, "abc"),
            ("", 3, ""),
        ] {
            assert_eq!(single_line(text, limit), expected, "{text:?} in {limit}");
        }
    }

    #[test]
    fn only_the_end_tag_is_changed() {
        for (text, expected) in [
            ("plain < text", "plain < text"),
            ("</doc>", "<\\/doc>"),
            ("a</DOC >b", "a<\\/DOC >b"),
            ("<</doc>", "<<\\/doc>"),
            ("</div></doc></", "</div><\\/doc></"),
            ("</dö", "</dö"),
        ] {
            assert_eq!(defused(text, "doc"), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn a_line_never_leaves_its_line_or_its_limit(text in any::<String>(), limit in 1usize..40) {
            let line = single_line(&text, limit);
            prop_assert!(line.trim_end_matches('…').chars().count() <= limit);
            prop_assert!(!line.chars().any(char::is_control));
            prop_assert_eq!(line.lines().count(), usize::from(!line.is_empty()));
        }

        #[test]
        fn no_end_tag_survives(text in "(</?|doc|DOC|x|>){0,20}") {
            prop_assert!(!defused(&text, "doc").to_ascii_lowercase().contains("</doc"));
        }
    }
}
