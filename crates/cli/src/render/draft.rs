//! A tool call that a model still writes: what it is about, and the diff that it will be.

mod diff_tail;
mod field_reader;

use pintle_patch::{HunkLine, PatchStream, StreamItem};
use serde_json::Value;
use similar::TextDiff;

use self::diff_tail::DiffTail;
pub(super) use self::diff_tail::{DiffLine, LineKind};
use self::field_reader::{FieldReader, Piece};
use super::summary;

/// The tool whose argument is a patch, in every toolset that has it.
const APPLY_PATCH: &str = "apply_patch";

/// Bytes of each argument that are kept for the subject.
const SUBJECT: usize = 200;

/// The longest text that is compared with another one, in bytes.
const COMPARED: usize = 64 << 10;

/// The most lines of both together: the time of a comparison can grow as the square of them, and the answer waits.
const COMPARED_LINES: usize = 2_000;

/// Unchanged lines around a change.
const CONTEXT_LINES: usize = 1;

/// One call, fed with its arguments as they are written. It keeps the end of the diff, not the arguments.
#[derive(Debug)]
pub(crate) struct Draft {
    /// The call's id.
    pub(super) call_id: String,
    /// What the tool is called, as far as known.
    pub(super) tool_name: String,
    arguments: Arguments,
    patch: Option<PatchStream>,
    /// The arguments that tell what the call is about, in the order in which they were written.
    subject: Vec<(String, String)>,
    diff: DiffTail,
}

/// What the arguments are written in.
#[derive(Debug)]
enum Arguments {
    Unseen,
    Json(FieldReader),
    /// The text of a custom tool.
    Free,
}

impl Draft {
    /// A call whose arguments have not begun.
    pub(super) fn new(call_id: &str, tool_name: &str) -> Self {
        Self {
            call_id: call_id.to_owned(),
            tool_name: tool_name.to_owned(),
            arguments: Arguments::Unseen,
            patch: Some(PatchStream::new()),
            subject: Vec::new(),
            diff: DiffTail::default(),
        }
    }

    /// Takes in the next piece of the arguments.
    pub(super) fn push(&mut self, piece: &str) {
        if matches!(self.arguments, Arguments::Unseen) {
            match piece.trim_start().chars().next() {
                None => return,
                Some('{') => self.arguments = Arguments::Json(FieldReader::default()),
                Some(_) => self.arguments = Arguments::Free,
            }
        }
        match &mut self.arguments {
            Arguments::Json(reader) => {
                for piece in reader.read(piece) {
                    self.field(&piece);
                }
            }
            Arguments::Free if self.tool_name == APPLY_PATCH => self.patch(piece),
            Arguments::Free | Arguments::Unseen => {}
        }
    }

    /// The arguments are complete: what they replace and what with can be compared.
    pub(super) fn complete(&mut self, arguments: &Value) {
        // The parser keeps what it has read.
        self.patch = None;
        let text = |name| arguments.get(name).and_then(Value::as_str);
        let (Some(old), Some(new)) = (text("old_string"), text("new_string")) else { return };
        let is_long = old.len().max(new.len()) > COMPARED;
        if is_long || old.lines().chain(new.lines()).nth(COMPARED_LINES).is_some() {
            return;
        }
        self.diff = DiffTail::default();
        let [old, new] = [old, new].map(|text| text.split_inclusive('\n').collect::<Vec<_>>());
        let compared = TextDiff::configure().newline_terminated(true).diff_slices(&old, &new);
        for line in compared.unified_diff().context_radius(CONTEXT_LINES).to_string().lines() {
            match line.split_at_checked(1) {
                Some(("+", rest)) => self.diff.line(LineKind::Added, rest),
                Some(("-", rest)) => self.diff.line(LineKind::Removed, rest),
                Some((" ", rest)) => self.diff.line(LineKind::Kept, rest),
                // Where in these texts a hunk begins says nothing of the file, and a missing line end is not one.
                Some(_) | None => {}
            }
        }
    }

    /// What the call is about, as far as it is written.
    pub(super) fn subject(&self) -> String {
        let told: Vec<&str> = self.subject.iter().map(|(_, text)| text.as_str()).collect();
        summary::one_line(&told.join(" "), summary::MAX_CHARS)
    }

    /// How many lines come and go.
    pub(super) fn counts(&self) -> (u64, u64) {
        self.diff.counts()
    }

    /// The newest lines of the diff, at most so many.
    pub(super) fn newest(&self, lines: usize) -> impl Iterator<Item = DiffLine> {
        self.diff.newest(lines)
    }

    fn field(&mut self, piece: &Piece) {
        match piece.name.as_str() {
            "old_string" => self.diff.piece(LineKind::Removed, piece),
            "new_string" | "content" => self.diff.piece(LineKind::Added, piece),
            "patch" | "input" if self.tool_name == APPLY_PATCH => self.patch(&piece.text),
            name if summary::KEY_ARGUMENTS.contains(&name) => self.tell(name, &piece.text),
            _ => {}
        }
    }

    /// Shows what has become certain. A patch that turns out to be none shows no more.
    fn patch(&mut self, piece: &str) {
        let Some(stream) = &mut self.patch else { return };
        let mut items = Vec::new();
        let read = stream.push(piece, &mut items);
        if read.is_err() {
            self.patch = None;
        }
        for item in items {
            self.item(&item);
        }
    }

    fn item(&mut self, item: &StreamItem) {
        match item {
            StreamItem::AddFile { path, .. } => self.file("A", path),
            StreamItem::DeleteFile { path, .. } => self.file("D", path),
            StreamItem::UpdateFile { path, .. } => self.file("M", path),
            StreamItem::MoveTo(path) => self.diff.line(LineKind::File, &format!("-> {path}")),
            StreamItem::Hunk { .. } => self.diff.line(LineKind::Place, ""),
            StreamItem::Hint(hint) => self.diff.line(LineKind::Place, hint),
            StreamItem::Line(HunkLine::Context(line)) => self.diff.line(LineKind::Kept, line),
            StreamItem::Line(HunkLine::Remove(line)) => self.diff.line(LineKind::Removed, line),
            StreamItem::Line(HunkLine::Add(line)) => self.diff.line(LineKind::Added, line),
            StreamItem::EndOfFile | StreamItem::FileEnded => {}
        }
    }

    fn file(&mut self, change: &str, path: &str) {
        self.diff.line(LineKind::File, &format!("{change} {path}"));
        if self.subject.iter().map(|(_, told)| told.len()).sum::<usize>() < SUBJECT {
            let path: String = path.chars().take(SUBJECT).collect();
            self.subject.push((path.clone(), path));
        }
    }

    fn tell(&mut self, name: &str, text: &str) {
        if !self.subject.iter().any(|(known, _)| known == name) {
            self.subject.push((name.to_owned(), String::new()));
        }
        for (_, told) in self.subject.iter_mut().filter(|(known, _)| known == name) {
            let room = SUBJECT.saturating_sub(told.len());
            told.extend(text.chars().take(room));
        }
    }
}

#[cfg(test)]
mod tests;
