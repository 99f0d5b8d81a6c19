//! Loop detection (loop specification, section 2.10; design, section 10).

use std::collections::VecDeque;
use std::fmt;

use pintle_llm::{Fingerprint, ToolCall, ToolResult};
use serde::{Deserialize, Serialize};

/// Beginnings of result lines that differ between otherwise equal calls.
const PER_CALL: [&str; 2] = ["Chunk ID: ", "Original token count: "];

/// Units of time that may follow a number.
const TIME_UNITS: [&str; 16] = [
    "ns", "us", "µs", "ms", "s", "sec", "secs", "second", "seconds", "m", "min", "mins", "minute", "minutes",
    "h", "hours",
];

/// Signatures of the newest calls since the last warning, each with its result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct LoopWindow {
    newest: VecDeque<Fingerprint>,
}

impl LoopWindow {
    /// Adds a call with its result, if it ran, and drops calls beyond the window.
    ///
    /// A repeated call with another result makes progress. Durations in results are not compared. A window of 0 keeps no
    /// calls.
    pub(crate) fn push(&mut self, call: &ToolCall, result: Option<&ToolResult>, window: usize) {
        if window == 0 {
            self.newest.clear();
            return;
        }
        // Arguments can be megabytes long.
        let signature = Fingerprint::from_display(format_args!("{}\0{}", call.name, call.arguments));
        self.newest.push_back(match result {
            Some(result) => signature.chain(Fingerprint::from_display(Comparable(result))),
            None => signature,
        });
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

/// The parts of a result that are compared.
struct Comparable<'a>(&'a ToolResult);

impl fmt::Display for Comparable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\0", self.0.is_error)?;
        for line in self.0.text().lines().filter(|line| !PER_CALL.iter().any(|start| line.starts_with(start)))
        {
            write_without_durations(line, f)?;
            f.write_str("\n")?;
        }
        Ok(())
    }
}

/// Writes a line without the numbers that are followed by a unit of time.
fn write_without_durations(line: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut rest = line;
    while let Some(start) = rest.find(|character: char| character.is_ascii_digit()) {
        let (before, number) = rest.split_at(start);
        let end = number.find(|character: char| !character.is_ascii_digit() && character != '.');
        let (number, after) = number.split_at(end.unwrap_or(number.len()));
        f.write_str(before)?;
        if !starts_with_time_unit(after) {
            f.write_str(number)?;
        }
        rest = after;
    }
    f.write_str(rest)
}

fn starts_with_time_unit(text: &str) -> bool {
    let text = text.strip_prefix(' ').unwrap_or(text);
    let end = text.find(|character: char| !character.is_alphabetic()).unwrap_or(text.len());
    text.get(..end).is_some_and(|word| TIME_UNITS.contains(&word))
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;

    fn repeats(names: &str, window: usize) -> bool {
        let mut calls = LoopWindow::default();
        for name in names.chars() {
            calls.push(&ToolCall::new("id", name.to_string(), Map::new()), None, window);
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
            calls.push(&ToolCall::from_raw("id", "read_file", format!(r#"{{"offset":{id}}}"#)), None, 4);
        }
        assert!(!calls.repeats(4));
        calls.clear();
        for id in ["one", "two", "three", "four"] {
            calls.push(&ToolCall::from_raw(id, "read_file", r#"{"offset":1}"#), None, 4);
        }
        assert!(calls.repeats(4), "ids are not part of the signature");
    }

    #[test]
    fn calls_with_changing_results_are_no_loop() {
        let cases: [(&str, &[&str], bool); 6] = [
            ("the same result", &["ok", "ok", "ok", "ok"], true),
            ("progress", &["tick 1", "tick 2", "tick 3", "tick 4"], false),
            ("a result that comes back", &["a", "b", "a", "b"], true),
            ("one other result", &["ok", "ok", "done", "ok"], false),
            ("durations", &["in 1 ms", "in 22 ms", "in 3 ms", "in 4.5 ms"], true),
            (
                "lines of their own",
                &[
                    "Chunk ID: a\nWall time: 0.25 seconds\nOriginal token count: 9\nOutput:\n",
                    "Chunk ID: b\nWall time: 0.31 seconds\nOriginal token count: 8\nOutput:\n",
                    "Chunk ID: c\nWall time: 2.25 seconds\nOriginal token count: 9\nOutput:\n",
                    "Chunk ID: d\nWall time: 0.0 seconds\nOriginal token count: 9\nOutput:\n",
                ],
                true,
            ),
        ];
        for (what, results, expected) in cases {
            let mut calls = LoopWindow::default();
            for result in results {
                let result = ToolResult::new("id", *result, false);
                calls.push(&ToolCall::from_raw("id", "read", "{}"), Some(&result), results.len());
            }
            assert_eq!(calls.repeats(results.len()), expected, "{what}");
        }
    }

    #[test]
    fn a_failure_is_another_result() {
        let mut calls = LoopWindow::default();
        for is_error in [true, false, false, false] {
            let result = ToolResult::new("id", "text", is_error);
            calls.push(&ToolCall::from_raw("id", "read", "{}"), Some(&result), 4);
        }
        assert!(!calls.repeats(4));
    }
}
