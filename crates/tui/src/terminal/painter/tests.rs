use std::num::NonZero;

use proptest::prelude::*;

use super::*;
use crate::render::Face;

/// Terminal that shows what a painter writes. It does not reflow.
struct Terminal {
    parser: vt100::Parser,
    painter: Painter,
    /// Bytes of the newest update.
    newest: String,
}

const SCROLLBACK: usize = 10_000;

impl Terminal {
    fn new(rows: u16, columns: u16) -> Self {
        let size = TerminalSize { columns: columns.into(), rows: rows.into() };
        let screen = Screen { size, depth: Depth::Sixteen, reflows: false, moves: true };
        let parser = vt100::Parser::new(cells(rows), cells(columns), SCROLLBACK);
        Self { parser, painter: Painter::new(screen), newest: String::new() }
    }

    fn paint(&mut self, printed: &[&str], rows: &[&str], cursor: Option<(usize, usize)>) {
        let printed: Vec<StyledLine> = printed.iter().map(|line| StyledLine::plain(*line)).collect();
        let rows = rows.iter().map(|line| StyledLine::plain(*line)).collect();
        self.newest = self.painter.paint(&printed, &Region { rows, cursor });
        self.parser.process(self.newest.as_bytes());
    }

    fn resize(&mut self, rows: u16, columns: u16) {
        self.parser.screen_mut().set_size(cells(rows), cells(columns));
        let size = TerminalSize { columns: columns.into(), rows: rows.into() };
        self.newest = self.painter.resize(size);
        self.parser.process(self.newest.as_bytes());
    }

    /// Returns all rows, also those that were scrolled away, without the blank ones at the end.
    fn all(&mut self) -> Vec<String> {
        let (height, width) = self.parser.screen().size();
        self.parser.screen_mut().set_scrollback(SCROLLBACK);
        let mut rows = Vec::new();
        for offset in (0..=self.parser.screen().scrollback()).rev() {
            self.parser.screen_mut().set_scrollback(offset);
            let screen: Vec<String> = self.parser.screen().rows(0, width.get()).collect();
            if offset == 0 {
                rows.extend(screen);
            } else {
                rows.extend(screen.into_iter().take(1));
            }
        }
        assert!(rows.len() >= usize::from(height.get()));
        for row in &mut rows {
            row.truncate(row.trim_end().len());
        }
        while rows.last().is_some_and(String::is_empty) {
            rows.pop();
        }
        rows
    }
}

fn cells(count: u16) -> NonZero<u16> {
    NonZero::new(count).unwrap()
}

#[test]
fn lines_are_printed_above_the_region() {
    let mut terminal = Terminal::new(6, 20);
    terminal.paint(&[], &["> ", "status"], Some((0, 2)));
    terminal.paint(&["one", "two"], &["> h", "status"], Some((0, 3)));
    assert_eq!(terminal.all(), ["one", "two", "> h", "status"]);
    assert_eq!(terminal.parser.screen().cursor_position(), (2, 3));
    terminal.paint(&["three", "four", "five"], &["> h", "status"], Some((0, 3)));
    assert_eq!(terminal.all(), ["one", "two", "three", "four", "five", "> h", "status"]);
    assert_eq!(terminal.parser.screen().cursor_position(), (4, 3));
    terminal.paint(&[], &["> h"], None);
    assert_eq!(terminal.all(), ["one", "two", "three", "four", "five", "> h"]);
    assert!(terminal.parser.screen().hide_cursor());
}

#[test]
fn more_lines_than_the_screen_has_rows_are_all_printed() {
    let mut terminal = Terminal::new(5, 20);
    terminal.paint(&["first"], &["> ", "status"], Some((0, 2)));
    let lines: Vec<String> = (0..100).map(|number| format!("line {number}")).collect();
    let printed: Vec<&str> = lines.iter().map(String::as_str).collect();
    terminal.paint(&printed, &["> ", "status"], Some((0, 2)));
    let expected: Vec<&str> =
        ["first"].into_iter().chain(printed).chain(["> ", "status"].map(str::trim_end)).collect();
    assert_eq!(terminal.all(), expected);
}

