//! A report as one self-contained page. Its sentences are the same as in the Markdown. The bill, the diffs and the timeline
//! follow.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{ReportBlock, ReportItem, ReportTable, TaskReport, TextSpan};
use crate::local::RecordedInput;
use crate::task::{StepId, StepKind, StepOutput, TaskInput, TaskSignal, WorkCost};

/// Maximum size of a rendered diff, in bytes.
const MAX_DIFF: usize = 512 << 10;

/// Beginning of the first line of each file in a patch.
const FILE: &str = "diff --git ";

/// The policy blocks all loads and scripts, even if a model's text contains markup.
const HEAD: &str = "<!doctype html>
<html lang=\"en\">
<head>
<meta charset=\"utf-8\">
<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">
<meta name=\"color-scheme\" content=\"light dark\">
";

const STYLE: &str = "<style>
:root { color-scheme: light dark; --line: #8886; --added: #1a7f3720; --removed: #cf222e20; }
@media (prefers-color-scheme: dark) { :root { --added: #3fb95040; --removed: #f8514940; } }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem; }
h1, h2, h3 { line-height: 1.25; }
h2 { margin-top: 2rem; border-bottom: 1px solid var(--line); }
code, pre { font: 0.875rem/1.4 ui-monospace, monospace; }
code { overflow-wrap: anywhere; }
p, li, td, code { white-space: pre-wrap; }
tbody th { font-weight: normal; }
pre { overflow-x: auto; border: 1px solid var(--line); padding: 0.5rem; }
blockquote { margin: 0; padding-left: 1rem; border-left: 4px solid var(--line); }
.wide { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; }
th, td { padding: 0.25rem 0.75rem; border: 1px solid var(--line); text-align: start; vertical-align: top; }
.numbers td, .numbers th + th { text-align: end; }
ins, del { text-decoration: none; display: block; }
ins { background: var(--added); }
del { background: var(--removed); }
</style>
";

/// Diff of a candidate, for a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CandidateDiff {
    /// Number of the candidate, from 0.
    pub candidate: usize,
    /// Diff, as git writes it.
    pub patch: String,
}

impl TaskReport<'_> {
    /// Returns the report as one HTML page without external resources, with these diffs (up to 512 KiB of each) and these
    /// inputs as its timeline. Text of models and users is escaped.
    #[must_use]
    pub fn to_html(&self, diffs: &[CandidateDiff], inputs: &[RecordedInput]) -> String {
        let title = escape_markup(&format!("{}: {}", self.title(), first_line(&self.contract.goal)));
        let mut page = format!("{HEAD}<title>{title}</title>\n{STYLE}</head>\n<body>\n<header>\n");
        page.extend(self.head_blocks().iter().map(render_block));
        page.push_str("</header>\n<main>\n");
        page.extend(self.body_blocks().iter().map(render_block));
        page.push_str(&self.render_bills(inputs));
        for diff in diffs {
            page.push_str(&self.render_diff(diff));
        }
        page.push_str(&render_timeline(inputs));
        page.push_str("</main>\n</body>\n</html>\n");
        page
    }

    fn render_diff(&self, diff: &CandidateDiff) -> String {
        let candidate = diff.candidate;
        let chosen = if self.is_chosen(candidate) { ", which was chosen" } else { "" };
        let name = format!("Diff of candidate {candidate}");
        let patch = without_binary(&diff.patch);
        let ends = (0..=MAX_DIFF.min(patch.len())).rev();
        let shown = ends.filter_map(|end| patch.get(..end)).next().unwrap_or_default();
        let mut text = format!(
            "<h2>{name}{chosen}</h2>\n<pre {}>{}</pre>\n",
            region_attributes(&name),
            diff_lines(shown)
        );
        if shown.len() < patch.len() {
            let _ = writeln!(
                text,
                "<p>The diff has {} bytes of text; {} of them are shown. <code>pintle task apply ID --candidate {candidate} --patch</code> prints all of it.</p>",
                patch.len(),
                shown.len()
            );
        }
        text
    }

    /// Returns the costs of each kind of step and of each candidate.
    fn render_bills(&self, inputs: &[RecordedInput]) -> String {
        let mut kinds = BTreeMap::<StepKind, WorkCost>::new();
        let mut candidates = BTreeMap::<Option<usize>, WorkCost>::new();
        for recorded in inputs {
            if let TaskInput::StepFinished(result) = &recorded.input {
                kinds.entry(result.step.kind).or_default().add(&result.spent);
                candidates.entry(result.step.payer()).or_default().add(&result.spent);
            }
        }
        if kinds.is_empty() {
            return String::new();
        }
        let kinds = kinds.iter().map(|(kind, spent)| (kind.to_string(), spent));
        let candidates = candidates.iter().map(|(candidate, spent)| (self.describe_payer(*candidate), spent));
        let by_kind = render_bill("Bill by kind of step", &["step", "cost", "tokens", "time"], kinds);
        let by_candidate = render_bill("Bill by candidate", &["for", "cost", "tokens", "time"], candidates);
        by_kind + &by_candidate
    }

    /// Returns the lane that a step was paid for, with a note whether the candidate was chosen: other candidates have costs
    /// too.
    fn describe_payer(&self, candidate: Option<usize>) -> String {
        let chosen = match candidate {
            Some(candidate) if self.is_chosen(candidate) => ", which was chosen",
            Some(_) if self.outcome.is_some() => ", which was not chosen",
            Some(_) | None => "",
        };
        lane_name(candidate) + chosen
    }
}

/// Returns costs as a table with their total.
fn render_bill<'a>(
    name: &'static str,
    head: &'static [&'static str],
    costs: impl Iterator<Item = (String, &'a WorkCost)>,
) -> String {
    let row = |name: String, spent: &WorkCost| {
        vec![name, spent.dollars(), spent.tokens.to_string(), format_duration(spent.millis)]
    };
    let (mut total, mut rows) = (WorkCost::default(), Vec::new());
    for (name, spent) in costs {
        total.add(spent);
        rows.push(row(name, spent));
    }
    rows.push(row("total".to_owned(), &total));
    let table = render_table(&ReportTable { name, head, rows, has_names: true, has_numbers: true });
    format!("<h3>{name}</h3>\n{table}")
}

