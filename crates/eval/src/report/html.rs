//! Report as one page of HTML.

use std::fmt::Write as _;

use pintle_workflow::report::escape_markup;

use super::RunReport;

/// Style, which follows the light or dark setting of the reader.
const STYLE: &str = "\
:root{color-scheme:light dark;--line:#c9ccd1;--good:#146c2e;--bad:#b3261e}\
@media(prefers-color-scheme:dark){:root{--line:#4a4d52;--good:#7ddc93;--bad:#ff8a80}}\
body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}\
table{border-collapse:collapse;width:100%;margin:1rem 0}\
th,td{border-bottom:1px solid var(--line);padding:.3rem .6rem;text-align:left;vertical-align:top;overflow-wrap:anywhere}\
td.number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}\
.good{color:var(--good)}.bad{color:var(--bad)}";

/// Returns the page.
pub(super) fn render(report: &RunReport<'_>) -> String {
    let title = format!("{} with {}", report.configuration.suite, report.configuration.agent);
    let title = escape_markup(&title);
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n\
         <table aria-label=\"Figures\">\n"
    );
    for (name, value) in report.figures() {
        let _ = writeln!(page, "<tr><th scope=\"row\">{name}</th><td>{}</td></tr>", escape_markup(&value));
    }
    page.push_str("</table>\n<h2>Ends</h2>\n<table aria-label=\"Ends\">\n");
    for (ending, number) in &report.endings {
        let _ = writeln!(
            page,
            "<tr><th scope=\"row\">{}</th><td class=\"number\">{number}</td></tr>",
            escape_markup(ending)
        );
    }
    page.push_str(
        "</table>\n<h2>Attempts</h2>\n<table aria-label=\"Attempts\">\n<tr><th>instance</th><th>agent</th>\
         <th>hidden tests</th><th>cost</th><th>time</th><th>reason</th></tr>\n",
    );
    for row in &report.attempts {
        let class = if row.solved { "good" } else { "bad" };
        let cost = row.cost.map_or("–".to_owned(), |cost| format!("{cost:.2}"));
        let _ = writeln!(
            page,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td class=\"{class}\">{} of {}</td>\
             <td class=\"number\">{cost}</td><td class=\"number\">{} s</td><td>{}</td></tr>",
            escape_markup(&row.name()),
            row.claim.name(),
            row.passed,
            row.tests,
            row.wall_ms / 1_000,
            escape_markup(&row.reason)
        );
    }
    page.push_str("</table>\n</body>\n</html>\n");
    page
}
