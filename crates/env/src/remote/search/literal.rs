//! Literals that a matching file must contain.

/// Returns the longest text that every match of a regular expression contains, if easily
/// determined.
///
/// `None` is always correct: the file must be read to know. Patterns with alternatives return
/// `None`, as do patterns that are not ASCII, which might match a file in another encoding.
pub(super) fn required_literal(pattern: &str) -> Option<String> {
    if pattern.contains('|') || !pattern.is_ascii() {
        return None;
    }
    let (mut best, mut run) = (String::new(), String::new());
    let mut rest = pattern.chars().peekable();
    while let Some(next) = rest.next() {
        let literal = match next {
            // The rest may be repeated, optional, or a flag: only the text before is certain.
            '(' | '[' | ')' => break,
            '\\' => match rest.next() {
                Some(escaped) if escaped.is_ascii_punctuation() => Some(escaped),
                // A class or an assertion; one with an argument in braces is handled by the next
                // iteration.
                Some('b' | 'B' | 'd' | 'D' | 's' | 'S' | 'w' | 'W' | 'A' | 'z') => None,
                Some(_) | None => break,
            },
            '.' | '^' | '$' | '*' | '?' | '+' | '{' => None,
            plain => Some(plain),
        };
        if next == '{' {
            // A counted repetition; the repeated character was excluded already.
            if !rest.by_ref().any(|inside| inside == '}') {
                break;
            }
        }
        // A character that may occur zero times is not certain, and repetitions nest: `a+*` matches
        // the empty string.
        let literal = literal.filter(|_| !matches!(rest.peek(), Some('*' | '?' | '+' | '{')));
        run.extend(literal);
        if literal.is_none() {
            longer(&mut best, &mut run);
        }
    }
    longer(&mut best, &mut run);
    (!best.is_empty()).then_some(best)
}

fn longer(best: &mut String, run: &mut String) {
    if run.len() > best.len() {
        best.clone_from(run);
    }
    run.clear();
}

#[cfg(test)]
mod tests {
    use grep_matcher::Matcher;
    use grep_regex::RegexMatcher;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn required_literals_are_found() {
        for (pattern, literal) in [
            ("needle", Some("needle")),
            ("^fn needle\\(", Some("fn needle(")),
            ("a.needle.*b", Some("needle")),
            ("needles?", Some("needle")),
            ("needl+e", Some("need")),
            ("needl+*e", Some("need")),
            ("a{2}bc", Some("bc")),
            ("\\bword\\b", Some("word")),
            ("pre(x|y)", None),
            ("pre(x)y", Some("pre")),
            ("ab[cd]efgh", Some("ab")),
            ("(?i)needle", None),
            ("\\w+", None),
            ("\\x41bc", None),
            ("ä", None),
            ("", None),
            (".", None),
        ] {
            assert_eq!(required_literal(pattern).as_deref(), literal, "{pattern}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if pintle_test_conditions::is_full() { 512 } else { 64 }))]

        #[test]
        fn every_match_contains_the_literal(
            parts in prop::collection::vec(prop::sample::select(vec![
                "a", "b", "ab", "c", ".", "\\.", "\\w", "[ab]", "(ab)", "(a)?", "^", "$", "\\b", "(?i)", "*", "?", "+", "{2}", "{0,1}",
            ]), 1..7),
            line in "[abcAB.]{0,8}",
        ) {
            let pattern = parts.concat();
            if let (Ok(matcher), Some(literal)) = (RegexMatcher::new(&pattern), required_literal(&pattern))
                && matcher.is_match(line.as_bytes()).unwrap()
            {
                prop_assert!(line.contains(&literal), "{pattern} {literal} {line}");
            }
        }
    }
}
