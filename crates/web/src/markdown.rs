//! Conversion of HTML to Markdown, for reading.
//!
//! Pages are untrusted, so this is a single pass over the tokens with a bounded stack. It builds no tree: the tree of a
//! hostile page can be deeper than any stack, or quadratically larger than the page.

mod tag;
mod writer;

use std::borrow::Cow;
use std::convert::Infallible;

use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Span, Tokenizer};
use reqwest::Url;

use self::tag::StartTag;
use self::writer::{InlineFormat, MarkdownWriter};

/// Maximum nesting of lists and quotes; deeper content is shown at this level.
const MAX_DEPTH: usize = 16;

/// Maximum ratio of Markdown to page length while URLs are made absolute. A page at a long URL may have very many links.
/// Beyond this ratio, URLs are kept as written.
const MAX_GROWTH: usize = 8;

/// Length of the Markdown, in bytes, up to which URLs are made absolute regardless of the length of the page.
const FREE_GROWTH: usize = 64 << 10;

/// Converts an HTML page to Markdown: headings, paragraphs, lists, links, images, emphasis, code, quotes and tables.
///
/// Scripts, styles and other invisible elements are left out. Link targets are made absolute with `base`. The result
/// is for reading and not for rendering: Markdown syntax in the text is not escaped. Never fails; takes time and space
/// linear in the length of `html`.
#[must_use]
pub fn to_markdown(html: &str, base: Option<&Url>) -> String {
    let max_len = html.len().saturating_mul(MAX_GROWTH).max(FREE_GROWTH);
    let mut page = PageConverter {
        writer: MarkdownWriter::default(),
        base,
        max_len,
        table: TablePosition::default(),
        open_tag: None,
        skipped: None,
        title: None,
    };
    let mut emitter = CallbackEmitter::new(|event: CallbackEvent<'_>, _span: Span<()>| {
        page.event(&event);
        None::<Infallible>
    });
    // Scripts, styles and titles contain text and no tags.
    emitter.naively_switch_states(true);
    let Ok(()) = Tokenizer::new_with_emitter(html, emitter).finish();
    page.finish()
}

/// Returns whether the content of an element is invisible or unreadable as text.
fn is_skipped(name: &str) -> bool {
    matches!(
        name,
        "script"
            | "style"
            | "template"
            | "noscript"
            | "noembed"
            | "svg"
            | "math"
            | "iframe"
            | "object"
            | "canvas"
            | "audio"
            | "video"
            | "select"
            | "textarea"
            | "datalist"
    )
}

/// Returns whether an element is from a foreign namespace, where `/>` closes it as in XML.
fn is_foreign(name: &str) -> bool {
    matches!(name, "svg" | "math")
}

/// Cleans up decoded text: no-break spaces become spaces, soft hyphens vanish, and control characters other than white
/// space become U+FFFD.
fn readable(text: &str) -> Cow<'_, str> {
    let is_special = |c: char| matches!(c, '\u{A0}' | '\u{AD}') || (c.is_control() && !c.is_whitespace());
    if !text.contains(is_special) {
        return Cow::Borrowed(text);
    }
    let replaced = text.chars().filter(|c| *c != '\u{AD}').map(|c| match c {
        '\u{A0}' => ' ',
        c if is_special(c) => '\u{FFFD}',
        c => c,
    });
    Cow::Owned(replaced.collect())
}

/// State of the conversion between two tokens.
struct PageConverter<'a> {
    writer: MarkdownWriter,
    base: Option<&'a Url>,
    /// Length of the Markdown up to which URLs are made absolute.
    max_len: usize,
    table: TablePosition,
    /// Start tag whose attributes are being read.
    open_tag: Option<StartTag>,
    /// Name of the element whose content is being skipped. The first end tag of that name ends it.
    skipped: Option<String>,
    /// Text of the `title` element that is being read.
    title: Option<String>,
}

/// Position in a table. A nested table is read as the text of its cell.
#[derive(Default)]
struct TablePosition {
    depth: usize,
    rows: usize,
    cells: usize,
}

