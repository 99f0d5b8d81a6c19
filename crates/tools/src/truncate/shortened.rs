//! Text whose long lines are cut for the model only.

use std::fmt;

/// A text for the application, and a text for the model in which long lines are cut.
///
/// The second text is stored only if it differs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ShortenedText {
    /// The complete text.
    pub(crate) full: String,
    /// The text for the model; `None` if it equals the complete one.
    pub(crate) shortened: Option<String>,
}

impl ShortenedText {
    /// Reserves capacity for `additional` bytes of the complete text.
    pub(crate) fn reserve(&mut self, additional: usize) {
        self.full.reserve(additional);
    }

    /// Appends to both texts.
    pub(crate) fn push(&mut self, text: &str) {
        if let Some(shortened) = &mut self.shortened {
            shortened.push_str(text);
        }
        self.full.push_str(text);
    }

    /// Appends a line, of which the model reads at most `max_chars` characters. Returns whether it was cut.
    pub(crate) fn push_line(&mut self, line: &str, max_chars: usize) -> bool {
        let (kept, rest) = split_after(line, max_chars);
        if rest.is_empty() {
            self.push(line);
            return false;
        }
        self.push_for_model(&format!("{kept} [... {} more characters]", rest.chars().count()));
        self.full.push_str(line);
        true
    }

    /// Appends only to the text for the model.
    pub(crate) fn push_for_model(&mut self, text: &str) {
        self.shortened.get_or_insert_with(|| self.full.clone()).push_str(text);
    }

    /// Appends another text.
    pub(crate) fn append(&mut self, other: &Self) {
        match &other.shortened {
            Some(shortened) => self.push_for_model(shortened),
            None => {
                if let Some(shortened) = &mut self.shortened {
                    shortened.push_str(&other.full);
                }
            }
        }
        self.full.push_str(&other.full);
    }
}

impl fmt::Write for ShortenedText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text);
        Ok(())
    }
}

/// Splits a line after its first `max_chars` characters.
fn split_after(line: &str, max_chars: usize) -> (&str, &str) {
    if line.len() <= max_chars {
        return (line, "");
    }
    line.split_at(line.char_indices().nth(max_chars).map_or(line.len(), |(at, _)| at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_reads_cut_lines_and_the_application_all() {
        let mut text = ShortenedText::default();
        text.push("1 | ");
        assert!(!text.push_line("ééé", 3));
        assert_eq!((text.full.as_str(), &text.shortened), ("1 | ééé", &None));
        text.push("\n2 | ");
        assert!(text.push_line("éééxy", 3));
        text.push_for_model(" (cut)");
        text.push("\nend");
        assert_eq!(text.full, "1 | ééé\n2 | éééxy\nend");
        assert_eq!(text.shortened.as_deref(), Some("1 | ééé\n2 | ééé [... 2 more characters] (cut)\nend"));

        let mut all = ShortenedText::default();
        all.push("a\n");
        for part in [&text, &all.clone()] {
            all.append(part);
        }
        assert_eq!(all.full, format!("a\n{}a\n", text.full));
        assert_eq!(all.shortened, Some(format!("a\n{}a\n", text.shortened.unwrap())));
    }
}
