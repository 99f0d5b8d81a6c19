//! Any text: parsed at once, in pieces, and again after rendering.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pintle_patch::{AddFile, DeleteFile, Operation, ParseError, Patch, PatchStream, StreamItem, parse};

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let whole = streamed([&*text]);
    assert_eq!(whole.1, parse(&text), "the stream differs from the parser of whole texts");
    assert_eq!(streamed(pieces(&text)), whole, "the result depends on the pieces");
    match whole.1 {
        Ok(patch) => {
            check_line_numbers(&patch, &text);
            check_rendering(&patch);
        }
        Err(error) => check_error(&error, &text),
    }
});

/// Streams a text and returns its items and result.
fn streamed<'t>(pieces: impl IntoIterator<Item = &'t str>) -> (Vec<StreamItem>, Result<Patch, ParseError>) {
    let mut stream = PatchStream::new();
    let mut items = Vec::new();
    for piece in pieces {
        if let Err(error) = stream.push(piece, &mut items) {
            let seen = items.len();
            assert_eq!(stream.finish(&mut items), Err(error.clone()));
            assert_eq!(items.len(), seen, "nothing is yielded after an error");
            return (items, Err(error));
        }
    }
    let end = stream.finish(&mut items);
    (items, end)
}

/// Splits the text into pieces of one to eight characters; the length is derived from the text itself.
fn pieces(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.bytes().next() {
        let end = rest.char_indices().nth(usize::from(first % 8) + 1).map_or(rest.len(), |(at, _)| at);
        let (piece, after) = rest.split_at(end);
        pieces.push(piece);
        rest = after;
    }
    pieces
}

/// Checks that operations, hunks and diagnostics name lines of the text, the first two in order.
fn check_line_numbers(patch: &Patch, text: &str) {
    let lines = text.split('\n').count();
    let mut last = 0;
    let mut check_next = |line: usize| {
        assert!(last < line && line <= lines, "line {line} of {lines} after {last}");
        last = line;
    };
    for operation in &patch.operations {
        match operation {
            Operation::Add(AddFile { line, .. }) | Operation::Delete(DeleteFile { line, .. }) => {
                check_next(*line)
            }
            Operation::Update(update) => {
                check_next(update.line);
                update.hunks.iter().for_each(|hunk| check_next(hunk.line));
            }
        }
    }
    for diagnostic in &patch.diagnostics {
        let last = diagnostic.line + diagnostic.count - 1;
        assert!(
            diagnostic.line > 0 && diagnostic.count > 0 && last <= lines,
            "{diagnostic} of {lines} lines"
        );
    }
}

/// Checks that a rendered patch parses to the same operations.
fn check_rendering(patch: &Patch) {
    let text = patch.to_string();
    let again = parse(&text).unwrap_or_else(|error| panic!("its rendering is refused: {error}\n{text}"));
    assert_eq!(
        without_line_numbers(&again),
        without_line_numbers(patch),
        "its rendering is another patch\n{text}"
    );
    assert_eq!(again.to_string(), text, "the rendering is not stable");
}

fn without_line_numbers(patch: &Patch) -> Vec<Operation> {
    let mut operations = patch.operations.clone();
    for operation in &mut operations {
        match operation {
            Operation::Add(AddFile { line, .. }) | Operation::Delete(DeleteFile { line, .. }) => *line = 0,
            Operation::Update(update) => {
                update.line = 0;
                update.hunks.iter_mut().for_each(|hunk| hunk.line = 0);
            }
        }
    }
    operations
}

/// Checks that an error quotes the line that it names, or names the one past the last, and that its message is short.
fn check_error(error: &ParseError, text: &str) {
    let lines: Vec<&str> = text.split('\n').collect();
    assert!((1..=lines.len() + 1).contains(&error.line), "{error}, of {} lines", lines.len());
    let quoted = lines.get(error.line - 1).copied().unwrap_or_default();
    // Shortened and escaped lines are not quoted verbatim.
    let is_verbatim = !error.found.contains(['\\', '…']);
    assert!(!is_verbatim || quoted.contains(&error.found), "{error}\nthe line is `{quoted}`");
    assert!(error.to_string().chars().count() < 2_000, "{error}");
}
