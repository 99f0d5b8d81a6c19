//! A report as one page that needs nothing else: its sentences are those of the Markdown, and the diff, the timeline and the bill
//! come behind them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{Report, dollars};
use crate::local::Moment;
use crate::task::{Found, Input, Outcome, Signal, Spent, StepId};

/// Most bytes of a diff that are shown.
const MAX_DIFF: usize = 512 << 10;

/// Nothing is loaded and nothing runs, whatever a model has written.
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
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem; }
h1, h2, h3 { line-height: 1.25; }
h2 { margin-top: 2rem; border-bottom: 1px solid var(--line); }
code, pre { font: 0.875rem/1.4 ui-monospace, monospace; }
code { overflow-wrap: anywhere; }
pre { overflow-x: auto; border: 1px solid var(--line); padding: 0.5rem; }
blockquote { margin: 0; padding-left: 1rem; border-left: 4px solid var(--line); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; }
th, td { padding: 0.25rem 0.75rem; border: 1px solid var(--line); text-align: start; vertical-align: top; }
ins, del { text-decoration: none; display: block; }
ins { background: var(--added); }
del { background: var(--removed); }
</style>
";

/// Diff of a candidate, for a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownDiff {
    /// Number of the candidate, from 0.
    pub candidate: usize,
    /// Diff, as git writes it.
    pub patch: String,
}

impl Report<'_> {
    /// Returns the report as one page of HTML that loads nothing, with these diffs (up to 512 KiB of each) and these inputs as its
    /// timeline. Text of models and people is shown as text.
    #[must_use]
    pub fn to_html(&self, diffs: &[ShownDiff], moments: &[Moment]) -> String {
        let title = escaped(&format!("{}: {}", self.title(), first_line(&self.contract.goal)));
        let mut page = format!("{HEAD}<title>{title}</title>\n{STYLE}</head>\n<body>\n<main>\n");
        page.push_str(&blocks(&self.to_markdown()));
        page.push_str(&bills(moments));
        for diff in diffs {
            page.push_str(&self.shown(diff));
        }
        page.push_str(&timeline(moments));
        page.push_str("</main>\n</body>\n</html>\n");
        page
    }

    fn shown(&self, diff: &ShownDiff) -> String {
        let ShownDiff { candidate, patch } = diff;
        let is_chosen = matches!(self.outcome, Some(Outcome::Done(done)) if done.candidate() == *candidate);
        let chosen = if is_chosen { ", which was chosen" } else { "" };
        let mut text = format!("<h2>Diff of candidate {candidate}{chosen}</h2>\n<pre>");
        let shown = patch.get(..crate::prompts::floor(patch, MAX_DIFF)).unwrap_or_default();
        for line in shown.lines() {
            let line_text = escaped(line);
            let _ = match line.as_bytes().first() {
                Some(b'+') if !line.starts_with("+++ ") => write!(text, "<ins>{line_text}</ins>"),
                Some(b'-') if !line.starts_with("--- ") => write!(text, "<del>{line_text}</del>"),
                _ => writeln!(text, "{line_text}"),
            };
        }
        text.push_str("</pre>\n");
        if shown.len() < patch.len() {
            let _ = writeln!(
                text,
                "<p>The diff has {} bytes; {MAX_DIFF} of them are shown. <code>pintle task apply ID --candidate {candidate} --patch</code> prints all of it.</p>",
                patch.len()
            );
        }
        text
    }
}

/// Returns what each kind of step and each candidate has cost.
fn bills(moments: &[Moment]) -> String {
    let (mut kinds, mut candidates) = (BTreeMap::<String, Spent>::new(), BTreeMap::<String, Spent>::new());
    for moment in moments {
        if let Input::Finished(result) = &moment.input {
            kinds.entry(result.step.kind.to_string()).or_default().add(&result.spent);
            candidates.entry(lane(&result.step)).or_default().add(&result.spent);
        }
    }
    if kinds.is_empty() {
        return String::new();
    }
    let row = |(name, spent): (&String, &Spent)| {
        vec![name.clone(), dollars(spent), spent.tokens.to_string(), took(spent.millis)]
    };
    let rows: Vec<Vec<String>> = kinds.iter().chain(&candidates).map(row).collect();
    table(&["for", "cost", "tokens", "time"], &rows)
}

/// Returns what happened, in order.
fn timeline(moments: &[Moment]) -> String {
    let rows: Vec<Vec<String>> = moments.iter().map(row_of).collect();
    format!("<h2>Timeline</h2>\n{}", table(&["time", "lane", "what", "took", "cost"], &rows))
}

fn row_of(moment: &Moment) -> Vec<String> {
    let (lane, what, spent) = match &moment.input {
        Input::Began(step) => (lane(step), format!("{} begins", named(step)), None),
        Input::Finished(result) => {
            let what = match &result.found {
                Found::Failed { reason } => format!("{} failed: {reason}", named(&result.step)),
                Found::Baseline(_)
                | Found::Anchor(_)
                | Found::Work(_)
                | Found::Evidence(_)
                | Found::Review(_) => format!("{} ends", named(&result.step)),
            };
            (lane(&result.step), what, Some(result.spent))
        }
        Input::Said(signal) => {
            let (lane, what) = match signal {
                Signal::Steer { candidate, text } => (*candidate, format!("a person said: {text}")),
                Signal::Decide(decision) => {
                    let word = if decision.is_approved { "approved" } else { "refused" };
                    let words = decision.words.as_ref().map(|words| format!(": {words}"));
                    (None, format!("a person {word}{}", words.unwrap_or_default()))
                }
                Signal::Cancel { reason } => (None, format!("cancelled: {reason}")),
            };
            (lane.map_or("task".to_owned(), |candidate| format!("candidate {candidate}")), what, None)
        }
    };
    let time = spent.map(|spent| took(spent.millis)).unwrap_or_default();
    vec![moment.at.to_string(), lane, what, time, spent.map(|spent| dollars(&spent)).unwrap_or_default()]
}

