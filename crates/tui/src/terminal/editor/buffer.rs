//! Elements of a text: grapheme clusters and folds.

use std::sync::Arc;

use pintle_host::sanitize::escape_hidden;

use super::graphemes;
use crate::render::{plural, width};

/// Grapheme cluster, or folded text: a paste, or the name of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Element {
    /// Shared with the states that can be undone.
    text: Arc<str>,
    /// Label of a fold, shown instead of the text.
    label: Option<String>,
}

impl Element {
    /// Folds a paste.
    pub(super) fn fold(text: &str) -> Self {
        let lines = text.lines().count();
        let size = if lines > 1 { plural(lines as u64, "line") } else { plural(text.len() as u64, "byte") };
        Self::labelled(text, format!("[pasted {size}]"))
    }

    /// Folds a text under this label.
    pub(super) fn labelled(text: &str, label: String) -> Self {
        Self { text: text.into(), label: Some(label) }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn is_fold(&self) -> bool {
        self.label.is_some()
    }

    pub(super) fn is_blank(&self) -> bool {
        !self.is_fold() && self.text.trim().is_empty()
    }

    pub(super) fn is_line_end(&self) -> bool {
        !self.is_fold() && matches!(&*self.text, "\n" | "\r\n")
    }

    pub(super) fn is_word(&self) -> bool {
        self.is_fold() || self.text.chars().any(|character| character.is_alphanumeric() || character == '_')
    }

    /// Returns the displayed text at a column.
    pub(super) fn render(&self, column: usize) -> String {
        const TAB: usize = 8;
        match (&self.label, &*self.text) {
            (Some(label), _) => label.clone(),
            (None, "\t") => " ".repeat(TAB - column % TAB),
            (None, text) => match escape_hidden(text) {
                // An accent without a base would be drawn over its neighbour.
                shown if width::columns(&shown) == 0 => text.chars().flat_map(char::escape_unicode).collect(),
                shown => shown.into_owned(),
            },
        }
    }
}

/// Returns the elements of a text without folds.
pub(super) fn elements(text: &str) -> Vec<Element> {
    graphemes(text).map(|text| Element { text: text.into(), label: None }).collect()
}
