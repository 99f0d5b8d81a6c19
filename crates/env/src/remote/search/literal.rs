//! What a file must hold if a pattern is to match in it.

/// The longest text that every match of a regular expression holds, if one is easily told.
///
/// `None` is always right: it means that a file must be read to know. So patterns with alternatives have none, nor
/// do those whose text is not ASCII, which a file in another encoding could match.
pub(super) fn literal_of(pattern: &str) -> Option<String> {
    if pattern.contains('|') || !pattern.is_ascii() {
        return None;
    }
    let (mut best, mut run) = (String::new(), String::new());
    let mut rest = pattern.chars().peekable();
    while let Some(next) = rest.next() {
        let literal = match next {
            // What follows may be repeated, optional, or a flag: only what stands before is certain.
            '(' | '[' | ')' => break,
            '\\' => match rest.next() {
                Some(escaped) if escaped.is_ascii_punctuation() => Some(escaped),
                // A class or an assertion; one with an argument in braces is told by what follows.
                Some('b' | 'B' | 'd' | 'D' | 's' | 'S' | 'w' | 'W' | 'A' | 'z') => None,
                Some(_) | None => break,
            },
            '.' | '^' | '$' | '*' | '?' | '+' | '{' => None,
            plain => Some(plain),
        };
        if next == '{' {
            // A counted repetition: what it counts has been taken back.
            if !rest.by_ref().any(|inside| inside == '}') {
                break;
            }
        }
        // What may come no time at all is not certain, and repetitions can be repeated: `a+*` matches nothing too.
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
    fn what_is_certain_is_told() {
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
            assert_eq!(literal_of(pattern).as_deref(), literal, "{pattern}");
        }
    }

    proptest! {
        #[test]
        fn every_match_holds_it(
            parts in prop::collection::vec(prop::sample::select(vec![
                "a", "b", "ab", "c", ".", "\\.", "\\w", "[ab]", "(ab)", "(a)?", "^", "$", "\\b", "(?i)", "*", "?", "+", "{2}", "{0,1}",
            ]), 1..7),
            line in "[abcAB.]{0,8}",
        ) {
            let pattern = parts.concat();
            if let (Ok(matcher), Some(literal)) = (RegexMatcher::new(&pattern), literal_of(&pattern))
                && matcher.is_match(line.as_bytes()).unwrap()
            {
                prop_assert!(line.contains(&literal), "{pattern} {literal} {line}");
            }
        }
    }
}