/// Returns a patch with one sentence instead of the content of each binary file.
fn without_binary(patch: &str) -> String {
    let (mut text, mut is_binary) = (String::with_capacity(patch.len()), false);
    for line in patch.split_inclusive('\n') {
        is_binary &= !line.starts_with(FILE);
        if is_binary {
            continue;
        }
        // Lines of a text file have a prefix, so this line is not content.
        is_binary = line.trim_end() == "GIT binary patch";
        text.push_str(if is_binary { "The file is binary; its content is not shown.\n" } else { line });
    }
    text
}

/// Returns the lines of a patch, with marks for added and removed lines.
fn diff_lines(patch: &str) -> String {
    let (mut html, mut is_head) = (String::new(), true);
    for line in patch.lines() {
        is_head = (is_head || line.starts_with(FILE)) && !line.starts_with("@@ ");
        // After the head, such a line is content that starts with two signs, like a comment in SQL.
        let is_path = is_head && (line.starts_with("+++ ") || line.starts_with("--- "));
        let text = escape_markup(line);
        let _ = match line.as_bytes().first() {
            Some(b'+') if !is_path => write!(html, "<ins>{text}</ins>"),
            Some(b'-') if !is_path => write!(html, "<del>{text}</del>"),
            _ => writeln!(html, "{text}"),
        };
    }
    html
}

/// Returns the inputs of the task as a table, in order.
fn render_timeline(inputs: &[RecordedInput]) -> String {
    let rows: Vec<Vec<String>> = inputs.iter().map(timeline_row).collect();
    let head = &["time", "lane", "what", "took", "cost"];
    let table =
        render_table(&ReportTable { name: "Timeline", head, rows, has_names: false, has_numbers: false });
    format!("<h2>Timeline</h2>\n{table}")
}

fn timeline_row(recorded: &RecordedInput) -> Vec<String> {
    let (lane, what, spent) = match &recorded.input {
        TaskInput::StepStarted(step) => (step_lane(step), format!("{} begins", step.label()), None),
        TaskInput::StepFinished(result) => {
            let what = match &result.output {
                StepOutput::Failed { reason, .. } => format!("{} failed: {reason}", result.step.label()),
                StepOutput::AtLimit { .. } => format!("{} stops at its budget", result.step.label()),
                StepOutput::Baseline(_)
                | StepOutput::Anchor(_)
                | StepOutput::Work(_)
                | StepOutput::Evidence(_)
                | StepOutput::Review(_)
                | StepOutput::Plan(_)
                | StepOutput::StepEvidence(_) => format!("{} ends", result.step.label()),
            };
            (step_lane(&result.step), what, Some(&result.spent))
        }
        TaskInput::Signal(signal) => {
            let (candidate, what) = match signal {
                TaskSignal::Steer { candidate, text } => (*candidate, format!("a person wrote: {text}")),
                TaskSignal::Decide(decision) => {
                    let word = if decision.is_approved { "approved" } else { "refused" };
                    let words = decision.words.as_ref().map(|words| format!(": {words}"));
                    (None, format!("a person {word}{}", words.unwrap_or_default()))
                }
                TaskSignal::Cancel { reason } => (None, format!("cancelled: {reason}")),
                TaskSignal::Plan { .. } => (None, "a person edited the plan".to_owned()),
            };
            (lane_name(candidate), what, None)
        }
    };
    let time = spent.map(|spent| format_duration(spent.millis)).unwrap_or_default();
    vec![recorded.at.to_string(), lane, what, time, spent.map(|spent| spent.dollars()).unwrap_or_default()]
}

