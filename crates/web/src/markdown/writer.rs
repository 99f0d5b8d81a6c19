//! Markdown output: line prefixes, collapsed white space, and markers around inline text.

use super::MAX_DEPTH;

/// Maximum number of inline markers that are open at once.
const MAX_INLINE: usize = 16;

/// Maximum indentation of an item's continuation lines, because its number may be long.
const INDENT: &str = "      ";

#[derive(Default)]
pub(super) struct MarkdownWriter {
    out: String,
    /// Line breaks due before the next text.
    breaks: usize,
    /// Whether a space is due before the next text.
    space: bool,
    /// Text to insert after the prefix of the next line that has text, such as `## `.
    line_start: String,
    blocks: Vec<OpenBlock>,
    /// Number of open blocks that are nested too deeply to be shown.
    hidden_blocks: usize,
    inlines: Vec<OpenInline>,
    /// Preformatted block that is being read.
    pre: Option<PreformattedText>,
    in_row: bool,
}

/// Inline formatting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum InlineFormat {
    Strong,
    Emphasis,
    Deleted,
    Code,
    /// A link with its target, if there is one to show.
    Link(Option<String>),
}

struct OpenInline {
    inline: InlineFormat,
    /// Whether the opening marker is written.
    written: bool,
}

enum OpenBlock {
    Quote {
        /// Whether a line of it is written.
        written: bool,
    },
    /// A list with the number of its next item, if it is ordered.
    List(Option<u64>),
    Item {
        marker: String,
        /// Whether the marker is written.
        written: bool,
    },
}

#[derive(Default)]
struct PreformattedText {
    text: String,
    language: String,
}

impl InlineFormat {
    fn opening(&self) -> &'static str {
        match self {
            Self::Strong => "**",
            Self::Emphasis => "*",
            Self::Deleted => "~~",
            Self::Code => "`",
            Self::Link(Some(_)) => "[",
            Self::Link(None) => "",
        }
    }

    fn closing(&self) -> String {
        match self {
            Self::Link(Some(target)) => format!("]({target})"),
            Self::Strong | Self::Emphasis | Self::Deleted | Self::Code | Self::Link(None) => {
                self.opening().to_owned()
            }
        }
    }
}

impl MarkdownWriter {
    /// Returns the length of the output so far, in bytes.
    pub(super) fn len(&self) -> usize {
        self.out.len() + self.pre.as_ref().map_or(0, |pre| pre.text.len())
    }

    /// Returns the page, which ends in one line feed or is empty.
    pub(super) fn finish(mut self) -> String {
        self.end_pre();
        self.close_written();
        if !self.out.is_empty() {
            self.out.push('\n');
        }
        self.out
    }

    /// Appends text; each run of white space becomes one space.
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

