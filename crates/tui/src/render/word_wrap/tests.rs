use super::*;

const PARAGRAPHS: &str = "# A heading that is rather longer than the window is\n\nThe quick brown fox jumps over the lazy dog, again and again.\n- a first item that is longer than the window\n  and goes on\n    - a nested item that is longer, too\n12. a numbered item that is longer\n> a quotation that is longer than the window\n\nEnd.\n\n    indented code that is longer than the window\n```rust\nfn main() { println!(\"longer than the window\"); }\n~~~\n```\nafter the code comes text that is wrapped\n| a | table that is longer than the window |\n";

#[test]
fn words_wrap_and_markdown_keeps_its_form() {
    insta::assert_snapshot!(wrap(PARAGRAPHS, Some(24)), @r#"
    # A heading that is
    rather longer than the
    window is

    The quick brown fox
    jumps over the lazy dog,
    again and again.
    - a first item that is
      longer than the window
      and goes on
        - a nested item that
          is longer, too
    12. a numbered item that
        is longer
    > a quotation that is
    > longer than the window

    End.

        indented code that is longer than the window
    ```rust
    fn main() { println!("longer than the window"); }
    ~~~
    ```
    after the code comes
    text that is wrapped
    | a | table that is longer than the window |
    "#);
    assert_eq!(wrap(PARAGRAPHS, None), PARAGRAPHS);
}

/// For any chunking and any width, all words are kept in order and the result equals that of the complete text.
#[test]
fn wrapping_does_not_depend_on_chunking() {
    let texts = [
        PARAGRAPHS,
        "日本語の文章は空白なしで続きます。次の文。",
        "a\tb  c   d\n\n\n  e",
        "https://example.com/a/long/one x",
    ];
    for text in texts {
        for columns in 6..90 {
            let whole = wrap(text, Some(columns));
            for size in [1, 2, 7] {
                let mut wrapper = WordWrapper::default();
                wrapper.set_columns(Some(columns));
                let characters: Vec<char> = text.chars().collect();
                let pieces =
                    characters.chunks(size).map(|piece| wrapper.push(&piece.iter().collect::<String>()));
                let output = pieces.collect::<String>() + &wrapper.end();
                assert_eq!(output, whole, "{columns}");
            }
            let compact = |text: &str| text.replace([' ', '\t', '\n', '>'], "");
            assert_eq!(compact(&whole), compact(text), "{columns}");
        }
    }
}

/// Returns the rows on a terminal. Rows wrapped by the terminal itself are joined.
fn rows(text: &str, columns: usize) -> Vec<String> {
    let columns = u16::try_from(columns + 1).unwrap().try_into().unwrap();
    let mut terminal = vt100::Parser::new(40.try_into().unwrap(), columns, 0);
    terminal.process(text.replace('\n', "\r\n").as_bytes());
    terminal.screen().contents().lines().map(str::to_owned).collect()
}

#[test]
fn only_overlong_words_are_broken() {
    let text = "The quick brown fox (which is quick) jumps over the extraordinarily lazy dog.";
    for columns in 8..90 {
        let rows = rows(&wrap(text, Some(columns)), columns);
        assert_eq!(rows.join(" "), text, "{columns}");
        for row in &rows {
            let is_wide = row.split(' ').next().is_some_and(|word| width::columns(word) > columns);
            assert!(width::columns(row) <= columns || is_wide, "{columns}: {row}");
        }
        // No row has space for the next word.
        for pair in rows.windows(2) {
            let next = pair[1].split(' ').next().unwrap();
            assert!(
                width::columns(&pair[0]) % (columns + 1) + 1 + width::columns(next) > columns,
                "{columns}: {pair:?}"
            );
        }
    }
}

#[test]
fn cjk_text_breaks_between_characters() {
    assert_eq!(wrap("日本語です。終", Some(6)), "日本語\nです。\n終");
    assert_eq!(wrap("ab日本 👩\u{200d}👧x", Some(6)), "ab日本\n👩\u{200d}👧x");
}

/// The forms of lines are those of [`Block`].
#[test]
fn inline_code_bullets_and_quotes_have_their_form() {
    let cases = [
        ("```x``` and more words\nwords after it", 12, "```x``` and\nmore words\nwords after\nit"),
        ("• an item of a list", 12, "• an item of\n  a list"),
        (">quoted words", 10, ">quoted\n> words"),
    ];
    for (text, columns, expected) in cases {
        assert_eq!(wrap(text, Some(columns)), expected);
    }
}
