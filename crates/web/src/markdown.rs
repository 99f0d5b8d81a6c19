//! HTML as Markdown, for reading.
//!
//! A page may come from anyone, so this is one pass over its tokens with a bounded stack. There is no tree: a tree of
//! a hostile page can be deeper than any stack, or quadratically larger than the page.

mod entity;
mod token;
mod writer;

use reqwest::Url;

use self::token::{Tag, Token, Tokens};
use self::writer::{Inline, Writer};

/// The most levels of lists and quotes; what is nested deeper is shown at this level.
const MAX_DEPTH: usize = 16;

/// How many times longer than the page its Markdown may become by addresses that are made absolute: a page at a long
/// address may have very many links. Behind that, addresses are shown as they are written.
const MAX_GROWTH: usize = 8;

/// Up to this length, in bytes, Markdown may grow however short its page is.
const FREE_GROWTH: usize = 64 << 10;

/// The Markdown of an HTML page: headings, paragraphs, lists, links, images, emphasis, code, quotes and tables.
///
/// Scripts, styles and other things that nobody reads are left out. Addresses of links are made absolute with `base`.
/// It is for reading and not for rendering: what looks like Markdown in the text is not escaped. Any text gives a
/// result, in time and space linear in its length.
#[must_use]
pub fn to_markdown(html: &str, base: Option<&Url>) -> String {
    let growth = html.len().saturating_mul(MAX_GROWTH).max(FREE_GROWTH);
    let mut page = Page { writer: Writer::default(), base, growth, table: Table::default() };
    let mut tokens = Tokens::new(html);
    while let Some(token) = tokens.next() {
        match token {
            Token::Text(text) => page.writer.text(&entity::decode(text)),
            Token::Start(tag) if is_foreign(&tag.name) && tag.is_self_closing() => {}
            Token::Start(tag) if is_unseen(&tag.name) => tokens.skip_element(&tag.name),
            Token::Start(tag) if tag.name == "title" => page.title(tokens.raw_until("title")),
            Token::Start(tag) => page.start(&tag),
            Token::End(name) => page.end(&name),
        }
    }
    page.writer.finish()
}

/// Elements whose content nobody reads, or that cannot be read as text.
fn is_unseen(name: &str) -> bool {
    matches!(
        name,
        "script"
            | "style"
            | "template"
            | "noscript"
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

/// Elements that are not HTML and may end where they begin, as in XML.
fn is_foreign(name: &str) -> bool {
    matches!(name, "svg" | "math")
}

struct Page<'a> {
    writer: Writer,
    base: Option<&'a Url>,
    /// Up to this length of the Markdown, addresses are made absolute.
    growth: usize,
    table: Table,
}

/// Where in a table the page is. A table inside another is read as the text of its cell.
#[derive(Default)]
struct Table {
    depth: usize,
    rows: usize,
    cells: usize,
}

impl Page<'_> {
    fn title(&mut self, text: &str) {
        let text = entity::decode(text);
        if !text.trim().is_empty() {
            self.writer.text("Title: ");
            self.writer.text(&text);
            self.writer.block(2);
        }
    }

    fn start(&mut self, tag: &Tag<'_>) {
        match tag.name.as_str() {
            "br" => self.writer.line_break(),
            "hr" => self.writer.rule(),
            "img" => self.image(tag),
            "a" => {
                let target = self.target(tag);
                self.writer.open(Inline::Link(target));
            }
            "b" | "strong" => self.writer.open(Inline::Strong),
            "i" | "em" => self.writer.open(Inline::Emphasis),
            "del" | "s" => self.writer.open(Inline::Deleted),
            "code" | "kbd" | "samp" | "tt" => {
                self.writer.fence_language(tag);
                self.writer.open(Inline::Code);
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
            "a" => self.writer.close(|inline| matches!(inline, Inline::Link(_))),
            "b" | "strong" => self.writer.close(|inline| *inline == Inline::Strong),
            "i" | "em" => self.writer.close(|inline| *inline == Inline::Emphasis),
            "del" | "s" => self.writer.close(|inline| *inline == Inline::Deleted),
            "code" | "kbd" | "samp" | "tt" => self.writer.close(|inline| *inline == Inline::Code),
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

    fn image(&mut self, tag: &Tag<'_>) {
        let alt = tag.attribute("alt").unwrap_or_default();
        let alt = alt.split_whitespace().collect::<Vec<_>>().join(" ");
        if alt.is_empty() {
            return;
        }
        let source = tag.attribute("src").and_then(|source| self.absolute(&source));
        self.writer.text(&match source {
            Some(source) => format!("![{alt}]({source})"),
            None => format!("![{alt}]"),
        });
    }

    /// Where a link leads, if that is elsewhere.
    fn target(&self, tag: &Tag<'_>) -> Option<String> {
        let href = tag.attribute("href")?;
        if href.trim().starts_with('#') { None } else { self.absolute(&href) }
    }

    /// An address to show; none where it is only a script or the data itself.
    fn absolute(&self, address: &str) -> Option<String> {
        let address = address.trim();
        let scheme = address.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase());
        if address.is_empty() || matches!(scheme.as_deref(), Some("javascript" | "data")) {
            return None;
        }
        let base = self.base.filter(|_| self.writer.len() < self.growth);
        let url = base.and_then(|base| base.join(address).ok());
        Some(url.map_or_else(|| address.split_whitespace().collect(), String::from))
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

    /// Ends a row that has cells, and rules off the first one.
    fn end_row(&mut self) {
        if self.table.depth != 1 || self.table.cells == 0 {
            return;
        }
        self.writer.end_row((self.table.rows == 0).then_some(self.table.cells));
        self.table.rows += 1;
        self.table.cells = 0;
    }
}

/// How many line ends stand before and after an element.
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
