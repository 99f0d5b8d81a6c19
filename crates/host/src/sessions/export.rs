//! A session as JSON lines, Markdown, or one HTML page.

use pintle_agent::{Turn, TurnKind};
use pintle_llm::ContentPart;
use pintle_store::{IntactRecord, StoreError, Summary};

use super::{SessionLocation, Sessions};
use crate::failure::{Failure, OrFailure as _};
use crate::sanitize::{sanitize, to_single_line};

/// Format of an exported session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// The record as JSON lines, which can be read back.
    Jsonl,
    /// The conversation as Markdown.
    Markdown,
    /// The conversation as one HTML page without scripts and external resources.
    Html,
}

/// Session as text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExportedSession {
    /// The session, up to the first damaged line of its record.
    pub text: String,
    /// Whether the record is damaged after the text.
    pub is_damaged: bool,
}

/// Returns a session as text. `prefix` is the id of the session or the beginning of it.
///
/// # Errors
///
/// A session that is not found, and a record of which nothing can be read.
pub async fn export_session(
    sessions: &Sessions,
    prefix: &str,
    format: ExportFormat,
) -> Result<ExportedSession, Failure> {
    let summary = sessions.find(prefix).await?;
    let IntactRecord { record, damage, .. } = sessions.intact_record(&summary.id).await?;
    let history = || record.replay().map(|replay| replay.history).or_failed("the session cannot be exported");
    let text = match format {
        ExportFormat::Jsonl => {
            let mut bytes = Vec::new();
            record.write(&mut bytes).or_failed("the session cannot be exported")?;
            String::from_utf8_lossy(&bytes).into_owned()
        }
        ExportFormat::Markdown => markdown(&summary, &history()?, damage.as_ref()),
        ExportFormat::Html => html(&summary, &history()?, damage.as_ref()),
    };
    Ok(ExportedSession { text, is_damaged: damage.is_some() })
}

/// Part of a history entry for display.
enum ContentView<'a> {
    Text(&'a str),
    Thinking(&'a str),
    Call { name: &'a str, arguments: String },
    Result { text: String, is_error: bool },
    Other(&'static str),
}

fn content_views(turn: &Turn) -> Vec<ContentView<'_>> {
    turn.item.message().content.iter().map(shown_part).collect()
}

/// Returns the name of the kind of a history entry.
pub fn kind_name(kind: TurnKind) -> &'static str {
    match kind {
        TurnKind::User => "user",
        TurnKind::Assistant => "assistant",
        TurnKind::ToolResults => "tool results",
        TurnKind::Steering => "steering",
        TurnKind::System | _ => "system",
    }
}

/// Returns the kind of an entry and its author.
fn heading(turn: &Turn) -> String {
    let author = turn.author.as_ref().map(|author| format!(" by {}", to_single_line(author.as_str())));
    format!("{}{}", kind_name(turn.kind), author.unwrap_or_default())
}

fn shown_part(part: &ContentPart) -> ContentView<'_> {
    match part {
        ContentPart::Text(text) => ContentView::Text(&text.text),
        ContentPart::Thinking(thinking) => ContentView::Thinking(&thinking.text),
        ContentPart::ToolCall(call) => {
            ContentView::Call { name: &call.name, arguments: call.arguments.to_string() }
        }
        ContentPart::ToolResult(result) => {
            ContentView::Result { text: result.text(), is_error: result.is_error }
        }
        ContentPart::Image(_) => ContentView::Other("image"),
        ContentPart::Audio(_) => ContentView::Other("audio"),
        ContentPart::Document(_) => ContentView::Other("document"),
        ContentPart::Opaque(_) | _ => ContentView::Other("content that is not shown"),
    }
}

