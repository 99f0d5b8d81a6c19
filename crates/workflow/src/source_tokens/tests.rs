//! Literals, comments and symbols of each language.

use super::*;

fn words(language: SourceLanguage, text: &str) -> Vec<&str> {
    tokenize(language, text).into_iter().map(|token| token.text).collect()
}

#[test]
fn literals_and_comments_are_those_of_their_language() {
    for (language, text, expected) in [
        (
            SourceLanguage::Python,
            "a = f'x' # '\n'''b\n''' == 1.5",
            &["a", "=", "f'x'", "'''b\n'''", "==", "1.5"][..],
        ),
        (
            SourceLanguage::Rust,
            "fn f<'a>() { r#\"x\"y\"# } // \"",
            &["fn", "f", "<", "'", "a", ">", "(", ")", "{", "r#\"x\"y\"#", "}"],
        ),
        (SourceLanguage::Rust, "'a' == b'\\'' 0..2 1e-5", &["'a'", "==", "b'\\''", "0", "..", "2", "1e-5"]),
        (SourceLanguage::Rust, "\"a\nb\" /* c /* d */ e */ f", &["\"a\nb\"", "f"]),
        (SourceLanguage::C, "/* a /* b */ c", &["c"]),
        (SourceLanguage::C, "/*/ a */ b", &["b"]),
        (SourceLanguage::JavaScript, "`a\n${b}` !== \"\\\"\" /* ' */", &["`a\n${b}`", "!==", "\"\\\"\""]),
        (SourceLanguage::Go, "x := `\\` + 'y'", &["x", ":=", "`\\`", "+", "'y'"]),
        (SourceLanguage::C, "a->b != 0x1f;", &["a", "->", "b", "!=", "0x1f", ";"]),
        (SourceLanguage::Java, "\"\"\"\na\"\"\" + \"b\"", &["\"\"\"\na\"\"\"", "+", "\"b\""]),
    ] {
        assert_eq!(words(language, text), expected, "{text}");
    }
}

#[test]
fn an_open_literal_does_not_hide_the_next_line() {
    assert_eq!(words(SourceLanguage::C, "it's\nok"), ["it", "'", "s", "ok"]);
    assert_eq!(words(SourceLanguage::Python, "é = '\n1"), ["é", "=", "'", "1"]);
}

/// Each quote of this file would search the rest of it for its end.
#[test]
fn a_file_of_open_quotes_takes_linear_time() {
    let text = "\"\\".repeat(1 << 17);
    assert_eq!(tokenize(SourceLanguage::Rust, &text).len(), text.len());
}

#[test]
fn brackets_are_matched() {
    let tokens = tokenize(SourceLanguage::Go, "f(a[0], {b}) + (c");
    assert_eq!(closing_bracket(&tokens, 1), Some(10));
    assert_eq!(closing_bracket(&tokens, 12), None);
}
