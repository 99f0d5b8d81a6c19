//! Report as one page of HTML.

use std::fmt::Write as _;

use pintle_workflow::report::escape_markup;

use super::RunReport;

/// Style, which follows the light or dark setting of the reader.
const STYLE: &str = include_str!("style.css");

/// Returns the page.
pub(super) fn render(report: &RunReport<'_>) -> String {
    let title = format!("{} with {}", report.configuration.suite, report.configuration.agent);
    let title = escape_markup(&title);
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
    );
    let figures = report.figures().into_iter();
    let figures = figures.map(|(name, value)| row(name, &[("text", value)]));
    page.push_str(&table("Figures", "", figures));
    let ends = report.endings.iter().map(|(ending, number)| row(ending, &[("number", number.to_string())]));
    page.push_str(&table("Ends", "", ends));
    let attempts = report.attempts.iter().map(|attempt| {
        let class = if attempt.record.is_success() { "good" } else { "bad" };
        let cost = attempt.cost.map_or("–".to_owned(), |cost| format!("{cost:.2}"));
        row(
            &attempt.name(),
            &[
                ("", attempt.claim.name().to_owned()),
                (class, attempt.result()),
                ("number", cost),
                ("number", format!("{} s", attempt.wall_ms / 1_000)),
                ("text", attempt.reason.clone()),
            ],
        )
    });
    let head =
        "<tr><th>instance</th><th>agent</th><th>result</th><th>cost</th><th>time</th><th>reason</th></tr>\n";
    page.push_str(&table("Attempts", head, attempts));
    page.push_str("</body>\n</html>\n");
    page
}

fn table(name: &str, head: &str, rows: impl Iterator<Item = String>) -> String {
    let rows: String = rows.collect();
    format!("<h2>{name}</h2>\n<table aria-label=\"{name}\">\n{head}{rows}</table>\n")
}

/// Returns a row of a table: its name, and cells with their classes.
fn row(name: &str, cells: &[(&str, String)]) -> String {
    let mut row = format!("<tr><th scope=\"row\">{}</th>", escape_markup(name));
    for (class, text) in cells {
        let _ = write!(row, "<td class=\"{class}\">{}</td>", escape_markup(text));
    }
    row + "</tr>\n"
}
