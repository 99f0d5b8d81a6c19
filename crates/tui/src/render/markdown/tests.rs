use proptest::prelude::*;

use super::*;
use crate::render::line::Colour;

const COLUMNS: usize = 40;

fn rows(text: &str) -> Vec<StyledLine> {
    let mut markdown = Markdown::default();
    let mut rows = markdown.push(text, COLUMNS);
    rows.extend(markdown.end(COLUMNS));
    rows
}

fn shown(text: &str) -> String {
    rows(text).iter().map(|row| row.text() + "\n").collect()
}

#[test]
fn blocks_are_shown() {
    insta::assert_snapshot!(shown(
        "# Title #\n\nA paragraph that is longer than one row, and is broken at its words.\n\n\
         - first item, which is also longer than one row\n  - nested\n1. one\n10) ten\n- [ ] open\n- [x] done\n\n\
         > quoted text that is longer than one row of the window\n> - item\n\n---\n\n\
         ```rust\nfn main() {}\n```\n\n    indented code\n\n1986. A great year\n#no heading\n"
    ), @"
    Title

    A paragraph that is longer than one row,
    and is broken at its words.

    • first item, which is also longer than
      one row
      • nested
    1. one
    10) ten
    ☐ open
    ☑ done

    │ quoted text that is longer than one
    │ row of the window
    │ • item

    ────────────────────────────────────────

    ```rust
    fn main() {}
    ```

        indented code

    1986. A great year
    #no heading
    ");
}

#[test]
fn marks_within_a_line_become_looks() {
    let cases: &[(&str, &str)] = &[
        ("a **bold** and *slanted* `code` ~~gone~~", "a bold and slanted code gone"),
        ("[text](https://example.com/a)", "text (https://example.com/a)"),
        ("<https://example.com/>", "https://example.com/"),
        ("![chart](a.png)", "[image: chart] (a.png)"),
        (r"\*no emphasis\* and 2 * 3 * 4", "*no emphasis* and 2 * 3 * 4"),
        ("a < b && c &lt; d <br>", "a < b && c < d <br>"),
        ("snake_case_name and __bold__", "snake_case_name and bold"),
        ("&#27;[2J", "[2J"),
    ];
    for (text, expected) in cases {
        assert_eq!(rows(text)[0].text(), *expected, "{text:?}");
    }
    let line = &rows("a **b** `c`")[0];
    let faces: Vec<_> = line.spans().iter().map(|span| (span.text.as_str(), span.face)).collect();
    let code = Face::coloured(Colour::Cyan);
    assert_eq!(faces, [("a ", Face::PLAIN), ("b", Face::BOLD), (" ", Face::PLAIN), ("c", code)]);
}

