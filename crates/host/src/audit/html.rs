//! Audit as one HTML page.

use super::document::{AuditBlock, AuditDocument};
use crate::sanitize::escape_hidden;
use crate::sessions::export::{STYLE, escaped};

/// Style in addition to the style of exported sessions.
const MORE_STYLE: &str = "h3{font-size:1rem;margin-bottom:.2rem}dl{margin:0}dt{float:left;clear:left;width:8rem;opacity:.7}\
dd{margin-left:8rem;overflow-wrap:anywhere;white-space:pre-wrap}section section{margin-left:1rem}\
.alarm{border-left:3px solid #c33;padding-left:.7rem;font-weight:bold}";

/// Returns the document as a page without scripts and external resources.
pub(super) fn render(document: &AuditDocument) -> String {
    let title = safe(&document.title);
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>{title}</title>\n<style>{STYLE}{MORE_STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
    );
    push_all(&document.blocks, &mut page);
    page.push_str("</body>\n</html>\n");
    page
}

/// Adds blocks. Consecutive fields form one list.
fn push_all(blocks: &[AuditBlock], page: &mut String) {
    let mut in_list = false;
    for block in blocks {
        let is_field = matches!(block, AuditBlock::Field { .. });
        if is_field != in_list {
            page.push_str(if is_field { "<dl>\n" } else { "</dl>\n" });
            in_list = is_field;
        }
        push(block, page);
    }
    if in_list {
        page.push_str("</dl>\n");
    }
}

fn push(block: &AuditBlock, page: &mut String) {
    match block {
        AuditBlock::Section { title, blocks } => {
            page.push_str(&format!("<section>\n<h2>{title}</h2>\n"));
            push_all(blocks, page);
            page.push_str("</section>\n");
        }
        AuditBlock::Item { title, blocks } => {
            page.push_str(&format!("<section>\n<h3>{}</h3>\n", safe(title)));
            push_all(blocks, page);
            page.push_str("</section>\n");
        }
        AuditBlock::Field { name, value } => {
            page.push_str(&format!("<dt>{name}</dt>\n<dd>{}</dd>\n", safe(value)));
        }
        AuditBlock::Text { name, text } => {
            page.push_str(&format!("<p>{name}</p>\n<pre>{}</pre>\n", safe(text)));
        }
        AuditBlock::Alarm(message) => page.push_str(&format!("<p class=\"alarm\">{}</p>\n", safe(message))),
    }
}

/// Returns a foreign text without markup, with its hidden characters escaped.
fn safe(text: &str) -> String {
    escaped(&escape_hidden(text))
}