/// Returns the conversation as Markdown, with the number of each entry, and with the damage at its end.
pub fn markdown(summary: &Summary, history: &[Turn], damage: Option<&StoreError>) -> String {
    let mut text = format!("# {}\n\n", sanitize(&summary.title));
    text.push_str(&format!(
        "Session {} of {}, {}\n",
        summary.id,
        SessionLocation::from_summary(summary),
        summary.created_at
    ));
    for (number, turn) in (1..).zip(history) {
        text.push_str(&format!("\n## {number}. {}\n", heading(turn)));
        for part in content_views(turn) {
            text.push('\n');
            match part {
                ContentView::Text(part) => text.push_str(&format!("{}\n", sanitize(part))),
                ContentView::Thinking(part) => text.push_str(&quoted(part)),
                ContentView::Call { name, arguments } => {
                    text.push_str(&format!("`{}`\n\n{}", sanitize(name), fenced(&arguments)));
                }
                ContentView::Result { text: result, is_error } => {
                    text.push_str(if is_error { "Failed:\n\n" } else { "" });
                    text.push_str(&fenced(&result));
                }
                ContentView::Other(what) => text.push_str(&format!("({what})\n")),
            }
        }
    }
    if let Some(damage) = damage {
        text.push_str(&format!("\n({})\n", damaged_end(damage)));
    }
    text
}

/// Returns the sentence at the end of a conversation with a damaged rest.
fn damaged_end(damage: &StoreError) -> String {
    format!("The rest of the record cannot be read: {}", sanitize(&damage.to_string()))
}

fn quoted(text: &str) -> String {
    sanitize(text).lines().map(|line| format!("> {line}\n")).collect()
}

/// Returns a code block whose fence is longer than any in the text.
fn fenced(text: &str) -> String {
    let text = sanitize(text);
    let longest = text.split(|character| character != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{}\n{fence}\n", text.trim_end_matches('\n'))
}

/// Style of the page.
pub(crate) const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:50rem;margin:2rem auto;padding:0 1rem}\
pre{background:#8881;padding:.7rem;overflow-x:auto;white-space:pre-wrap;overflow-wrap:anywhere}\
h2{font-size:1rem;border-top:1px solid #8886;padding-top:1rem}.thinking{opacity:.7}.error{border-left:3px solid #c33}\
p{white-space:pre-wrap;overflow-wrap:anywhere}:root{color-scheme:light dark}";

/// Returns the conversation as a page without scripts and external resources.
fn html(summary: &Summary, history: &[Turn], damage: Option<&StoreError>) -> String {
    let title = escaped(&summary.title);
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n<p>Session {} of {}, {}</p>\n",
        escaped(summary.id.as_str()),
        escaped(&SessionLocation::from_summary(summary).to_string()),
        summary.created_at
    );
    for (number, turn) in (1..).zip(history) {
        page.push_str(&format!("<h2 id=\"{number}\">{number}. {}</h2>\n", escaped(&heading(turn))));
        for part in content_views(turn) {
            page.push_str(&match part {
                ContentView::Text(text) => format!("<p>{}</p>\n", escaped(text)),
                ContentView::Thinking(text) => format!("<p class=\"thinking\">{}</p>\n", escaped(text)),
                ContentView::Call { name, arguments } => {
                    format!("<p><code>{}</code></p>\n<pre>{}</pre>\n", escaped(name), escaped(&arguments))
                }
                ContentView::Result { text, is_error } => {
                    let class = if is_error { " class=\"error\"" } else { "" };
                    format!("<pre{class}>{}</pre>\n", escaped(&text))
                }
                ContentView::Other(what) => format!("<p>({what})</p>\n"),
            });
        }
    }
    if let Some(damage) = damage {
        page.push_str(&format!("<p>({})</p>\n", escaped(&damaged_end(damage))));
    }
    page.push_str("</body>\n</html>\n");
    page
}

/// Returns a text without markup.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_are_longer_than_those_inside() {
        assert_eq!(fenced("a\n"), "```\na\n```\n");
        assert_eq!(fenced("````\nx"), "`````\n````\nx\n`````\n");
    }

    #[test]
    fn markup_is_text() {
        assert_eq!(escaped("<a href=\"x\">&</a>"), "&lt;a href=&quot;x&quot;&gt;&amp;&lt;/a&gt;");
    }
}
