use proptest::prelude::*;

use super::*;
use crate::render::StyledLine;

const COLUMNS: usize = 20;

fn typed(text: &str) -> Editor {
    let mut editor = Editor::default();
    for character in text.chars() {
        match character {
            '\n' => editor.key(Key::ctrl('j'), COLUMNS),
            _ => editor.key(Key::plain(KeyCode::Char(character)), COLUMNS),
        };
    }
    editor
}

fn press(editor: &mut Editor, keys: &[Key]) {
    for key in keys {
        assert_eq!(editor.key(*key, COLUMNS), EditorKeyEffect::Yes, "{key:?}");
    }
}

/// Returns the text with `|` at the cursor.
fn shown(editor: &Editor) -> String {
    let (before, behind) = editor.elements.split_at(editor.cursor);
    let text = |elements: &[Element]| elements.iter().map(Element::text).collect::<String>();
    format!("{}|{}", text(before), text(behind))
}

fn plain(code: KeyCode) -> Key {
    Key::plain(code)
}

#[test]
fn keys_move_and_edit() {
    use KeyCode::{Backspace, Delete, Down, End, Home, Left, Right, Up};
    let cases: &[(&str, &[Key], &str)] = &[
        ("abc", &[plain(Left), plain(Char('x'))], "abx|c"),
        ("abc", &[plain(Home), plain(Delete)], "|bc"),
        ("abc", &[plain(Backspace)], "ab|"),
        ("one two", &[Key::alt('b')], "one |two"),
        ("one two", &[Key::alt('b'), Key::alt('b'), Key::alt('f')], "one| two"),
        ("one two", &[plain(Left).with_ctrl(), plain(Right).with_ctrl()], "one two|"),
        ("one two", &[Key::ctrl('w')], "one |"),
        ("one  ", &[Key::ctrl('w')], "|"),
        ("one two", &[Key::ctrl('a'), Key::alt('d')], "| two"),
        ("one\ntwo", &[Key::ctrl('u')], "one\n|"),
        ("one\ntwo", &[plain(Up), plain(Home), Key::ctrl('k')], "|\ntwo"),
        ("one\ntwo", &[plain(Up), plain(End), Key::ctrl('k')], "one|two"),
        ("one\ntwo", &[plain(Up), plain(Home), plain(Down), plain(Char('x'))], "one\nx|two"),
        ("one two", &[Key::ctrl('w'), Key::ctrl('w'), Key::ctrl('y')], "one two|"),
        ("one two", &[Key::ctrl('w'), plain(Left), Key::ctrl('y')], "onetwo| "),
        ("abc", &[plain(KeyCode::Enter).with_shift()], "abc\n|"),
        ("one two", &[Key::ctrl('_')], "one |"),
        ("one two", &[Key::ctrl('u'), Key::ctrl('_')], "one two|"),
        ("e", &[plain(Char('\u{301}')), plain(Left), plain(Char('x'))], "x|e\u{301}"),
        ("👩", &[plain(Char('\u{200d}')), plain(Char('👧')), plain(Backspace)], "|"),
        ("a\nb", &[plain(Home).with_ctrl(), plain(Char('x'))], "x|a\nb"),
    ];
    for (text, keys, expected) in cases {
        let mut editor = typed(text);
        press(&mut editor, keys);
        assert_eq!(shown(&editor), *expected, "{text:?} {keys:?}");
    }
}

use KeyCode::Char;

#[test]
fn rows_are_moved_between_at_the_same_column() {
    let mut editor = typed("one two\nx\nthree four");
    press(&mut editor, &[plain(KeyCode::Up), plain(KeyCode::Up)]);
    assert_eq!(shown(&editor), "one two|\nx\nthree four");
    assert_eq!(editor.key(plain(KeyCode::Up), COLUMNS), EditorKeyEffect::Above);
    press(&mut editor, &[plain(KeyCode::Down), plain(KeyCode::Down)]);
    assert_eq!(shown(&editor), "one two\nx\nthree f|our".replace("three f|our", "three four|"));
    assert_eq!(editor.key(plain(KeyCode::Down), COLUMNS), EditorKeyEffect::Below);
}