#[test]
fn tables_are_laid_out() {
    insta::assert_snapshot!(shown(
        "| name | meaning |\n|---|:--|\n| `a` | the first letter of the alphabet, as everybody knows |\n| b | `x|y` |\n\nAfter.\n"
    ), @"
    name  meaning
    ────  ──────────────────────────────────
    a     the first letter of the alphabet,
          as everybody knows
    b     x|y

    After.
    ");
}

#[test]
fn code_is_coloured() {
    let rows = rows("```rust\n// note\nlet x = \"a\";\n```\n");
    let faces =
        |row: &StyledLine| row.spans().iter().map(|span| (span.text.clone(), span.face)).collect::<Vec<_>>();
    assert_eq!(faces(&rows[1]), [("// note".to_owned(), Face::DIM)]);
    let coloured = faces(&rows[2]);
    assert!(coloured.contains(&("let".to_owned(), Face::coloured(Colour::Magenta))), "{coloured:?}");
    assert!(coloured.contains(&("\"a\"".to_owned(), Face::coloured(Colour::Green))), "{coloured:?}");
    let unknown = shown("~~~unknown\nlet\tx\n~~~\n");
    assert_eq!(unknown, "~~~unknown\nlet x\n~~~\n");
}

#[test]
fn code_that_waits_for_its_grammar_is_shown_without_colours() {
    let mut markdown = Markdown::default();
    markdown.push("```lua\n", COLUMNS);
    markdown.code.as_mut().unwrap().waiting = vec!["local a = 1".to_owned()];
    markdown.push("local b", COLUMNS);
    let preview = markdown.preview(COLUMNS);
    assert_eq!(preview.iter().map(StyledLine::text).collect::<Vec<_>>(), ["local a = 1", "local b"]);
    assert_eq!(preview[0].spans().len(), 1);
    let rows = markdown.end(COLUMNS);
    assert_eq!(rows.iter().map(StyledLine::text).collect::<Vec<_>>(), ["local a = 1", "local b"]);
    assert!(rows.iter().all(|row| row.spans().len() > 1), "{rows:?}");
    assert!(Highlighter::new("lua").is_ready());
}

#[test]
fn what_has_not_ended_is_shown_as_it_would_look() {
    let mut markdown = Markdown::default();
    assert_eq!(markdown.push("one\ntwo **th", COLUMNS).len(), 1);
    assert_eq!(markdown.preview(COLUMNS)[0].text(), "two **th");
    markdown.push("ree** four", COLUMNS);
    assert_eq!(markdown.preview(COLUMNS)[0].text(), "two three four");
    assert_eq!(markdown.end(COLUMNS)[0].text(), "two three four");
    assert_eq!(markdown.preview(COLUMNS), []);
    markdown.push("| a |\n|---|\n| b", COLUMNS);
    assert_eq!(markdown.preview(COLUMNS).iter().map(StyledLine::text).collect::<Vec<_>>(), ["a", "─", "b"]);
}

#[test]
fn a_line_without_an_end_takes_no_more_than_its_limit() {
    let mut markdown = Markdown::default();
    let mut text = String::new();
    for _ in 0..10_000 {
        text.extend(markdown.push("word ", COLUMNS).iter().map(StyledLine::text));
        assert!(markdown.pending.len() <= MAX_LINE);
    }
    text.extend(markdown.end(COLUMNS).iter().map(StyledLine::text));
    assert_eq!(text.matches("word").count(), 10_000);
}

proptest! {
    /// However the text is cut, the rows are the same; none controls the terminal, is too wide, or is lost.
    #[test]
    fn rows_do_not_depend_on_pieces(
        lines in proptest::collection::vec(
            prop_oneof![
                "[a-z *_`|>#-]{0,30}",
                Just("```rust".to_owned()),
                Just("```".to_owned()),
                Just("| a | b |".to_owned()),
                Just("|---|---|".to_owned()),
                Just("- item \x1b[2J \u{202e} 日本語\t👩\u{200d}👧".to_owned()),
                Just("1. [x](javascript:y) ![z](a)".to_owned()),
            ],
            0..12,
        ),
        cut in 1_usize..9,
        columns in 4_usize..60,
    ) {
        let text = lines.join("\n");
        let formatted = |pieces: &mut dyn Iterator<Item = String>| {
            let mut markdown = Markdown::default();
            let mut rows: Vec<StyledLine> =
                pieces.flat_map(|piece| {
                    let rows = markdown.push(&piece, columns);
                    markdown.preview(columns);
                    rows
                }).collect();
            rows.extend(markdown.end(columns));
            rows
        };
        let whole = formatted(&mut [text.clone()].into_iter());
        let characters: Vec<char> = text.chars().collect();
        let pieces = formatted(&mut characters.chunks(cut).map(|piece| piece.iter().collect()));
        prop_assert_eq!(&pieces, &whole);
        for row in &whole {
            prop_assert!(row.columns() <= columns, "{:?}", row.text());
            let shown = row.text();
            let is_hidden = |character: char| character.is_control() || character == '\u{202e}';
            prop_assert!(!shown.contains(is_hidden), "{:?}", shown);
        }
        let letters = |text: &str| text.chars().filter(char::is_ascii_lowercase).count();
        let kept: usize = whole.iter().map(|row| letters(&row.text())).sum();
        prop_assert!(kept >= letters(&text), "{} of {}", kept, letters(&text));
    }
}