    /// Requests line breaks around a block. Within a table row, which cannot have any, it is a space.
    pub(super) fn block(&mut self, breaks: usize) {
        if breaks == 0 || self.pre.is_some() {
            return;
        }
        if self.in_row {
            self.space = true;
            return;
        }
        self.close_written();
        // The first block of an item starts on the line of the marker.
        let fresh = matches!(self.blocks.last(), Some(OpenBlock::Item { written: false, .. }));
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

    pub(super) fn open(&mut self, inline: InlineFormat) {
        if self.pre.is_none() && self.inlines.len() < MAX_INLINE {
            self.inlines.push(OpenInline { inline, written: false });
        }
    }

    /// Closes the innermost inline that matches, and the inlines inside it.
    pub(super) fn close(&mut self, matches: impl Fn(&InlineFormat) -> bool) {
        let Some(at) = self.inlines.iter().rposition(|open| matches(&open.inline)) else { return };
        for open in self.inlines.split_off(at).into_iter().rev().filter(|open| open.written) {
            self.out.push_str(&open.inline.closing());
        }
    }

    pub(super) fn begin_pre(&mut self) {
        if self.pre.is_none() {
            self.pre = Some(PreformattedText::default());
        }
    }

    /// Sets the language of a preformatted block from the class of the `code` element in it.
    pub(super) fn set_fence_language(&mut self, class: &str) {
        let Some(pre) = self.pre.as_mut().filter(|pre| pre.language.is_empty()) else { return };
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
        let fence = "`".repeat(longest_backtick_run(text).max(2) + 1);
        self.line(&format!("{fence}{}", pre.language));
        text.lines().for_each(|line| self.line(line));
        self.line(&fence);
        self.block(2);
    }

    pub(super) fn begin_quote(&mut self) {
        self.block(2);
        self.push(OpenBlock::Quote { written: false });
    }

    pub(super) fn end_quote(&mut self) {
        self.block(2);
        self.pop(|block| matches!(block, OpenBlock::Quote { .. }));
    }

    pub(super) fn begin_list(&mut self, first: Option<u64>) {
        let inside = self.blocks.iter().any(|block| matches!(block, OpenBlock::Item { .. }));
        self.block(if inside { 1 } else { 2 });
        self.push(OpenBlock::List(first));
    }

    pub(super) fn end_list(&mut self) {
        self.pop(|block| matches!(block, OpenBlock::List(_)));
        let inside = self.blocks.iter().any(|block| matches!(block, OpenBlock::Item { .. }));
        self.block(if inside { 1 } else { 2 });
    }

    pub(super) fn begin_item(&mut self) {
        self.end_item();
        let marker = match self.blocks.last_mut() {
            Some(OpenBlock::List(Some(next))) => {
                let marker = format!("{next}. ");
                *next = next.saturating_add(1);
                marker
            }
            Some(OpenBlock::List(None) | OpenBlock::Quote { .. } | OpenBlock::Item { .. }) | None => {
                "- ".to_owned()
            }
        };
        self.push(OpenBlock::Item { marker, written: false });
    }

    /// Ends the open item of the innermost list, if any.
    pub(super) fn end_item(&mut self) {
        self.block(1);
        let list = self.blocks.iter().rposition(|block| matches!(block, OpenBlock::List(_)));
        let item = self.blocks.iter().rposition(|block| matches!(block, OpenBlock::Item { .. }));
        if self.hidden_blocks == 0 && item > list {
            self.blocks.truncate(item.unwrap_or_default());
        }
    }

    /// Starts a cell; the first cell starts the row.
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

    /// Ends a row. For a header row, `header_cells` is its number of cells, and a delimiter row follows.
    pub(super) fn end_row(&mut self, header_cells: Option<usize>) {
        self.close_written();
        self.out.push_str(" |");
        self.in_row = false;
        self.block(1);
        if let Some(cells) = header_cells {
            self.line(&format!("|{}", " --- |".repeat(cells)));
            self.block(1);
        }
    }

    /// Writes a complete line verbatim.
    fn line(&mut self, line: &str) {
        self.block(1);
        self.begin_line();
        self.out.push_str(line);
        self.trim_line();
    }

    /// Writes the pending output before text: line breaks, prefix, space, opening markers.
    fn begin_text(&mut self) {
        if self.breaks > 0 || self.out.is_empty() {
            self.begin_line();
            let start = std::mem::take(&mut self.line_start);
            self.out.push_str(&start);
        } else if self.space && !self.out.ends_with(' ') {
            self.out.push(' ');
        }
        self.space = false;
        for open in self.inlines.iter_mut().filter(|open| !open.written) {
            open.written = true;
            self.out.push_str(open.inline.opening());
        }
    }

    /// Writes the pending line breaks and the prefix of the new line.
    fn begin_line(&mut self) {
        if !self.out.is_empty() {
            for _ in 1..self.breaks {
                self.out.push('\n');
                self.empty_line_prefix();
                self.trim_line();
            }
            self.out.push('\n');
        }
        self.breaks = 0;
        self.space = false;
        for block in &mut self.blocks {
            match block {
                OpenBlock::Quote { written } => {
                    *written = true;
                    self.out.push_str("> ");
                }
                OpenBlock::List(_) => {}
                OpenBlock::Item { marker, written: written @ false } => {
                    *written = true;
                    self.out.push_str(marker);
                }
                OpenBlock::Item { marker, .. } => self.out.push_str(indent(marker)),
            }
        }
    }

    /// Writes the prefix of an empty line.
    fn empty_line_prefix(&mut self) {
        for block in &self.blocks {
            match block {
                OpenBlock::Quote { written: true } => self.out.push_str("> "),
                OpenBlock::Item { marker, written: true } => self.out.push_str(indent(marker)),
                OpenBlock::Quote { .. } | OpenBlock::Item { .. } | OpenBlock::List(_) => {}
            }
        }
    }

    fn trim_line(&mut self) {
        self.out.truncate(self.out.trim_end_matches(' ').len());
    }

    /// Closes every marker at the end of a line. Markers that are still open are written again before the next text,
    /// except links: around many lines, a long URL would be written many times.
    fn close_written(&mut self) {
        for open in self.inlines.iter_mut().rev().filter(|open| open.written) {
            open.written = false;
            self.out.push_str(&open.inline.closing());
            if let InlineFormat::Link(target) = &mut open.inline {
                *target = None;
            }
        }
    }

    fn push(&mut self, block: OpenBlock) {
        if self.blocks.len() < MAX_DEPTH && self.hidden_blocks == 0 {
            self.blocks.push(block);
        } else if !matches!(block, OpenBlock::Item { .. }) {
            // Hidden items are not counted, because they end in too many ways.
            self.hidden_blocks += 1;
        }
    }

    /// Ends the innermost block that matches, and the blocks inside it.
    fn pop(&mut self, matches: impl Fn(&OpenBlock) -> bool) {
        if self.hidden_blocks > 0 {
            self.hidden_blocks -= 1;
        } else if let Some(at) = self.blocks.iter().rposition(matches) {
            self.blocks.truncate(at);
        }
    }
}

/// Returns the indentation of continuation lines of an item with this marker.
fn indent(marker: &str) -> &'static str {
    INDENT.get(..marker.len()).unwrap_or(INDENT)
}

/// Returns the length of the longest run of backticks.
fn longest_backtick_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}