#[test]
fn long_lines_are_broken_into_rows() {
    let layout = typed("0123456789abcdefghijKLM\nend").layout(COLUMNS);
    let rows: Vec<String> = layout.rows.iter().map(StyledLine::text).collect();
    assert_eq!(rows, ["0123456789abcdefghij", "KLM", "end"]);
    assert_eq!(layout.cursor, (2, 3));
    let full = typed("0123456789abcdefghij").layout(COLUMNS);
    assert_eq!((full.rows.len(), full.cursor), (1, (0, 20)), "the cursor is behind the full row");
    let wide = typed("日本語").layout(5);
    assert_eq!(wide.rows.iter().map(StyledLine::text).collect::<Vec<_>>(), ["日本", "語"]);
    assert_eq!(wide.cursor, (1, 2));
}

#[test]
fn large_pastes_are_folded_and_deleted_as_one() {
    let text = "line\n".repeat(120);
    let mut editor = typed("see ");
    editor.paste(&text);
    assert_eq!(editor.layout(80).rows[0].text(), "see [pasted 120 lines]");
    assert_eq!(editor.text(), format!("see {text}"));
    press(&mut editor, &[plain(KeyCode::Backspace)]);
    assert_eq!(editor.text(), "see ");
    press(&mut editor, &[Key::ctrl('_')]);
    assert_eq!(editor.take(), format!("see {text}"));
    editor.paste(&"x".repeat(5_000));
    assert_eq!(editor.layout(80).rows[0].text(), "[pasted 5,000 bytes]");
    editor.set("");
    editor.paste("two\nlines");
    assert_eq!(editor.layout(80).rows.len(), 2, "a short paste is text");
}

#[test]
fn controls_in_text_are_shown_and_kept() {
    let mut editor = Editor::default();
    editor.paste("a\x1b[2Jb\tc\u{202e}");
    let layout = editor.layout(80);
    assert_eq!(layout.rows[0].text(), "a\\u{1b}[2Jb     c\\u{202e}");
    assert_eq!(editor.text(), "a\x1b[2Jb\tc\u{202e}");
}

#[test]
fn completions_replace_what_was_typed() {
    let mut editor = typed("read @src/ma now");
    press(&mut editor, &[Key::alt('b'), plain(KeyCode::Left)]);
    assert_eq!(editor.before_cursor(), "read @src/ma");
    editor.replace_before_cursor("src/ma".len(), "src/main.rs");
    assert_eq!(shown(&editor), "read @src/main.rs| now");
}

fn key() -> impl Strategy<Value = Key> {
    let codes = vec![
        KeyCode::Enter,
        KeyCode::Backspace,
        KeyCode::Up,
        KeyCode::Down,
        KeyCode::Left,
        KeyCode::Right,
        KeyCode::Home,
        KeyCode::End,
        KeyCode::Delete,
    ];
    let code = prop_oneof![
        2 => any::<char>().prop_map(Char),
        4 => proptest::sample::select("abdefhjkuwy_/ 日\u{301}\u{200d}👩👧\t".chars().collect::<Vec<_>>()).prop_map(Char),
        3 => proptest::sample::select(codes),
    ];
    (code, any::<[bool; 3]>(), 0_u8..3).prop_map(|(code, [shift, alt, ctrl], rare)| {
        let modifiers = if rare == 0 { Modifiers { shift, alt, ctrl } } else { Modifiers::default() };
        Key { code, modifiers }
    })
}

proptest! {
    /// The cursor stays in the text, rows keep to the width, and every row is shown.
    #[test]
    fn any_keys_leave_a_text_that_can_be_shown(
        keys in proptest::collection::vec(key(), 0..80),
        columns in 1_usize..30,
    ) {
        let mut editor = Editor::default();
        for key in keys {
            editor.key(key, columns);
            prop_assert!(editor.cursor <= editor.elements.len());
            let layout = editor.layout(columns);
            prop_assert!(layout.cursor.0 < layout.rows.len(), "{:?}", layout.cursor);
            prop_assert!(layout.cursor.1 <= columns, "{:?}", layout.cursor);
            for row in &layout.rows {
                prop_assert!(row.columns() <= columns, "{:?} in {columns}", row.text());
            }
            let joined: String = elements_of(&editor.text());
            prop_assert_eq!(joined, editor.text());
        }
    }
}

/// Returns a text taken to pieces and joined again.
fn elements_of(text: &str) -> String {
    buffer::elements(text).iter().map(Element::text).collect()
}
