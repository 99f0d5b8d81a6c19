//! Draws a screen as SVG: one element of text for each run of cells that look alike.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthStr as _;
use vt100::{Cell, Color, Screen};

/// Size of a cell, in pixels.
const CELL: (f64, f64) = (8.4, 18.0);

/// Space around the cells, in pixels.
const MARGIN: f64 = 14.0;

const FOREGROUND: &str = "#d7dae0";
const BACKGROUND: &str = "#1b1e27";

/// Colours of the terminal, the bright ones last.
const PALETTE: [&str; 16] = [
    "#2b2f3a", "#f07178", "#a6cc70", "#e6b455", "#7aa2f7", "#c792ea", "#5fc9d6", "#c3c8d4", "#5c6373",
    "#ff8b92", "#bfe08a", "#ffcf73", "#9dbcff", "#d9abf5", "#83e0ea", "#ffffff",
];

/// Look of a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Look {
    foreground: String,
    background: Option<String>,
    is_bold: bool,
    is_dim: bool,
    is_italic: bool,
    is_underlined: bool,
}

/// Draws the screen, without the blank rows at its end.
pub(super) fn svg(screen: &Screen, title: &str) -> String {
    let (all_rows, columns) = screen.size();
    let (all_rows, columns) = (all_rows.get(), columns.get());
    let is_blank = |row: u16| (0..columns).all(|column| text_of(screen.cell(row, column)).trim().is_empty());
    let (cursor_row, cursor_column) = screen.cursor_position();
    let last = (0..all_rows).rev().find(|row| !is_blank(*row)).unwrap_or_default().max(cursor_row);
    let (width, height) =
        (f64::from(columns) * CELL.0 + 2.0 * MARGIN, f64::from(last + 1) * CELL.1 + 2.0 * MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" \
         font-family=\"ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace\" font-size=\"14\" \
         xml:space=\"preserve\">\n<title>{}</title>\n\
         <rect width=\"{width:.0}\" height=\"{height:.0}\" rx=\"8\" fill=\"{BACKGROUND}\"/>\n",
        escaped(title)
    );
    if !screen.hide_cursor() {
        rectangle(&mut svg, cursor_row, cursor_column, 1, "#8b93a7");
    }
    for row in 0..=last {
        draw_row(&mut svg, screen, row, columns);
    }
    svg + "</svg>\n"
}

fn draw_row(svg: &mut String, screen: &Screen, row: u16, columns: u16) {
    let mut column = 0;
    while column < columns {
        let Some(look) = look_of(screen.cell(row, column)) else { return };
        let (start, mut text) = (column, String::new());
        while column < columns && look_of(screen.cell(row, column)).as_ref() == Some(&look) {
            if !screen.cell(row, column).is_some_and(Cell::is_wide_continuation) {
                text.push_str(text_of(screen.cell(row, column)));
            }
            column += 1;
        }
        if let Some(background) = &look.background {
            rectangle(svg, row, start, column - start, background);
        }
        draw_run(svg, (row, start), &text, &look);
    }
}

fn draw_run(svg: &mut String, (row, column): (u16, u16), text: &str, look: &Look) {
    let written = text.trim_end();
    let shown = written.trim_start();
    if shown.is_empty() {
        return;
    }
    let blanks = written.chars().count() - shown.chars().count();
    let x = MARGIN + (f64::from(column) + blanks as f64) * CELL.0;
    let y = MARGIN + (f64::from(row) + 0.75) * CELL.1;
    let attributes: String = [
        (look.is_bold, " font-weight=\"bold\""),
        (look.is_dim, " fill-opacity=\"0.6\""),
        (look.is_italic, " font-style=\"italic\""),
        (look.is_underlined, " text-decoration=\"underline\""),
    ]
    .into_iter()
    .filter_map(|(has, attribute)| has.then_some(attribute))
    .collect();
    let foreground = &look.foreground;
    let shown = steady(shown);
    // Whatever font a reader has, columns stay below each other.
    let length = shown.width() as f64 * CELL.0;
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" textLength=\"{length:.1}\" fill=\"{foreground}\"{attributes}>{}</text>",
        escaped(&shown)
    );
}

/// Returns the text with the same times and the same turning sign whenever it is drawn. How long something has been running
/// is left out.
fn steady(text: &str) -> String {
    let is_turning = |character: &char| ('\u{2801}'..='\u{28ff}').contains(character);
    let text: String = text.chars().map(|c| if is_turning(&c) { '⠹' } else { c }).collect();
    let words: Vec<&str> = text.split(' ').collect();
    match words.as_slice() {
        [number, "ms" | "s"] if number.parse::<f64>().is_ok() => "12 ms".to_owned(),
        [before @ .., number, "s"] if number.parse::<u64>().is_ok() => before.join(" "),
        _ => text,
    }
}

fn rectangle(svg: &mut String, row: u16, column: u16, columns: u16, colour: &str) {
    let (x, y) = (MARGIN + f64::from(column) * CELL.0, MARGIN + f64::from(row) * CELL.1);
    let (width, height) = (f64::from(columns) * CELL.0, CELL.1);
    let _ = writeln!(
        svg,
        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{colour}\"/>"
    );
}

fn text_of(cell: Option<&Cell>) -> &str {
    cell.map(Cell::contents).filter(|text| !text.is_empty()).unwrap_or(" ")
}

fn look_of(cell: Option<&Cell>) -> Option<Look> {
    let cell = cell?;
    let foreground = colour(cell.fgcolor());
    let background = colour(cell.bgcolor());
    let (foreground, background) = match cell.inverse() {
        true => (
            background.unwrap_or_else(|| BACKGROUND.to_owned()),
            Some(foreground.unwrap_or_else(|| FOREGROUND.to_owned())),
        ),
        false => (foreground.unwrap_or_else(|| FOREGROUND.to_owned()), background),
    };
    Some(Look {
        foreground,
        background,
        is_bold: cell.bold(),
        is_dim: cell.dim(),
        is_italic: cell.italic(),
        is_underlined: cell.underline(),
    })
}

fn colour(colour: Color) -> Option<String> {
    /// Steps of a colour in the cube of 216.
    const STEPS: [u8; 6] = [0, 95, 135, 175, 215, 255];
    let step = |number: u8| STEPS.get(usize::from(number % 6)).copied().unwrap_or_default();
    let hexadecimal = |[red, green, blue]: [u8; 3]| format!("#{red:02x}{green:02x}{blue:02x}");
    match colour {
        Color::Default => None,
        Color::Idx(index @ 232..) => Some(hexadecimal([8 + (index - 232) * 10; 3])),
        Color::Idx(index @ 16..) => {
            let index = index - 16;
            Some(hexadecimal([step(index / 36), step(index / 6), step(index)]))
        }
        Color::Idx(index) => PALETTE.get(usize::from(index)).map(|colour| (*colour).to_owned()),
        Color::Rgb(red, green, blue) => Some(hexadecimal([red, green, blue])),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
