//! Loop detection (loop specification, section 2.10; design, section 10).

use std::collections::VecDeque;

use pintle_llm::{Fingerprint, ToolCall};
use serde::{Deserialize, Serialize};

/// Signatures of the newest calls since the last warning.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct LoopWindow {
    newest: VecDeque<Fingerprint>,
}

impl LoopWindow {
    /// Adds a call and drops those beyond the window.
    pub(crate) fn push(&mut self, call: &ToolCall, window: usize) {
        // Arguments can be megabytes long.
        self.newest.push_back(Fingerprint::of_text(format_args!("{}\0{}", call.name, call.arguments)));
        while self.newest.len() > window {
            self.newest.pop_front();
        }
    }

    /// Returns whether the window repeats a pattern of one, two or three calls.
    ///
    /// For a pattern whose length does not divide the window, the newest calls that it does divide are compared. A pattern
    /// must occur at least twice, so a shorter window never matches.
    pub(crate) fn repeats(&self, window: usize) -> bool {
        self.newest.len() >= window && (1..=3).any(|length| self.repeats_every(length, window))
    }

    fn repeats_every(&self, length: usize, window: usize) -> bool {
        let compared = window - window % length;
        if compared < 2 * length {
            return false;
        }
        let newest = self.newest.iter().skip(self.newest.len() - compared);
        let earlier = newest.clone();
        newest.skip(length).zip(earlier).all(|(call, before)| call == before)
    }

    /// Empties the window, so that one pattern is reported once per window.
    pub(crate) fn clear(&mut self) {
        self.newest.clear();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;

    fn repeats(names: &str, window: usize) -> bool {
        let mut calls = LoopWindow::default();
        for name in names.chars() {
            calls.push(&ToolCall::new("id", name.to_string(), Map::new()), window);
        }
        calls.repeats(window)
    }

    #[test]
    fn patterns_of_one_two_and_three_calls_are_found() {
        let cases = [
            ("aaaaaaaaaa", 10, true),
            ("xaaaaa", 6, false),
            ("aaaaaaaaa", 10, false),
            ("xaaaaaaaaaa", 10, true),
            ("aaaaaaaaax", 10, false),
            ("ababababab", 10, true),
            ("abababababa", 10, true),
            ("abcabcabc", 10, false),
            ("xabcabcabc", 10, true),
            ("abcabcabca", 10, true),
            ("abcdabcdabcd", 10, false),
            ("aaabaaabaaab", 10, false),
            ("a", 1, false),
            ("aa", 2, true),
            ("", 10, false),
            ("aaa", 0, false),
        ];
        for (names, window, expected) in cases {
            assert_eq!(repeats(names, window), expected, "{names} in {window}");
        }
    }

    #[test]
    fn different_arguments_are_different_calls() {
        let mut calls = LoopWindow::default();
        for id in 0..4 {
            calls.push(&ToolCall::from_raw("id", "read_file", format!(r#"{{"offset":{id}}}"#)), 4);
        }
        assert!(!calls.repeats(4));
        calls.clear();
        for id in ["one", "two", "three", "four"] {
            calls.push(&ToolCall::from_raw(id, "read_file", r#"{"offset":1}"#), 4);
        }
        assert!(calls.repeats(4), "ids are not part of the signature");
    }
}
