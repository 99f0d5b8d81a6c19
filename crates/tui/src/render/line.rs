//! Lines of styled text, and the escape sequences that show them on a terminal.

use pintle_host::sanitize::{is_safe, is_variation_selector};

use super::width;

/// Line of styled text, without a line end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StyledLine {
    spans: Vec<Span>,
}

/// Text with one face.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Text without line ends.
    pub text: String,
    /// Face of the text.
    pub face: Face,
}

/// Colour and attributes of text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Face {
    /// Colour of the text. `None` is the default colour of the terminal.
    pub colour: Option<Colour>,
    /// Whether the text is bold.
    pub bold: bool,
    /// Whether the text is dimmed.
    pub dim: bool,
    /// Whether the text is italic.
    pub italic: bool,
    /// Whether the text is underlined.
    pub underlined: bool,
    /// Whether the text is struck through.
    pub struck: bool,
    /// Whether the colours of text and background are exchanged.
    pub reversed: bool,
}

/// Colour from the user's palette, which suits the background of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// Failures, removed lines.
    Red,
    /// Success, added lines.
    Green,
    /// Numbers and constants.
    Yellow,
    /// Functions and tags.
    Blue,
    /// Keywords.
    Magenta,
    /// Positions and types.
    Cyan,
}

/// Colours that a terminal supports, and its background if known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// No colours and no attributes.
    Plain,
    /// No colours, but attributes such as bold and underlined.
    Monochrome,
    /// Colours of the user's palette.
    Sixteen,
    /// Colours of the user's palette on a dark background.
    OnDark,
    /// Colours of the user's palette on a light background.
    OnLight,
}

impl Face {
    /// The default colour, without attributes.
    pub const PLAIN: Self = Self {
        colour: None,
        bold: false,
        dim: false,
        italic: false,
        underlined: false,
        struck: false,
        reversed: false,
    };
    /// Tool names, file headers of diffs, non-zero exit codes.
    pub const BOLD: Self = Self { bold: true, ..Self::PLAIN };
    /// Secondary text: output of tools, labelled lines.
    pub const DIM: Self = Self { dim: true, ..Self::PLAIN };
    /// Selected text, the cursor.
    pub const REVERSED: Self = Self { reversed: true, ..Self::PLAIN };
    /// Success, added lines.
    pub const SUCCESS: Self = Self::coloured(Colour::Green);
    /// Failure, removed lines.
    pub const FAILURE: Self = Self::coloured(Colour::Red);
    /// Current position: hunk headers of diffs, spinners.
    pub const LOCATION: Self = Self::coloured(Colour::Cyan);

    /// Returns the face of text in this colour.
    pub const fn coloured(colour: Colour) -> Self {
        Self { colour: Some(colour), ..Self::PLAIN }
    }

    /// Returns this face combined with another face, whose colour takes precedence.
    pub fn and(self, other: Self) -> Self {
        Self {
            colour: other.colour.or(self.colour),
            bold: self.bold || other.bold,
            dim: self.dim || other.dim,
            italic: self.italic || other.italic,
            underlined: self.underlined || other.underlined,
            struck: self.struck || other.struck,
            reversed: self.reversed || other.reversed,
        }
    }

    /// Returns the parameters that select this face (ECMA-48, Select Graphic Rendition). Empty for plain text.
    fn parameters(self, depth: Depth) -> Vec<String> {
        if depth == Depth::Plain {
            return Vec::new();
        }
        let flags = [
            (self.bold, "1"),
            (self.dim, "2"),
            (self.italic, "3"),
            (self.underlined, "4"),
            (self.reversed, "7"),
            (self.struck, "9"),
        ];
        let mut parameters: Vec<String> =
            flags.iter().filter(|(is_set, _)| *is_set).map(|(_, code)| (*code).to_owned()).collect();
        parameters.extend(self.colour.and_then(|colour| colour.parameters(depth)));
        parameters
    }
}

impl Colour {
    fn parameters(self, depth: Depth) -> Option<String> {
        let own = match (self, depth) {
            (_, Depth::Plain | Depth::Monochrome) => return None,
            (Self::Red, _) => "31",
            (Self::Green, _) => "32",
            // In most palettes, yellow and cyan are faint on white, and blue is faint on black.
            (Self::Yellow, Depth::OnLight) => "35",
            (Self::Yellow, _) => "33",
            (Self::Blue, Depth::OnDark) => "94",
            (Self::Blue, _) | (Self::Cyan, Depth::OnLight) => "34",
            (Self::Magenta, _) => "35",
            (Self::Cyan, _) => "36",
        };
        Some(own.to_owned())
    }
}

impl StyledLine {
    /// Returns a line of plain text.
    pub fn plain(text: impl Into<String>) -> Self {
        Self::new(text, Face::PLAIN)
    }

    /// Returns a line with one face.
    pub fn new(text: impl Into<String>, face: Face) -> Self {
        let mut line = Self::default();
        line.push(text, face);
        line
    }