fn lane(step: &StepId) -> String {
    step.candidate.map_or("task".to_owned(), |candidate| format!("candidate {candidate}"))
}

fn named(step: &StepId) -> String {
    if step.attempt == 1 { step.kind.to_string() } else { format!("{}, attempt {}", step.kind, step.attempt) }
}

fn took(millis: u64) -> String {
    let tenths = millis / 100;
    format!("{} min {}.{} s", tenths / 600, tenths % 600 / 10, tenths % 10)
}

fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let mut text = "<div class=\"wide\" tabindex=\"0\">\n<table>\n<thead><tr>".to_owned();
    head.iter().for_each(|cell| text.push_str(&format!("<th scope=\"col\">{}</th>", inline(cell))));
    text.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        text.push_str("<tr>");
        row.iter().for_each(|cell| text.push_str(&format!("<td>{}</td>", inline(cell))));
        text.push_str("</tr>\n");
    }
    text.push_str("</tbody>\n</table>\n</div>\n");
    text
}

/// Kind of a block of our own Markdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Block {
    Heading(usize),
    Quote,
    List,
    Numbered,
    Table,
    Text,
    Nothing,
}

impl Block {
    /// Returns the kind of block that a line belongs to, and what the line says in it.
    fn of(line: &str) -> (Self, &str) {
        let number =
            line.find(". ").filter(|at| *at > 0 && line.bytes().take(*at).all(|byte| byte.is_ascii_digit()));
        let level = line.bytes().take_while(|byte| *byte == b'#').count();
        match line.split_at_checked(2) {
            _ if line.is_empty() => (Self::Nothing, line),
            _ if level > 0 => (Self::Heading(level), line.trim_start_matches('#').trim()),
            Some((">" | "> ", said)) => (Self::Quote, said),
            Some(("* ", said)) => (Self::List, said),
            Some(("| ", _)) => (Self::Table, line),
            Some(("|-", _)) => (Self::Table, ""),
            _ if line == ">" => (Self::Quote, ""),
            _ => match number {
                Some(at) => (Self::Numbered, line.get(at + 2..).unwrap_or_default()),
                None => (Self::Text, line),
            },
        }
    }
}

/// Returns the Markdown of a report, which has no other blocks than these, as HTML.
fn blocks(markdown: &str) -> String {
    let mut text = String::new();
    let lines: Vec<(Block, &str)> = markdown.lines().map(Block::of).collect();
    for block in lines.chunk_by(|one, next| one.0 == next.0) {
        let said = || block.iter().map(|(_, said)| inline(&unmarked(said)));
        match block.first().map_or(Block::Nothing, |(kind, _)| *kind) {
            Block::Nothing => {}
            Block::Heading(level) => {
                said().for_each(|said| text.push_str(&format!("<h{level}>{said}</h{level}>\n")));
            }
            Block::Text => said().for_each(|said| text.push_str(&format!("<p>{said}</p>\n"))),
            Block::Quote => {
                let said: Vec<String> = said().collect();
                text.push_str(&format!("<blockquote><p>{}</p></blockquote>\n", said.join("<br>\n")));
            }
            kind @ (Block::List | Block::Numbered) => {
                let list = if kind == Block::List { "ul" } else { "ol" };
                let items: String = said().map(|said| format!("<li>{said}</li>\n")).collect();
                text.push_str(&format!("<{list}>\n{items}</{list}>\n"));
            }
            Block::Table => {
                let mut rows = block.iter().filter(|(_, row)| !row.is_empty()).map(|(_, row)| cells(row));
                let head = rows.next().unwrap_or_default();
                let head: Vec<&str> = head.iter().map(String::as_str).collect();
                text.push_str(&table(&head, &rows.collect::<Vec<_>>()));
            }
        }
    }
    text
}

/// Splits a row at bars that are none of its text.
fn cells(row: &str) -> Vec<String> {
    let hidden = row.replace("\\|", "\u{0}");
    let inner = hidden.trim().trim_matches('|');
    inner.split('|').map(|cell| unmarked(cell.trim()).replace('\u{0}', "|")).collect()
}

/// Takes back what keeps text from formatting Markdown.
fn unmarked(text: &str) -> String {
    text.replace("&lt;", "<").replace("\\|", "|")
}

/// Returns one line of text with its code.
fn inline(text: &str) -> String {
    let mut parts = text.split('`');
    let mut html = escaped(parts.next().unwrap_or_default());
    let rest: Vec<&str> = parts.collect();
    for pair in rest.chunks(2) {
        match pair {
            [code, after] => html.push_str(&format!("<code>{}</code>{}", escaped(code), escaped(after))),
            // A backtick without another one is itself.
            _ => pair.iter().for_each(|text| html.push_str(&format!("`{}", escaped(text)))),
        }
    }
    html
}

/// Returns text that is nothing but text, in elements and in quoted attributes.
fn escaped(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            '\t' => html.push('\t'),
            _ if character.is_control() => html.push('\u{FFFD}'),
            // They would change the order in which a line is read.
            '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' => html.push('\u{FFFD}'),
            _ => html.push(character),
        }
    }
    html
}

fn first_line(text: &str) -> &str {
    text.trim().lines().next().unwrap_or_default()
}
