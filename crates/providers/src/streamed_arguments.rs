//! Arguments of a call, as a stream delivers them.

/// Arguments received so far.
///
/// Some servers send `{}` or `null` before the arguments. Such a placeholder is withheld until the call ends, and dropped
/// if arguments follow.
#[derive(Debug, Default)]
pub(crate) struct StreamedArguments {
    text: String,
    /// Number of bytes emitted.
    emitted: usize,
    /// Whether the arguments are free text, which has no placeholders.
    free_text: bool,
}

impl StreamedArguments {
    /// Creates arguments of a custom tool, which are not JSON.
    pub(crate) fn of_free_text() -> Self {
        Self { free_text: true, ..Self::default() }
    }

    /// Appends a piece. It replaces a placeholder.
    pub(crate) fn push(&mut self, piece: &str) {
        if self.is_withheld() && piece.trim_start().starts_with('{') {
            self.text.clear();
        }
        self.text.push_str(piece);
    }

    /// Returns the text that has not been emitted, and counts it as emitted. A placeholder is withheld.
    pub(crate) fn take_new(&mut self) -> Option<String> {
        if self.is_withheld() { None } else { self.take_rest() }
    }

    /// Returns the text that has not been emitted, including a placeholder, and counts it as emitted.
    pub(crate) fn take_rest(&mut self) -> Option<String> {
        let rest = self.text.get(self.emitted..).filter(|rest| !rest.is_empty())?.to_owned();
        self.emitted = self.text.len();
        Some(rest)
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }

    /// Returns whether no arguments have been received, except for a placeholder.
    pub(crate) fn is_blank(&self) -> bool {
        self.is_blank_text(&self.text)
    }

    /// Returns whether a text, as arguments of this call, is empty or a placeholder.
    pub(crate) fn is_blank_text(&self, text: &str) -> bool {
        if self.free_text { text.is_empty() } else { matches!(text.trim(), "" | "{}" | "null") }
    }

    /// Returns whether the text is a placeholder that has not been emitted.
    pub(crate) fn is_withheld(&self) -> bool {
        self.emitted == 0 && !self.text.is_empty() && self.is_blank()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_replaced_by_arguments() {
        let cases: [(&[&str], &[&str], &str); 9] = [
            (&[], &[], ""),
            (&["{\"a\"", ": 1}"], &["{\"a\"", ": 1}"], "{\"a\": 1}"),
            (&["{}"], &["{}"], "{}"),
            (&["{}", "{\"a\"", ": 1}"], &["{\"a\"", ": 1}"], "{\"a\": 1}"),
            (&["null", "", "{\"a\": 1}"], &["{\"a\": 1}"], "{\"a\": 1}"),
            (&["", "{}", "\n", "{\"a\": 1}"], &["{\"a\": 1}"], "{\"a\": 1}"),
            // Both are parts of one text.
            (&["{", "}"], &["{", "}"], "{}"),
            (&["{}", "}"], &["{}}"], "{}}"),
            (&["{\"a\": 1}", "{}"], &["{\"a\": 1}", "{}"], "{\"a\": 1}{}"),
        ];
        for (pieces, emitted, text) in cases {
            let mut arguments = StreamedArguments::default();
            let mut found = Vec::new();
            for piece in pieces {
                arguments.push(piece);
                found.extend(arguments.take_new());
            }
            found.extend(arguments.take_rest());
            assert_eq!(found, emitted, "{pieces:?}");
            assert_eq!(found.concat(), text, "{pieces:?}");
            assert_eq!(arguments.into_text(), text, "{pieces:?}");
        }
    }

    #[test]
    fn free_text_has_no_placeholders() {
        let mut arguments = StreamedArguments::of_free_text();
        arguments.push("{}");
        assert_eq!(arguments.take_new().as_deref(), Some("{}"));
        arguments.push("{");
        assert_eq!((arguments.text(), arguments.is_blank()), ("{}{", false));
    }
}