impl PageConverter<'_> {
    fn event(&mut self, event: &CallbackEvent<'_>) {
        match event {
            CallbackEvent::String { value } => self.text(&String::from_utf8_lossy(value)),
            CallbackEvent::OpenStartTag { name } => self.open_tag = Some(StartTag::new(name)),
            CallbackEvent::AttributeName { name } => {
                if let Some(tag) = &mut self.open_tag {
                    tag.begin_attribute(name);
                }
            }
            CallbackEvent::AttributeValue { value } => {
                if let Some(tag) = &mut self.open_tag {
                    tag.set_value(value);
                }
            }
            CallbackEvent::CloseStartTag { self_closing } => {
                if let Some(tag) = self.open_tag.take() {
                    self.start_tag(tag, *self_closing);
                }
            }
            CallbackEvent::EndTag { name } => self.end_tag(&String::from_utf8_lossy(name)),
            CallbackEvent::Comment { .. } | CallbackEvent::Doctype { .. } | CallbackEvent::Error(_) => {}
        }
    }

    fn finish(mut self) -> String {
        self.end_title();
        self.writer.finish()
    }

    fn text(&mut self, text: &str) {
        if self.skipped.is_some() {
            return;
        }
        let text = readable(text);
        match &mut self.title {
            Some(title) => title.push_str(&text),
            None => self.writer.text(&text),
        }
    }

    fn start_tag(&mut self, tag: StartTag, self_closing: bool) {
        if self.skipped.is_some() || (self_closing && is_foreign(&tag.name)) {
            return;
        }
        if is_skipped(&tag.name) {
            self.skipped = Some(tag.name);
        } else if tag.name == "title" {
            self.title = Some(String::new());
        } else {
            self.start(&tag);
        }
    }

    fn end_tag(&mut self, name: &str) {
        match &self.skipped {
            Some(skipped) if skipped == name => self.skipped = None,
            Some(_) => {}
            None if name == "title" => self.end_title(),
            None => self.end(name),
        }
    }

    fn end_title(&mut self) {
        let title = self.title.take().unwrap_or_default();
        if !title.trim().is_empty() {
            self.writer.text("Title: ");
            self.writer.text(&title);
            self.writer.block(2);
        }
    }

    fn start(&mut self, tag: &StartTag) {
        match tag.name.as_str() {
            "br" => self.writer.line_break(),
            "hr" => self.writer.rule(),
            "img" => self.image(tag),
            "a" => {
                let target = self.target(tag);
                self.writer.open(InlineFormat::Link(target));
            }
            "b" | "strong" => self.writer.open(InlineFormat::Strong),
            "i" | "em" => self.writer.open(InlineFormat::Emphasis),
            "del" | "s" => self.writer.open(InlineFormat::Deleted),
            "code" | "kbd" | "samp" | "tt" => {
                self.writer.set_fence_language(tag.attribute("class").unwrap_or_default());
                self.writer.open(InlineFormat::Code);
            }
            "pre" => {
                self.writer.block(2);
                self.writer.begin_pre();
            }
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => self.writer.heading(&tag.name),
            "blockquote" => self.writer.begin_quote(),
            "ul" | "menu" => self.writer.begin_list(None),
            "ol" => {
                let first = tag.attribute("start").and_then(|text| text.trim().parse().ok());
                self.writer.begin_list(Some(first.unwrap_or(1)));
            }
            "li" => self.writer.begin_item(),
            "table" => self.begin_table(),
            "tr" => self.begin_row(),
            "td" | "th" => self.begin_cell(),
            name => self.writer.block(breaks(name)),
        }
    }

    fn end(&mut self, name: &str) {
        match name {
            "a" => self.writer.close(|inline| matches!(inline, InlineFormat::Link(_))),
            "b" | "strong" => self.writer.close(|inline| *inline == InlineFormat::Strong),
            "i" | "em" => self.writer.close(|inline| *inline == InlineFormat::Emphasis),
            "del" | "s" => self.writer.close(|inline| *inline == InlineFormat::Deleted),
            "code" | "kbd" | "samp" | "tt" => self.writer.close(|inline| *inline == InlineFormat::Code),
            "pre" => self.writer.end_pre(),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => self.writer.end_heading(),
            "blockquote" => self.writer.end_quote(),
            "ul" | "ol" | "menu" => self.writer.end_list(),
            "li" => self.writer.end_item(),
            "table" => self.end_table(),
            "tr" => self.end_row(),
            "td" | "th" => {}
            name => self.writer.block(breaks(name)),
        }
    }

    fn image(&mut self, tag: &StartTag) {
        let alt = tag.attribute("alt").unwrap_or_default();
        let alt = alt.split_whitespace().collect::<Vec<_>>().join(" ");
        if alt.is_empty() {
            return;
        }
        let source = tag.attribute("src").and_then(|source| self.absolute(source));
        self.writer.text(&match source {
            Some(source) => format!("![{alt}]({source})"),
            None => format!("![{alt}]"),
        });
    }

    /// Returns the URL of a link; `None` for one within the page.
    fn target(&self, tag: &StartTag) -> Option<String> {
        let href = tag.attribute("href")?;
        if href.trim().starts_with('#') { None } else { self.absolute(href) }
    }

    /// Returns the absolute form of a URL; `None` for a script or inline data.
    fn absolute(&self, url: &str) -> Option<String> {
        let url = url.trim();
        let scheme = url.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase());
        if url.is_empty() || matches!(scheme.as_deref(), Some("javascript" | "data")) {
            return None;
        }
        let base = self.base.filter(|_| self.writer.len() < self.max_len);
        let absolute = base.and_then(|base| base.join(url).ok());
        Some(absolute.map_or_else(|| url.split_whitespace().collect(), String::from))
    }

    fn begin_table(&mut self) {
        self.table.depth += 1;
        if self.table.depth == 1 {
            self.writer.block(2);
            self.table.rows = 0;
            self.table.cells = 0;
        }
    }

    fn end_table(&mut self) {
        if self.table.depth == 1 {
            self.end_row();
            self.writer.block(2);
        }
        self.table.depth = self.table.depth.saturating_sub(1);
    }

    fn begin_row(&mut self) {
        if self.table.depth == 1 {
            self.end_row();
        } else {
            self.writer.space();
        }
    }

    fn begin_cell(&mut self) {
        if self.table.depth != 1 {
            self.writer.space();
            return;
        }
        self.writer.cell(self.table.cells == 0);
        self.table.cells += 1;
    }

    /// Ends a row that has cells; the first row gets a delimiter row below it.
    fn end_row(&mut self) {
        if self.table.depth != 1 || self.table.cells == 0 {
            return;
        }
        self.writer.end_row((self.table.rows == 0).then_some(self.table.cells));
        self.table.rows += 1;
        self.table.cells = 0;
    }
}

/// Returns the number of line breaks around an element.
fn breaks(name: &str) -> usize {
    match name {
        "p" | "div" | "section" | "article" | "header" | "footer" | "main" | "nav" | "aside" | "figure"
        | "dl" | "form" | "fieldset" | "details" | "address" | "body" | "html" | "head" | "caption"
        | "hgroup" => 2,
        "dt" | "dd" | "summary" | "figcaption" | "legend" | "option" | "label" => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests;
