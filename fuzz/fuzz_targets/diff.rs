//! A patch between two files turns one into the other, byte for byte.
//!
//! Both files and the patch are derived from an edit script, so the expected result is known without any search.
#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use pintle_patch::{ApplyOptions, Hunk, HunkLine, Operation, Patch, UpdateFile, parse, plan};

/// Texts of lines: few, so that equal and almost equal lines are common.
const WORDS: [&str; 14] =
    ["a", "b", " a", "a ", "\ta", "", " ", "}", "x–y", "x-y", "caf\u{E9}", "cafe\u{301}", "“a”", "\u{A0}a"];

#[derive(Debug, Arbitrary)]
struct Case {
    script: Vec<(Edit, u8, End)>,
    final_newline: bool,
    byte_order_mark: bool,
    shape: Shape,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Arbitrary)]
enum Edit {
    Keep,
    Remove,
    Add,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Arbitrary)]
enum End {
    Lf,
    CrLf,
    Cr,
}

/// Form of the patch.
#[derive(Debug, Clone, Copy, Arbitrary)]
enum Shape {
    /// One hunk of all lines.
    Whole,
    /// One hunk of all lines, with spaces around the old lines.
    Loose { before: bool, after: bool },
    /// Hunks with this number of lines of context.
    Hunks { context: u8 },
}

/// The file before and after.
struct Pair {
    old: Vec<u8>,
    new: Vec<u8>,
}

fuzz_target!(|case: Case| {
    for options in [ApplyOptions::default(), ApplyOptions::reference()] {
        // For the reference, a byte-order mark is part of line 1.
        let mark = case.byte_order_mark && options.skip_byte_order_mark;
        let Some(Pair { old, new }) = case.pair(&options, mark) else { return };
        let hunks = case.hunks();
        if hunks.is_empty() {
            return;
        }
        // Additions alone are inserted elsewhere, unless the file is empty.
        if !old.is_empty() && !hunks.iter().all(has_old_lines) {
            return;
        }
        let patch = Patch::new(vec![Operation::Update(UpdateFile::new("f", hunks))]);
        let patch = parse(&patch.to_string()).expect("a rendered patch parses");
        let before = BTreeMap::from([("f".to_owned(), old)]);
        match plan(&patch, &before, &options) {
            Ok(planned) => {
                let is_certain = match case.shape {
                    Shape::Whole | Shape::Loose { .. } => true,
                    Shape::Hunks { .. } => planned.diagnostics.is_empty(),
                };
                let mut after = before.clone();
                planned.apply_to(&mut after);
                if is_certain {
                    assert_eq!(
                        after["f"].escape_ascii().to_string(),
                        new.escape_ascii().to_string(),
                        "{patch}"
                    );
                }
                planned.inverse().apply_to(&mut after);
                assert_eq!(after, before, "the inverse does not restore the file");
            }
            Err(error) => assert!(!matches!(case.shape, Shape::Whole), "{error}\n{patch}"),
        }
    }
});

impl Case {
    /// Returns both files, or `None` if lines of the old one would merge or vanish.
    fn pair(&self, options: &ApplyOptions, mark: bool) -> Option<Pair> {
        let old = self.old_lines();
        let bytes: String = old.iter().map(|(text, end)| format!("{text}{end}")).collect();
        let merges =
            old.windows(2).any(|pair| pair[0].1 == "\r" && pair[1].0.is_empty() && pair[1].1 == "\n");
        let vanishes = old.last().is_some_and(|(text, end)| text.is_empty() && end.is_empty());
        if merges || vanishes {
            return None;
        }
        let mark = if mark { "\u{FEFF}" } else { "" };
        let new = self.new_text(&old, options);
        Some(Pair { old: format!("{mark}{bytes}").into_bytes(), new: format!("{mark}{new}").into_bytes() })
    }

    fn old_lines(&self) -> Vec<(&'static str, &'static str)> {
        let old = self.script.iter().filter(|(edit, ..)| *edit != Edit::Add);
        let mut lines: Vec<_> = old.map(|(_, text, end)| (word(*text), end.text())).collect();
        if let Some(last) = lines.last_mut().filter(|_| !self.final_newline) {
            last.1 = "";
        }
        lines
    }

