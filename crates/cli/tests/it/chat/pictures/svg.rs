//! A screen as a picture whose text can be selected.

use std::fmt::Write as _;

use vt100::{Cell, Color, Screen};

/// Size of a cell, in units of the picture.
const CELL: (f64, f64) = (8.4, 18.0);

/// Between the border and the text.
const MARGIN: f64 = 12.0;

const BACKGROUND: &str = "#1b1e24";
const FOREGROUND: &str = "#d8dce4";

/// The sixteen colours of a terminal, readable on the background.
const COLOURS: [&str; 16] = [
    "#4a505c", "#f07a80", "#8ccf7e", "#e5c07b", "#78b0f0", "#cf94e0", "#6cc7d0", "#c8ccd4", "#8a919e",
    "#ff9a9f", "#a8e69a", "#f5d898", "#98c8ff", "#e4b0f4", "#90e0e8", "#ffffff",
];

/// Look of adjacent cells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Look {
    fill: String,
    behind: Option<String>,
    style: String,
}

/// Draws what a screen shows, without the empty rows at its end.
pub(super) fn draw(screen: &Screen, title: &str) -> String {
    let (rows, columns) = screen.size();
    let (rows, columns) = (rows.get(), columns.get());
    let is_filled = |row: &u16| (0..columns).any(|column| screen.cell(*row, column).is_some_and(is_visible));
    let height = (0..rows).rev().find(is_filled).map_or(1, |row| row + 1);
    let (width, tall) =
        (f64::from(columns) * CELL.0 + 2.0 * MARGIN, f64::from(height) * CELL.1 + 2.0 * MARGIN);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {tall:.0}\" width=\"{width:.0}\" \
         role=\"img\" font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\" \
         font-size=\"14\" fill=\"{FOREGROUND}\">\n<title>{}</title>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{BACKGROUND}\"/>\n",
        escaped(title)
    );
    for row in 0..height {
        draw_row(screen, row, columns, &mut out);
    }
    out.push_str("</svg>\n");
    out
}

/// Draws the backgrounds of a row, and then its text.
fn draw_row(screen: &Screen, row: u16, columns: u16, out: &mut String) {
    let runs = runs(screen, row, columns);
    let left = |column: u16| MARGIN + f64::from(column) * CELL.0;
    let top = MARGIN + f64::from(row) * CELL.1;
    for (column, width, look, _) in &runs {
        if let Some(behind) = &look.behind {
            let _ = writeln!(
                out,
                "<rect x=\"{:.1}\" y=\"{top:.0}\" width=\"{:.1}\" height=\"{:.0}\" fill=\"{behind}\"/>",
                left(*column),
                f64::from(*width) * CELL.0,
                CELL.1
            );
        }
    }
    let _ = write!(out, "<text y=\"{:.0}\" xml:space=\"preserve\">", top + 13.0);
    for (column, width, look, text) in &runs {
        let length = f64::from(*width) * CELL.0;
        let _ = write!(out, "<tspan x=\"{:.1}\" textLength=\"{length:.1}\"", left(*column));
        if look.fill != FOREGROUND {
            let _ = write!(out, " fill=\"{}\"", look.fill);
        }
        let _ = write!(out, "{}>{}</tspan>", look.style, escaped(text));
    }
    out.push_str("</text>\n");
}

/// Returns adjacent cells of one look: first column, number of columns, look, and text.
fn runs(screen: &Screen, row: u16, columns: u16) -> Vec<(u16, u16, Look, String)> {
    let cell = |column: u16| screen.cell(row, column);
    let last = (0..columns).rev().find(|column| cell(*column).is_some_and(is_visible));
    let mut runs: Vec<(u16, u16, Look, String)> = Vec::new();
    for column in 0..last.map_or(0, |column| column + 1) {
        let Some(cell) = cell(column) else { continue };
        let text = match cell.contents() {
            _ if cell.is_wide_continuation() => "",
            "" => " ",
            text => text,
        };
        match runs.last_mut() {
            Some((_, width, look, before)) if cell.is_wide_continuation() || *look == look_of(cell) => {
                *width += 1;
                before.push_str(text);
            }
            _ => runs.push((column, 1, look_of(cell), text.to_owned())),
        }
    }
    runs
}

fn is_visible(cell: &Cell) -> bool {
    !cell.contents().trim().is_empty() || cell.bgcolor() != Color::Default || cell.inverse()
}

fn look_of(cell: &Cell) -> Look {
    let (mut fill, mut behind) = (colour(cell.fgcolor()), colour(cell.bgcolor()));
    if cell.inverse() {
        (fill, behind) =
            (behind.or_else(|| Some(BACKGROUND.to_owned())), fill.or_else(|| Some(FOREGROUND.to_owned())));
    }
    let mut style = String::new();
    for (is_set, attribute) in [
        (cell.bold(), " font-weight=\"bold\""),
        (cell.dim(), " fill-opacity=\"0.65\""),
        (cell.italic(), " font-style=\"italic\""),
        (cell.underline(), " text-decoration=\"underline\""),
    ] {
        if is_set {
            style.push_str(attribute);
        }
    }
    Look { fill: fill.unwrap_or_else(|| FOREGROUND.to_owned()), behind, style }
}

/// Returns a colour; `None` for the default. The conversation uses no others of the 256 than the first sixteen.
fn colour(colour: Color) -> Option<String> {
    match colour {
        Color::Default => None,
        Color::Idx(index) => COLOURS.get(usize::from(index)).map(|colour| (*colour).to_owned()),
        Color::Rgb(red, green, blue) => Some(format!("#{red:02x}{green:02x}{blue:02x}")),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Returns the rows of a picture as text, without what may differ from run to run: times, cost, and the frame of a spinner.
pub(super) fn rows(picture: &str) -> Vec<String> {
    picture.lines().filter(|line| line.starts_with("<text")).map(|line| settled(&content(line))).collect()
}

/// Returns the text of a line of a picture.
fn content(line: &str) -> String {
    let text: String = line.split('<').filter_map(|piece| Some(piece.split_once('>')?.1)).collect();
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

fn settled(row: &str) -> String {
    let is_frame = |character: char| ('\u{2801}'..='\u{28ff}').contains(&character);
    let words = row.split(' ').collect::<Vec<_>>();
    let is_unit = |word: &str| matches!(word.trim_end_matches([',', ')', '·']), "s" | "ms" | "min");
    let settled = words.iter().enumerate().map(|(index, word)| {
        let is_number = word.trim_start_matches('(').parse::<f64>().is_ok();
        let is_time = is_number && words.get(index + 1).is_some_and(|next| is_unit(next));
        match word.strip_prefix('$') {
            Some(_) => "$0".to_owned(),
            None if is_time => "0".to_owned(),
            None => word.replace(is_frame, "⠋"),
        }
    });
    settled.collect::<Vec<_>>().join(" ")
}