/// Returns the lane of a step. In a round of a plan, candidates are numbered for the round.
fn step_lane(step: &StepId) -> String {
    match (step.round, step.candidate) {
        (1.., Some(candidate)) => format!("step {}, candidate {candidate}", step.round),
        (_, candidate) => lane_name(candidate),
    }
}

fn lane_name(candidate: Option<usize>) -> String {
    candidate.map_or("task".to_owned(), |candidate| format!("candidate {candidate}"))
}

pub(super) fn format_duration(millis: u64) -> String {
    let tenths = millis / 100;
    format!("{} min {}.{} s", tenths / 600, tenths % 600 / 10, tenths % 10)
}

fn render_table(table: &ReportTable) -> String {
    let class = if table.has_numbers { " class=\"numbers\"" } else { "" };
    let mut text =
        format!("<div class=\"wide\" {}>\n<table{class}>\n<thead><tr>", region_attributes(table.name));
    table
        .head
        .iter()
        .for_each(|cell| text.push_str(&format!("<th scope=\"col\">{}</th>", escape_markup(cell))));
    text.push_str("</tr></thead>\n<tbody>\n");
    for row in &table.rows {
        text.push_str("<tr>");
        for (column, cell) in row.iter().enumerate() {
            let cell = render_inline(cell);
            text.push_str(&match column {
                0 if table.has_names => format!("<th scope=\"row\">{cell}</th>"),
                _ => format!("<td>{cell}</td>"),
            });
        }
        text.push_str("</tr>\n");
    }
    text.push_str("</tbody>\n</table>\n</div>\n");
    text
}

/// Returns the attributes of a scrollable element, which make it focusable and give it a name.
fn region_attributes(name: &str) -> String {
    format!("role=\"region\" aria-label=\"{}\" tabindex=\"0\"", escape_markup(name))
}

fn render_block(block: &ReportBlock) -> String {
    match block {
        ReportBlock::Heading(level, title) => format!("<h{level}>{}</h{level}>\n", escape_markup(title)),
        ReportBlock::Text(text) => format!("<p>{}</p>\n", render_inline(text)),
        ReportBlock::Quote(text) => {
            let lines: Vec<String> = text.trim().lines().map(render_inline).collect();
            format!("<blockquote><p>{}</p></blockquote>\n", lines.join("\n"))
        }
        ReportBlock::Output(lines) => {
            format!("<pre {}>{}</pre>\n", region_attributes("Output"), escape_markup(lines))
        }
        ReportBlock::List(lines) => format!("<ul>\n{}</ul>\n", render_items(lines)),
        ReportBlock::Numbered(lines) => format!("<ol>\n{}</ol>\n", render_items(lines)),
        ReportBlock::Table(content) => render_table(content),
    }
}

fn render_items(lines: &[ReportItem]) -> String {
    let piece = |piece: &TextSpan| match piece {
        TextSpan::Text(text) => render_inline(text),
        TextSpan::Code(text) => render_code(text),
    };
    lines.iter().map(|line| format!("<li>{}</li>\n", line.0.iter().map(piece).collect::<String>())).collect()
}

fn render_code(text: &str) -> String {
    format!("<code>{}</code>", escape_markup(text))
}

/// Returns text with its code formatted. An adjacent or unpaired backtick is literal.
fn render_inline(text: &str) -> String {
    let is_tick = |at: Option<usize>| at.and_then(|at| text.as_bytes().get(at)) == Some(&b'`');
    let ticks = text.match_indices('`').map(|(at, _)| at);
    let mut ticks = ticks.filter(|at| !is_tick(at.checked_sub(1)) && !is_tick(at.checked_add(1)));
    let part = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
    let (mut html, mut end) = (String::new(), 0);
    while let (Some(open), Some(close)) = (ticks.next(), ticks.next()) {
        html.push_str(&escape_markup(part(end, open)));
        html.push_str(&render_code(part(open + 1, close)));
        end = close + 1;
    }
    html + &escape_markup(part(end, text.len()))
}

/// Escapes text for elements and quoted attributes of HTML and XML. Control characters and invisible characters are replaced.
#[must_use]
pub fn escape_markup(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            '\t' | '\n' => html.push(character),
            _ if character.is_control() || is_hidden(character) => html.push('\u{FFFD}'),
            _ => html.push(character),
        }
    }
    html
}

/// Returns whether a character is invisible or changes the reading order of a line, so that the rendered text would differ
/// from the real text.
fn is_hidden(character: char) -> bool {
    matches!(
        character,
        '\u{061C}'
            | '\u{200B}'..='\u{200F}'
            | '\u{2028}'..='\u{202E}'
            | '\u{2060}'..='\u{2064}'
            | '\u{2066}'..='\u{2069}'
            | '\u{FEFF}'
            | '\u{FFFE}'
            | '\u{FFFF}'
            | '\u{E0000}'..='\u{E007F}'
    )
}

fn first_line(text: &str) -> &str {
    text.trim().lines().next().unwrap_or_default()
}