    /// Returns the new file: the result of each step, with the line end that the format specifies for each new line.
    fn new_text(&self, old: &[(&str, &'static str)], options: &ApplyOptions) -> String {
        let end_at = |at: usize| old.get(at).map(|(_, end)| *end).filter(|end| !end.is_empty());
        let first = end_at(0).unwrap_or("\n");
        let neighbour = |at: usize| {
            let before = at.checked_sub(1).and_then(end_at);
            let last = || (0..old.len()).rev().find_map(end_at);
            before.or_else(|| end_at(at)).or_else(last).unwrap_or("\n")
        };
        let new_end = |at: usize| if options.first_line_end { first } else { neighbour(at) };
        let (mut text, mut at) = (String::new(), 0);
        // The line end that the last line written lacks.
        let mut missing = None;
        for group in self.script.chunk_by(|left, right| (left.0 == Edit::Keep) == (right.0 == Edit::Keep)) {
            let removed = group.iter().filter(|(edit, ..)| *edit == Edit::Remove).count();
            let mut replaced = (at..at + removed).filter_map(end_at);
            let mut end = new_end(at);
            for (edit, text_of, _) in group {
                match edit {
                    Edit::Keep => {
                        let (kept, kept_end) = old[at];
                        text += missing.take().unwrap_or_default();
                        text += kept;
                        text += kept_end;
                        missing = kept_end.is_empty().then(|| new_end(at));
                        at += 1;
                    }
                    Edit::Remove => {}
                    Edit::Add => {
                        if !options.first_line_end {
                            end = replaced.next().unwrap_or(end);
                        }
                        text += missing.take().unwrap_or_default();
                        text += word(*text_of);
                        text += end;
                    }
                }
            }
            at += removed;
        }
        if options.always_final_newline {
            text += missing.unwrap_or_default();
        }
        text
    }

    fn hunks(&self) -> Vec<Hunk> {
        let line = |(edit, text, _): &(Edit, u8, End)| match (edit, self.shape) {
            (Edit::Keep, _) => HunkLine::Context(self.loose(*text)),
            (Edit::Remove, _) => HunkLine::Remove(self.loose(*text)),
            (Edit::Add, _) => HunkLine::Add(word(*text).to_owned()),
        };
        let lines: Vec<HunkLine> = self.script.iter().map(line).collect();
        match self.shape {
            _ if lines.is_empty() => Vec::new(),
            Shape::Whole | Shape::Loose { .. } => vec![Hunk::new(lines)],
            Shape::Hunks { context } => hunks(&lines, usize::from(context % 4)),
        }
    }

    /// Returns the text of an old line as written in the patch.
    fn loose(&self, text: u8) -> String {
        let space = |wanted: bool| if wanted { " " } else { "" };
        match self.shape {
            Shape::Loose { before, after } => format!("{}{}{}", space(before), word(text), space(after)),
            Shape::Whole | Shape::Hunks { .. } => word(text).to_owned(),
        }
    }
}

impl End {
    fn text(self) -> &'static str {
        match self {
            Self::Lf => "\n",
            Self::CrLf => "\r\n",
            Self::Cr => "\r",
        }
    }
}

fn word(index: u8) -> &'static str {
    WORDS[usize::from(index) % WORDS.len()]
}

fn has_old_lines(hunk: &Hunk) -> bool {
    hunk.lines.iter().any(|line| !matches!(line, HunkLine::Add(_)))
}

/// Returns hunks with `context` lines around each change, merged where they touch.
fn hunks(lines: &[HunkLine], context: usize) -> Vec<Hunk> {
    let is_change = |line: &HunkLine| !matches!(line, HunkLine::Context(_));
    let is_near = |at: usize| {
        let near = lines.get(at.saturating_sub(context)..lines.len().min(at + context + 1));
        near.unwrap_or_default().iter().any(is_change)
    };
    let mut hunks = Vec::new();
    let mut open: Vec<HunkLine> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        if is_near(at) {
            open.push(line.clone());
        } else if !open.is_empty() {
            hunks.push(Hunk::new(std::mem::take(&mut open)));
        }
    }
    if !open.is_empty() {
        hunks.push(Hunk::new(open));
    }
    hunks
}
