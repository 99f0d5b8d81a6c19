//! Markdown as it grows: lines with their prefixes, blanks that are not written twice, markers around what has text.

use super::MAX_DEPTH;
use super::token::Tag;

/// The most markers that are open at once.
const MAX_INLINE: usize = 16;

/// What stands before the further lines of an item, at most: its number may be long.
const INDENT: &str = "      ";

#[derive(Default)]
pub(super) struct Writer {
    out: String,
    /// Line ends before the next text.
    breaks: usize,
    /// Whether a blank stands before the next text.
    space: bool,
    /// What the next line begins with, after its prefix, if it gets text.
    line_start: String,
    blocks: Vec<Block>,
    /// Blocks that were begun and are too deep to be shown.
    beyond: usize,
    inlines: Vec<Opened>,
    /// The text of a preformatted block, and its language.
    pre: Option<Pre>,
    in_row: bool,
}

/// What is marked within a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Inline {
    Strong,
    Emphasis,
    Deleted,
    Code,
    /// With where it leads, if that is worth showing.
    Link(Option<String>),
}

struct Opened {
    inline: Inline,
    /// Whether its first marker is written.
    written: bool,
}

enum Block {
    /// With whether it has a line.
    Quote { written: bool },
    /// With the number of the next item, if they are numbered.
    List(Option<u64>),
    /// With its marker, and whether that is written.
    Item { marker: String, written: bool },
}

#[derive(Default)]
struct Pre {
    text: String,
    language: String,
}

impl Inline {
    fn first(&self) -> &'static str {
        match self {
            Self::Strong => "**",
            Self::Emphasis => "*",
            Self::Deleted => "~~",
            Self::Code => "`",
            Self::Link(Some(_)) => "[",
            Self::Link(None) => "",
        }
    }

    fn last(&self) -> String {
        match self {
            Self::Link(Some(target)) => format!("]({target})"),
            Self::Strong | Self::Emphasis | Self::Deleted | Self::Code | Self::Link(None) => {
                self.first().to_owned()
            }
        }
    }
}

impl Writer {
    /// How much there is so far, in bytes.
    pub(super) fn len(&self) -> usize {
        self.out.len() + self.pre.as_ref().map_or(0, |pre| pre.text.len())
    }

    /// The page, ending in one line feed, or empty.
    pub(super) fn finish(mut self) -> String {
        self.end_pre();
        self.close_written();
        if !self.out.is_empty() {
            self.out.push('\n');
        }
        self.out
    }

    /// Text of the page: runs of blanks are one.
    pub(super) fn text(&mut self, text: &str) {
        if let Some(pre) = &mut self.pre {
            pre.text.push_str(text);
            return;
        }
        let is_blank = |c: char| c.is_whitespace();
        self.space |= text.starts_with(is_blank);
        for word in text.split_whitespace() {
            self.begin_text();
            if self.in_row {
                self.out.push_str(&word.replace('|', "\\|"));
            } else {
                self.out.push_str(word);
            }
            self.space = true;
        }
        if !text.trim().is_empty() {
            self.space = text.ends_with(is_blank);
        }
    }

    pub(super) fn space(&mut self) {
        self.space = true;
    }

    /// Line ends around a block; within a row of a table, where there can be none, a blank.
    pub(super) fn block(&mut self, breaks: usize) {
        if breaks == 0 || self.pre.is_some() {
            return;
        }
        if self.in_row {
            self.space = true;
            return;
        }
        self.close_written();
        // An item begins on the line of its marker.
        let fresh = matches!(self.blocks.last(), Some(Block::Item { written: false, .. }));
        self.breaks = self.breaks.max(if fresh { 1 } else { breaks });
        self.space = false;
    }

    pub(super) fn line_break(&mut self) {
        match &mut self.pre {
            Some(pre) => pre.text.push('\n'),
            None => self.block(1),
        }
    }

    pub(super) fn rule(&mut self) {
        self.block(2);
        if self.pre.is_none() && !self.in_row {
            self.begin_line();
            self.out.push_str("---");
            self.block(2);
        }
    }

