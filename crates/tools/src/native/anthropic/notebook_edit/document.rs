//! A notebook as text with the ranges of its cells, so that one cell can change and the rest stays unchanged.

use std::ops::Range;

use serde::{Deserialize, Serialize as _};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::CellKind;
use crate::error::{ToolError, ToolErrorKind};

/// A notebook in format 4.
pub(super) struct Document<'a> {
    text: &'a str,
    /// The range of the list of cells, with its brackets.
    list: Range<usize>,
    cells: Vec<Cell<'a>>,
    /// Whether cells have IDs, which format 4.5 introduced.
    has_ids: bool,
}

struct Cell<'a> {
    range: Range<usize>,
    json: &'a str,
    id: Option<String>,
}

/// A cell to insert.
pub(super) struct NewCell<'a> {
    pub(super) kind: CellKind,
    pub(super) source: &'a str,
    /// The seed of the new ID.
    pub(super) seed: &'a str,
}

#[derive(Deserialize)]
struct Outline<'a> {
    #[serde(borrow)]
    cells: &'a RawValue,
    nbformat: u64,
    #[serde(default)]
    nbformat_minor: u64,
}

#[derive(Deserialize)]
struct Identity {
    id: Option<String>,
}

impl<'a> Document<'a> {
    pub(super) fn parse(path: &str, text: &'a str) -> Result<Self, ToolError> {
        let refused = |why: String| {
            let message = format!("{path} is no notebook that can be edited cell by cell: {why}");
            ToolError::failed(message)
        };
        let json = text.strip_prefix('\u{feff}').unwrap_or(text);
        let broken = |error: serde_json::Error| refused(error.to_string()).with_source(error);
        let outline: Outline<'a> = serde_json::from_str(json).map_err(broken)?;
        if outline.nbformat != 4 {
            return Err(refused(format!("expected nbformat 4, found {}", outline.nbformat)));
        }
        let raw: Vec<&'a RawValue> = serde_json::from_str(outline.cells.get()).map_err(broken)?;
        let cell = |raw: &&'a RawValue| {
            let Identity { id } = serde_json::from_str(raw.get()).map_err(broken)?;
            Ok(Cell { range: range_in(text, raw.get()), json: raw.get(), id })
        };
        Ok(Self {
            text,
            list: range_in(text, outline.cells.get()),
            cells: raw.iter().map(cell).collect::<Result<_, ToolError>>()?,
            has_ids: outline.nbformat_minor >= 5,
        })
    }

    /// Returns the index of the cell with this ID, or otherwise with this number, counted from 1 as in `read_file`.
    pub(super) fn find(&self, wanted: &str) -> Result<usize, ToolError> {
        let wanted = wanted.trim();
        let by_id = self.cells.iter().position(|cell| cell.id.as_deref() == Some(wanted));
        let number =
            || wanted.strip_prefix("cell").unwrap_or(wanted).trim_start_matches(['-', ' ']).parse().ok();
        let by_number = || number().and_then(|number: usize| number.checked_sub(1));
        by_id.or_else(by_number).filter(|at| *at < self.cells.len()).ok_or_else(|| {
            let known: Vec<String> = (0..self.cells.len().min(20)).map(|at| self.name(at)).collect();
            let known = if known.is_empty() { "it has none".to_owned() } else { known.join(", ") };
            let message =
                format!("there is no cell {wanted:?} in the notebook of {} cells: {known}", self.cells.len());
            ToolError::new(ToolErrorKind::NotFound, message)
        })
    }

    /// Returns the ID of a cell, or its number if it has no ID.
    pub(super) fn name(&self, at: usize) -> String {
        let id = self.cells.get(at).and_then(|cell| cell.id.clone());
        id.unwrap_or_else(|| (at + 1).to_string())
    }

    /// Returns the notebook with new content in a cell.
    pub(super) fn replaced(
        &self,
        at: usize,
        source: &str,
        kind: Option<CellKind>,
    ) -> Result<String, ToolError> {
        let Some(cell) = self.cells.get(at) else { return Ok(self.text.to_owned()) };
        let mut object: Map<String, Value> = serde_json::from_str(cell.json).map_err(unwritable)?;
        let is_string = object.get("source").is_some_and(Value::is_string);
        object.insert("source".into(), if is_string { source.into() } else { lines_of(source) });
        if let Some(kind) = kind {
            object.insert("cell_type".into(), json!(kind));
        }
        if object.get("cell_type") == Some(&json!(CellKind::Code)) {
            object.insert("outputs".into(), json!([]));
            object.insert("execution_count".into(), Value::Null);
        } else {
            object.remove("outputs");
            object.remove("execution_count");
        }
        Ok(self.spliced(cell.range.clone(), &self.serialized(&object)?))
    }

    /// Returns the notebook without a cell and the comma next to it.
    pub(super) fn without(&self, at: usize) -> String {
        let before = at.checked_sub(1).and_then(|before| self.cells.get(before));
        match (before, self.cells.get(at), self.cells.get(at + 1)) {
            (_, Some(cell), Some(next)) => self.spliced(cell.range.start..next.range.start, ""),
            (Some(before), Some(cell), None) => self.spliced(before.range.end..cell.range.end, ""),
            (None, Some(_), None) => self.spliced(self.list.clone(), "[]"),
            (_, None, _) => self.text.to_owned(),
        }
    }

    /// Returns the notebook with a new cell, after another one or at the start, and the name of the new cell.
    pub(super) fn with_new(
        &self,
        after: Option<usize>,
        cell: &NewCell<'_>,
    ) -> Result<(String, String), ToolError> {
        let mut object = Map::new();
        object.insert("cell_type".into(), json!(cell.kind));
        if cell.kind == CellKind::Code {
            object.insert("execution_count".into(), Value::Null);
            object.insert("outputs".into(), json!([]));
        }
        let number = after.map_or(1, |after| after + 2);
        let id = self.has_ids.then(|| self.new_id(cell));
        if let Some(id) = &id {
            object.insert("id".into(), id.as_str().into());
        }
        object.insert("metadata".into(), json!({}));
        object.insert("source".into(), lines_of(cell.source));
        let (json, gap) = (self.serialized(&object)?, self.gap());
        let text = match (after.and_then(|after| self.cells.get(after)), self.cells.first()) {
            (Some(before), _) => self.spliced(before.range.end..before.range.end, &format!(",{gap}{json}")),
            (None, Some(first)) => {
                self.spliced(first.range.start..first.range.start, &format!("{json},{gap}"))
            }
            (None, None) => {
                let end = if gap.is_empty() { "" } else { "\n " };
                self.spliced(self.list.clone(), &format!("[{gap}{json}{end}]"))
            }
        };
        Ok((text, id.unwrap_or_else(|| number.to_string())))
    }

    /// Returns the text with a range replaced.
    fn spliced(&self, range: Range<usize>, replacement: &str) -> String {
        let (before, after) = (self.text.get(..range.start), self.text.get(range.end..));
        [before.unwrap_or_default(), replacement, after.unwrap_or_default()].concat()
    }

    /// Returns the whitespace before the first cell: line end and indentation; empty if the notebook is one line.
    /// Jupyter indents by one space.
    fn gap(&self) -> &'a str {
        match self.cells.first() {
            Some(first) => self.text.get(self.list.start + 1..first.range.start).unwrap_or_default(),
            None if self.text.contains('\n') => "\n  ",
            None => "",
        }
    }

    /// Returns a cell as JSON with the indentation of the notebook.
    fn serialized(&self, cell: &Map<String, Value>) -> Result<String, ToolError> {
        let gap = self.gap();
        if !gap.contains('\n') {
            return serde_json::to_string(cell).map_err(unwritable);
        }
        let indentation = gap.rsplit('\n').next().unwrap_or_default();
        // A cell is two levels deep.
        let unit = indentation.get(..indentation.len().div_ceil(2)).unwrap_or_default();
        let mut bytes = Vec::new();
        let formatter = serde_json::ser::PrettyFormatter::with_indent(unit.as_bytes());
        cell.serialize(&mut serde_json::Serializer::with_formatter(&mut bytes, formatter))
            .map_err(unwritable)?;
        // Line feeds within strings are escaped, so all others are layout.
        let line_end = if gap.contains("\r\n") { "\r\n" } else { "\n" };
        Ok(String::from_utf8_lossy(&bytes).replace('\n', &format!("{line_end}{indentation}")))
    }

    /// Returns an unused ID of eight hexadecimal digits, which is the same for the same call.
    fn new_id(&self, cell: &NewCell<'_>) -> String {
        let seed = [cell.seed, cell.source].concat();
        let mut hash = seed.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        loop {
            let id = format!("{:08x}", hash >> 32);
            if self.cells.iter().all(|known| known.id.as_deref() != Some(&id)) {
                return id;
            }
            hash = hash.wrapping_add(1 << 32);
        }
    }
}

/// Returns the range of a part that was borrowed from `text`.
fn range_in(text: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr().addr() - text.as_ptr().addr();
    start..start + part.len()
}

/// Splits a text into the list of lines of the notebook format, with their line ends.
fn lines_of(source: &str) -> Value {
    source.split_inclusive('\n').collect::<Vec<_>>().into()
}

fn unwritable(error: serde_json::Error) -> ToolError {
    ToolError::failed(format!("the cell cannot be changed: {error}")).with_source(error)
}
