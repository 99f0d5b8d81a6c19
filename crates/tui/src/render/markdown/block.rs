//! Block structure of Markdown, line by line.

/// Minimum indentation that makes a line code, in columns. Lists are indented less, or have a marker.
pub(in crate::render) const CODE_INDENT: usize = 4;

/// Form of a line outside of code blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::render) enum Block<'a> {
    Blank,
    Rule,
    Heading {
        text: &'a str,
    },
    /// Start of a code block.
    Fence(Fence),
    /// Line of an indented code block.
    Code(&'a str),
    Item {
        /// Columns before the marker.
        indent: usize,
        marker: String,
        text: &'a str,
    },
    Quote(&'a str),
    /// Row of a table.
    Row(Vec<&'a str>),
    Words {
        indent: usize,
        text: &'a str,
    },
}

/// Line that starts a code block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::render) struct Fence {
    line: String,
    mark: char,
    length: usize,
}

impl<'a> Block<'a> {
    /// Returns the form of a line.
    pub(in crate::render) fn parse(line: &'a str) -> Self {
        let text = line.trim_start_matches([' ', '\t']);
        let blanks = line.get(..line.len() - text.len()).unwrap_or_default();
        let indent = blanks.chars().map(|blank| if blank == '\t' { CODE_INDENT } else { 1 }).sum();
        if text.trim_end().is_empty() {
            Self::Blank
        } else if let Some(fence) = Fence::parse(line) {
            Self::Fence(fence)
        } else if is_rule(text) {
            Self::Rule
        } else if let Some((marker, text)) = item(text) {
            Self::Item { indent, marker, text }
        } else if indent >= CODE_INDENT {
            Self::Code(line)
        } else if let Some(text) = heading(text) {
            Self::Heading { text }
        } else if let Some(quoted) = text.strip_prefix('>') {
            Self::Quote(quoted.strip_prefix(' ').unwrap_or(quoted))
        } else if let Some(cells) = row(text) {
            Self::Row(cells)
        } else {
            Self::Words { indent, text }
        }
    }
}

impl Fence {
    fn parse(line: &str) -> Option<Self> {
        let text = line.trim_start();
        let mark = text.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
        let rest = text.trim_start_matches(mark);
        let length = text.len() - rest.len();
        // Otherwise it is inline code.
        let is_fence = length >= 3 && !(mark == '`' && rest.contains('`'));
        is_fence.then(|| Self { line: line.trim_end().to_owned(), mark, length })
    }

    /// Returns the line as written.
    pub(in crate::render) fn line(&self) -> &str {
        &self.line
    }

    /// Returns the language that the fence names, or an empty string.
    pub(in crate::render) fn language(&self) -> &str {
        let info = self.line.trim_start().trim_start_matches(self.mark).trim_start();
        info.split([' ', ',', '{', ':']).next().unwrap_or_default()
    }

    /// Returns whether a line ends the code block.
    pub(in crate::render) fn is_closed_by(&self, line: &str) -> bool {
        let line = line.trim();
        line.len() >= self.length && line.chars().all(|character| character == self.mark)
    }
}

fn is_rule(text: &str) -> bool {
    let mut marks = text.chars().filter(|character| !character.is_whitespace());
    let Some(first) = marks.next().filter(|mark| matches!(mark, '-' | '*' | '_')) else { return false };
    let mut count = 1;
    marks.all(|mark| {
        count += 1;
        mark == first
    }) && count >= 3
}

fn heading(text: &str) -> Option<&str> {
    let rest = text.trim_start_matches('#');
    let level = text.len() - rest.len();
    let is_heading = (1..=6).contains(&level) && (rest.is_empty() || rest.starts_with([' ', '\t']));
    is_heading.then(|| rest.trim().trim_end_matches('#').trim_end())
}

/// Returns the displayed marker of a list item, and the text of the item.
fn item(text: &str) -> Option<(String, &str)> {
    let (marker, rest) = text.split_once([' ', '\t'])?;
    let number = marker.strip_suffix(['.', ')']).unwrap_or_default();
    let is_number = (1..=9).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit());
    let shown = match marker {
        "-" | "*" | "+" | "•" => "•",
        _ if is_number => marker,
        _ => return None,
    };
    let rest = rest.trim_start();
    for (task, sign) in [("[ ] ", "☐"), ("[x] ", "☑"), ("[X] ", "☑")] {
        if let Some(rest) = rest.strip_prefix(task).filter(|_| shown == "•") {
            return Some((sign.to_owned(), rest));
        }
    }
    Some((shown.to_owned(), rest))
}

/// Returns the cells of a table row, which starts with a bar.
fn row(text: &str) -> Option<Vec<&str>> {
    let inner = text.trim_end().strip_prefix('|')?;
    let inner = inner.strip_suffix('|').unwrap_or(inner);
    let (mut cells, mut start, mut is_escaped, mut is_code) = (Vec::new(), 0, false, false);
    for (index, character) in inner.char_indices() {
        match character {
            '`' if !is_escaped => is_code = !is_code,
            '|' if !is_escaped && !is_code => {
                cells.push(inner.get(start..index).unwrap_or_default().trim());
                start = index + 1;
            }
            _ => {}
        }
        is_escaped = character == '\\' && !is_escaped;
    }
    cells.push(inner.get(start..).unwrap_or_default().trim());
    Some(cells)
}
