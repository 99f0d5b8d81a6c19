//! Sanitizing of untrusted text for prompts.

/// Returns `text` as a single line of at most `limit` characters, without control and invisible characters.
///
/// A truncated line ends with `…`, in addition to the limit.
pub(crate) fn single_line(text: &str, limit: usize) -> String {
    let visible = |c: &char| c.is_whitespace() || !(c.is_control() || is_invisible(*c));
    let mut rest = text.trim().chars().filter(visible).map(|c| if c.is_whitespace() { ' ' } else { c });
    let mut line: String = rest.by_ref().take(limit).collect();
    if rest.next().is_some() {
        line.push('…');
    }
    line
}

/// Escapes each end tag `</tag` in `text`, in any case.
pub(crate) fn escape_end_tag(text: &str, tag: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("</") {
        let closes = after.get(..tag.len()).is_some_and(|name| name.eq_ignore_ascii_case(tag));
        escaped.push_str(before);
        escaped.push_str(if closes { "<\\/" } else { "</" });
        rest = after;
    }
    escaped.push_str(rest);
    escaped
}

/// Returns whether `c` is invisible and can change how other text is read: joiners, direction marks, tags.
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
    fn single_line_truncates_and_drops_invisible_characters() {
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
    fn only_the_end_tag_is_escaped() {
        for (text, expected) in [
            ("plain < text", "plain < text"),
            ("</doc>", "<\\/doc>"),
            ("a</DOC >b", "a<\\/DOC >b"),
            ("<</doc>", "<<\\/doc>"),
            ("</div></doc></", "</div><\\/doc></"),
            ("</dö", "</dö"),
        ] {
            assert_eq!(escape_end_tag(text, "doc"), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn single_line_keeps_to_one_line_and_its_limit(text in any::<String>(), limit in 1usize..40) {
            let line = single_line(&text, limit);
            prop_assert!(line.trim_end_matches('…').chars().count() <= limit);
            prop_assert!(!line.chars().any(char::is_control));
            prop_assert_eq!(line.lines().count(), usize::from(!line.is_empty()));
        }

        #[test]
        fn no_end_tag_survives(text in "(</?|doc|DOC|x|>){0,20}") {
            prop_assert!(!escape_end_tag(&text, "doc").to_ascii_lowercase().contains("</doc"));
        }
    }
}