    pub(super) fn heading(&mut self, name: &str) {
        self.block(2);
        if !self.in_row && self.pre.is_none() {
            let level = name.as_bytes().get(1).map_or(1, |digit| usize::from(digit.saturating_sub(b'0')));
            self.line_start = format!("{} ", "#".repeat(level));
        }
    }

    pub(super) fn end_heading(&mut self) {
        self.line_start.clear();
        self.block(2);
    }

    pub(super) fn open(&mut self, inline: Inline) {
        if self.pre.is_none() && self.inlines.len() < MAX_INLINE {
            self.inlines.push(Opened { inline, written: false });
        }
    }

    /// Closes the innermost one of a kind, and with it what was opened inside and not closed.
    pub(super) fn close(&mut self, is_meant: impl Fn(&Inline) -> bool) {
        let Some(at) = self.inlines.iter().rposition(|opened| is_meant(&opened.inline)) else { return };
        for opened in self.inlines.split_off(at).into_iter().rev().filter(|opened| opened.written) {
            self.out.push_str(&opened.inline.last());
        }
    }

    pub(super) fn begin_pre(&mut self) {
        if self.pre.is_none() {
            self.pre = Some(Pre::default());
        }
    }

    /// Takes the language of a preformatted block from the class of the code in it.
    pub(super) fn fence_language(&mut self, tag: &Tag<'_>) {
        let Some(pre) = self.pre.as_mut().filter(|pre| pre.language.is_empty()) else { return };
        let class = tag.attribute("class").unwrap_or_default();
        let named = class.split_whitespace().find_map(|name| name.strip_prefix("language-"));
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '#' | '_');
        if let Some(language) = named.filter(|language| language.chars().all(is_plain)) {
            language.clone_into(&mut pre.language);
        }
    }

    pub(super) fn end_pre(&mut self) {
        let Some(pre) = self.pre.take() else { return };
        let text = pre.text.trim_start_matches(['\r', '\n']).trim_end();
        if self.in_row || text.trim().is_empty() {
            self.text(text);
            return;
        }
        let fence = "`".repeat(longest_ticks(text).max(2) + 1);
        self.line(&format!("{fence}{}", pre.language));
        text.lines().for_each(|line| self.line(line));
        self.line(&fence);
        self.block(2);
    }

    pub(super) fn begin_quote(&mut self) {
        self.block(2);
        self.push(Block::Quote { written: false });
    }

    pub(super) fn end_quote(&mut self) {
        self.block(2);
        self.pop(|block| matches!(block, Block::Quote { .. }));
    }

    pub(super) fn begin_list(&mut self, first: Option<u64>) {
        let inside = self.blocks.iter().any(|block| matches!(block, Block::Item { .. }));
        self.block(if inside { 1 } else { 2 });
        self.push(Block::List(first));
    }

    pub(super) fn end_list(&mut self) {
        self.pop(|block| matches!(block, Block::List(_)));
        let inside = self.blocks.iter().any(|block| matches!(block, Block::Item { .. }));
        self.block(if inside { 1 } else { 2 });
    }

    pub(super) fn begin_item(&mut self) {
        self.end_item();
        let marker = match self.blocks.last_mut() {
            Some(Block::List(Some(next))) => {
                let marker = format!("{next}. ");
                *next = next.saturating_add(1);
                marker
            }
            Some(Block::List(None) | Block::Quote { .. } | Block::Item { .. }) | None => "- ".to_owned(),
        };
        self.push(Block::Item { marker, written: false });
    }

    /// Ends the item of the innermost list, if one is open.
    pub(super) fn end_item(&mut self) {
        self.block(1);
        let list = self.blocks.iter().rposition(|block| matches!(block, Block::List(_)));
        let item = self.blocks.iter().rposition(|block| matches!(block, Block::Item { .. }));
        if self.beyond == 0 && item > list {
            self.blocks.truncate(item.unwrap_or_default());
        }
    }

    /// Begins a cell of a row, and the row with its first one.
    pub(super) fn cell(&mut self, is_first: bool) {
        if is_first {
            self.block(1);
            self.begin_line();
            self.in_row = true;
        } else {
            self.close_written();
        }
        self.out.push_str(if is_first { "|" } else { " |" });
        self.space = true;
    }

    /// Ends a row; a first row, of so many cells, is ruled off.
    pub(super) fn end_row(&mut self, ruled: Option<usize>) {
        self.close_written();
        self.out.push_str(" |");
        self.in_row = false;
        self.block(1);
        if let Some(cells) = ruled {
            self.line(&format!("|{}", " --- |".repeat(cells)));
            self.block(1);
        }
    }

    /// A line of its own, as it is.
    fn line(&mut self, line: &str) {
        self.block(1);
        self.begin_line();
        self.out.push_str(line);
        self.trim_line();
    }

    /// Brings the page to where text can be written: line ends, prefix, blank, first markers.
    fn begin_text(&mut self) {
        if self.breaks > 0 || self.out.is_empty() {
            self.begin_line();
            let start = std::mem::take(&mut self.line_start);
            self.out.push_str(&start);
        } else if self.space && !self.out.ends_with(' ') {
            self.out.push(' ');
        }
        self.space = false;
        for opened in self.inlines.iter_mut().filter(|opened| !opened.written) {
            opened.written = true;
            self.out.push_str(opened.inline.first());
        }
    }

    /// Writes the line ends that are due, and the prefix of the new line.
    fn begin_line(&mut self) {
        if !self.out.is_empty() {
            for _ in 1..self.breaks {
                self.out.push('\n');
                self.quote_prefix();
                self.trim_line();
            }
            self.out.push('\n');
        }
        self.breaks = 0;
        self.space = false;
        for block in &mut self.blocks {
            match block {
                Block::Quote { written } => {
                    *written = true;
                    self.out.push_str("> ");
                }
                Block::List(_) => {}
                Block::Item { marker, written: written @ false } => {
                    *written = true;
                    self.out.push_str(marker);
                }
                Block::Item { marker, .. } => self.out.push_str(indent(marker)),
            }
        }
    }

    /// The prefix of an empty line.
    fn quote_prefix(&mut self) {
        for block in &self.blocks {
            match block {
                Block::Quote { written: true } => self.out.push_str("> "),
                Block::Item { marker, written: true } => self.out.push_str(indent(marker)),
                Block::Quote { .. } | Block::Item { .. } | Block::List(_) => {}
            }
        }
    }

    fn trim_line(&mut self) {
        self.out.truncate(self.out.trim_end_matches(' ').len());
    }

    /// Closes every marker for the end of a line; those that are still open come again with the next text. A link
    /// does not: around many lines, a long address would be written many times.
    fn close_written(&mut self) {
        for opened in self.inlines.iter_mut().rev().filter(|opened| opened.written) {
            opened.written = false;
            self.out.push_str(&opened.inline.last());
            if let Inline::Link(target) = &mut opened.inline {
                *target = None;
            }
        }
    }

    fn push(&mut self, block: Block) {
        if self.blocks.len() < MAX_DEPTH && self.beyond == 0 {
            self.blocks.push(block);
        } else if !matches!(block, Block::Item { .. }) {
            // Items end in too many ways to be counted.
            self.beyond += 1;
        }
    }

    /// Ends the innermost block of a kind, and what was begun inside it.
    fn pop(&mut self, is_meant: impl Fn(&Block) -> bool) {
        if self.beyond > 0 {
            self.beyond -= 1;
        } else if let Some(at) = self.blocks.iter().rposition(is_meant) {
            self.blocks.truncate(at);
        }
    }
}

/// What stands before the further lines of an item with this marker.
fn indent(marker: &str) -> &'static str {
    INDENT.get(..marker.len()).unwrap_or(INDENT)
}

/// The longest run of backticks in a text.
fn longest_ticks(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}