    /// Appends text.
    pub fn push(&mut self, text: impl Into<String>, face: Face) {
        let text = text.into();
        match self.spans.last_mut() {
            _ if text.is_empty() => {}
            Some(last) if last.face == face => last.text.push_str(&text),
            Some(_) | None => self.spans.push(Span { text, face }),
        }
    }

    /// Appends another line.
    pub fn append(&mut self, other: Self) {
        for Span { text, face } in other.spans {
            self.push(text, face);
        }
    }

    /// Returns the line with this text appended.
    pub fn and(mut self, text: impl Into<String>, face: Face) -> Self {
        self.push(text, face);
        self
    }

    /// Returns the spans of the line.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Returns whether the line has no text.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Returns the text of the line.
    pub fn text(&self) -> String {
        self.spans.iter().map(|span| span.text.as_str()).collect()
    }

    /// Returns the width of the line in columns.
    pub fn columns(&self) -> usize {
        self.spans.iter().map(|span| width::columns(&span.text)).sum()
    }

    /// Returns the line with this face added to every span.
    pub fn with_face(mut self, face: Face) -> Self {
        for span in &mut self.spans {
            span.face = span.face.and(face);
        }
        self
    }

    /// Returns the line cut to a width, with an ellipsis if it was cut.
    pub fn truncated(self, columns: usize) -> Self {
        if self.columns() <= columns {
            return self;
        }
        let mut left = columns;
        let mut line = Self::default();
        for Span { text, face } in self.spans {
            let wide = width::columns(&text);
            if wide < left {
                left -= wide;
                line.push(text, face);
                continue;
            }
            // If a span ends exactly here, more text follows it.
            let cut = if wide == left { format!("{text}…") } else { text };
            line.push(width::truncate(&cut, left), face);
            break;
        }
        line
    }

    /// Returns the output that shows the line on a terminal. Characters that would control the terminal are omitted.
    pub fn to_terminal(&self, depth: Depth) -> String {
        let mut out = String::new();
        for Span { text, face } in &self.spans {
            let parameters = face.parameters(depth);
            if !parameters.is_empty() {
                out.push_str(&format!("\x1b[{}m", parameters.join(";")));
            }
            out.extend(text.chars().filter(|character| is_showable(*character)));
            if !parameters.is_empty() {
                out.push_str("\x1b[0m");
            }
        }
        out
    }
}

/// Returns whether a character is visible and controls nothing. The sanitizer has already checked joiners and selectors.
fn is_showable(character: char) -> bool {
    is_safe(character) && character != '\n'
        || matches!(character, '\u{200c}' | '\u{200d}')
        || is_variation_selector(character)
}

impl From<&str> for StyledLine {
    fn from(text: &str) -> Self {
        Self::plain(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_shown_with_as_many_looks_as_there_are() {
        let line = StyledLine::new("a", Face::coloured(Colour::Red).and(Face::BOLD))
            .and("b", Face::coloured(Colour::Cyan))
            .and("c", Face::PLAIN);
        let shown = [Depth::Plain, Depth::Monochrome, Depth::Sixteen]
            .map(|depth| line.to_terminal(depth).replace('\x1b', "^"));
        assert_eq!(shown, ["abc", "^[1ma^[0mbc", "^[1;31ma^[0m^[36mb^[0mc"]);
    }

    #[test]
    fn colours_can_be_read_on_their_background() {
        let colours = [Colour::Yellow, Colour::Blue, Colour::Cyan];
        let shown =
            |depth| colours.map(|colour| StyledLine::new("a", Face::coloured(colour)).to_terminal(depth));
        let coded = |codes: [&str; 3]| codes.map(|code| format!("\x1b[{code}ma\x1b[0m"));
        assert_eq!(shown(Depth::Sixteen), coded(["33", "34", "36"]));
        assert_eq!(shown(Depth::OnDark), coded(["33", "94", "36"]));
        assert_eq!(shown(Depth::OnLight), coded(["35", "34", "34"]));
        assert_eq!(shown(Depth::Monochrome), ["a", "a", "a"]);
    }

    #[test]
    fn nothing_in_a_line_controls_the_terminal() {
        let line = StyledLine::plain("a\x1b[2Jb\u{9b}2Jc\r\n\td\u{202e}e\u{7}");
        assert_eq!(line.to_terminal(Depth::Sixteen), "a[2Jb2Jc\tde");
        let selected = StyledLine::plain("❤\u{fe0f} ᠠ\u{180b} 葛\u{e0100}");
        assert_eq!(selected.to_terminal(Depth::Sixteen), selected.text());
    }

    #[test]
    fn lines_are_cut_by_width() {
        let line = StyledLine::new("ab", Face::BOLD).and("日本", Face::DIM).and("!", Face::PLAIN);
        let cut = [7, 6, 5, 4, 3, 2, 1, 0].map(|columns| line.clone().truncated(columns).text());
        assert_eq!(cut, ["ab日本!", "ab日…", "ab日…", "ab…", "ab…", "a…", "…", ""]);
    }
}