#[test]
fn a_row_that_stays_is_not_written_again() {
    let mut terminal = Terminal::new(10, 40);
    terminal.paint(&[], &["working", "> hello", "status 1"], Some((1, 7)));
    terminal.paint(&[], &["working", "> hello", "status 2"], Some((1, 7)));
    assert!(
        !terminal.newest.contains("working") && !terminal.newest.contains("hello"),
        "{:?}",
        terminal.newest
    );
    terminal.paint(&["printed"], &["working", "> hello", "status 2"], Some((1, 7)));
    assert!(
        !terminal.newest.contains("working") && !terminal.newest.contains("status"),
        "{:?}",
        terminal.newest
    );
    terminal.paint(&[], &["working", "> hello", "status 2"], Some((1, 7)));
    assert_eq!(terminal.newest, "", "nothing has changed");
}

#[test]
fn the_region_grows_and_shrinks() {
    let mut terminal = Terminal::new(4, 20);
    terminal.paint(&["a", "b", "c"], &["> ", "status"], Some((0, 2)));
    terminal.paint(&[], &["x", "y", "> ", "status"], Some((2, 2)));
    assert_eq!(terminal.all(), ["a", "b", "c", "x", "y", ">", "status"]);
    terminal.paint(&["d"], &["> ", "status"], Some((0, 2)));
    assert_eq!(terminal.all(), ["a", "b", "c", "d", ">", "status"]);
    let erased = terminal.painter.erase();
    terminal.parser.process(erased.as_bytes());
    assert_eq!(terminal.all(), ["a", "b", "c", "d"]);
}

#[test]
fn a_reflowing_terminal_is_erased_from_where_the_region_begins() {
    let size = TerminalSize { columns: 40, rows: 10 };
    let mut painter = Painter::new(Screen { size, depth: Depth::Sixteen, reflows: true, moves: true });
    let rows = vec![
        StyledLine::plain("x".repeat(35)),
        StyledLine::plain("short"),
        StyledLine::plain("> ".to_owned() + &"y".repeat(30)),
    ];
    painter.paint(&[], &Region { rows, cursor: Some((2, 32)) });
    // The first row takes four rows of ten columns, the second one, and the cursor is in the fourth row of the third.
    let output = painter.resize(TerminalSize { columns: 10, rows: 10 });
    assert!(output.starts_with("\x1b[8A\r\x1b[J"), "{output:?}");
}

#[test]
fn tiny_screens_do_no_harm() {
    let mut terminal = Terminal::new(1, 1);
    terminal.paint(&["", ""], &[], None);
    terminal.resize(4, 20);
    terminal.paint(&["a"], &["> "], Some((0, 2)));
    terminal.resize(1, 1);
    terminal.paint(&[], &[], None);
    terminal.resize(24, 80);
    terminal.paint(&["b"], &["> "], Some((0, 2)));
    let all = terminal.all();
    assert_eq!(all.last().map(String::as_str), Some(">"));
}

fn text() -> impl Strategy<Value = String> {
    "[a-z日é]{0,6}"
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if pintle_test_conditions::is_full() { 200 } else { 50 }))]

    /// Whatever is painted, the terminal has all printed lines in order, then the region.
    #[test]
    fn no_line_is_lost_or_doubled(
        height in 4_u16..9,
        updates in proptest::collection::vec(
            (proptest::collection::vec(text(), 0..12), proptest::collection::vec(text(), 1..4), any::<bool>()),
            1..20,
        ),
    ) {
        let mut terminal = Terminal::new(height, 20);
        let mut expected: Vec<String> = Vec::new();
        for (number, (printed, region, bold)) in updates.iter().enumerate() {
            let printed: Vec<String> = printed.iter().map(|line| format!("p{line}")).collect();
            let region: Vec<String> = region.iter().map(|line| format!("r{line}")).collect();
            let face = if *bold { Face::BOLD } else { Face::PLAIN };
            let lines: Vec<StyledLine> = printed.iter().map(|line| StyledLine::new(line.clone(), face)).collect();
            let rows: Vec<StyledLine> = region.iter().map(|line| StyledLine::new(line.clone(), face)).collect();
            let cursor = Some((number % rows.len(), 1));
            let out = terminal.painter.paint(&lines, &Region { rows, cursor });
            terminal.parser.process(out.as_bytes());
            expected.extend(printed);
            let all = terminal.all();
            let complete: Vec<String> = expected.iter().chain(&region).cloned().collect();
            prop_assert_eq!(all, complete);
            let (row, column) = terminal.parser.screen().cursor_position();
            let at = terminal.parser.screen().rows(0, 20).nth(row.into());
            prop_assert_eq!((column, at), (1, region.get(number % region.len()).cloned()));
        }
    }
}
