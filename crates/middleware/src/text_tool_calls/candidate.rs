//! A possible call: a marker and the text received after it.

use std::collections::BTreeSet;

use super::parse::{self, ParsedCall};
use super::{OfferedTools, TextToolCallForm};

/// Start marker of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallOpener {
    /// `<tool_call>`, followed by an enabled one of the two.
    ToolCall {
        /// A JSON object.
        json: bool,
        /// `<function=`
        function: bool,
    },
    /// `<function=`
    Function,
    /// `[TOOL_CALLS]`
    ToolCalls,
    /// `<|python_tag|>`
    PythonTag,
    /// A code fence and its language.
    Fence(&'static str),
    /// DeepSeek's token before all calls.
    DeepSeek,
    /// Opening bracket of bare JSON.
    Json(&'static str),
}

impl CallOpener {
    /// Returns the markers of a set of forms.
    pub(super) fn for_forms(forms: &BTreeSet<TextToolCallForm>) -> Vec<Self> {
        use TextToolCallForm as Form;
        let (json, function) = (forms.contains(&Form::Hermes), forms.contains(&Form::Function));
        let mut openers = Vec::new();
        openers.extend((json || function).then_some(Self::ToolCall { json, function }));
        for form in forms {
            match form {
                Form::Hermes => {}
                Form::Function => openers.push(Self::Function),
                Form::Mistral => openers.push(Self::ToolCalls),
                Form::PythonTag => openers.push(Self::PythonTag),
                Form::Json => openers.extend([Self::Json("{"), Self::Json("[")]),
                Form::FencedJson => openers.extend([Self::Fence("```json"), Self::Fence("```tool_call")]),
                Form::DeepSeek => openers.push(Self::DeepSeek),
            }
        }
        openers
    }

    pub(super) fn marker(self) -> &'static str {
        match self {
            Self::ToolCall { .. } => "<tool_call>",
            Self::Function => FUNCTION,
            Self::ToolCalls => "[TOOL_CALLS]",
            Self::PythonTag => "<|python_tag|>",
            Self::DeepSeek => "<｜tool▁calls▁begin｜>",
            Self::Fence(marker) | Self::Json(marker) => marker,
        }
    }
}

/// State of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CandidateProgress {
    /// More text is needed.
    Incomplete,
    /// The candidate ends at this offset in bytes.
    Ends(usize),
    /// The text is not a call.
    NoMatch,
}

/// A possible call. Scans each byte of its text once, however the text is chunked.
#[derive(Debug)]
pub(super) struct CallCandidate {
    opener: CallOpener,
    stage: CandidateStage,
    /// Bytes scanned so far.
    scanned: usize,
    /// Start and end offsets of the JSON or of another body.
    body: usize,
    body_end: usize,
}

/// The part being scanned.
#[derive(Debug)]
enum CandidateStage {
    /// White space before the body.
    Head,
    /// A name, up to this marker.
    Name(&'static str),
    /// A JSON object or list.
    Json(JsonNesting),
    /// Any text up to this marker.
    Until(&'static str),
    /// White space before the end marker.
    Tail,
}

/// Open brackets of JSON.
#[derive(Debug, Default)]
struct JsonNesting {
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// The first key is one that a call has.
    plausible: bool,
}

/// Limit on the name and anything between it and the arguments, in bytes.
const MAX_NAME: usize = 160;

/// Limit on the offset of the first JSON key, in bytes.
const MAX_FIRST_KEY: usize = 256;

impl CallCandidate {
    pub(super) fn new(opener: CallOpener) -> Self {
        let (stage, scanned) = match opener {
            CallOpener::Json(_) => (CandidateStage::Json(JsonNesting::default()), 0),
            CallOpener::Function => (CandidateStage::Name(">"), opener.marker().len()),
            CallOpener::DeepSeek => (CandidateStage::Until(DEEP_SEEK_END), opener.marker().len()),
            CallOpener::ToolCall { .. }
            | CallOpener::ToolCalls
            | CallOpener::PythonTag
            | CallOpener::Fence(_) => (CandidateStage::Head, opener.marker().len()),
        };
        Self { opener, stage, scanned, body: scanned, body_end: 0 }
    }

    /// Continues scanning `text`, which is everything from the marker on.
    pub(super) fn advance(&mut self, text: &str) -> CandidateProgress {
        loop {
            let step = match &mut self.stage {
                CandidateStage::Head => self.head(text),
                CandidateStage::Name(end) => {
                    let end = *end;
                    self.name(text, end)
                }
                CandidateStage::Json(_) => self.json(text),
                CandidateStage::Until(end) => {
                    let end = *end;
                    self.until(text, end)
                }
                CandidateStage::Tail => self.tail(text),
            };
            match step {
                StageStep::Next(stage) => self.stage = stage,
                StageStep::Stop(progress) => return progress,
            }
        }
    }

    /// Final state when no more text follows: a missing end marker is accepted.
    pub(super) fn finish(&self, text: &str) -> CandidateProgress {
        match self.stage {
            CandidateStage::Tail => CandidateProgress::Ends(text.len()),
            CandidateStage::Until(_) if self.opener != CallOpener::Function => {
                CandidateProgress::Ends(text.len())
            }
            CandidateStage::Head
            | CandidateStage::Name(_)
            | CandidateStage::Json(_)
            | CandidateStage::Until(_) => CandidateProgress::NoMatch,
        }
    }

    /// Approximate cost of rejecting this candidate, in bytes scanned.
    pub(super) fn cost(&self) -> usize {
        self.body_end
    }

    /// Parses the calls in the complete text; `None` without calls, or if one names an unknown tool.
    pub(super) fn calls(&self, text: &str, tools: &OfferedTools) -> Option<Vec<ParsedCall>> {
        let body = |end: usize| text.get(self.body..end);
        let calls = match self.opener {
            CallOpener::Json(_) | CallOpener::PythonTag | CallOpener::Fence(_) => {
                parse::json(body(self.body_end)?)?
            }
            CallOpener::ToolCalls => match text.get(self.opener.marker().len()..self.body)?.trim() {
                "" => parse::json(body(self.body_end)?)?,
                name => {
                    let name = name.strip_suffix(ARGUMENTS)?;
                    // The name may be followed by an id of the server.
                    let name = name.split_once(CALL_ID).map_or(name, |(name, _)| name);
                    vec![parse::call_with_name(name, body(self.body_end)?)?]
                }
            },
            CallOpener::ToolCall { .. } if self.body_end > 0 => parse::json(body(self.body_end)?)?,
            CallOpener::ToolCall { .. } => {
                let body = body(text.len())?.trim_end();
                vec![parse::function(body.strip_suffix(TOOL_CALL_END).unwrap_or(body), tools)?]
            }
            CallOpener::Function => vec![parse::function(text, tools)?],
            CallOpener::DeepSeek => {
                let body = body(text.len())?;
                parse::deep_seek(body.strip_suffix(DEEP_SEEK_END).unwrap_or(body))?
            }
        };
        (!calls.is_empty() && calls.iter().all(|call| tools.contains(&call.name))).then_some(calls)
    }

    fn head(&mut self, text: &str) -> StageStep {
        let rest = text.get(self.scanned..).unwrap_or_default();
        let start = rest.trim_start();
        self.scanned = text.len() - start.len();
        self.body = self.scanned;
        match (self.opener, start.chars().next()) {
            (_, None) => StageStep::Stop(CandidateProgress::Incomplete),
            (CallOpener::Function, Some('{')) => {
                StageStep::Next(CandidateStage::Json(JsonNesting::for_arguments()))
            }
            (CallOpener::Function, Some('<')) => StageStep::Next(CandidateStage::Until(FUNCTION_END)),
            (CallOpener::ToolCall { function: true, .. }, Some('<')) if start.starts_with(FUNCTION) => {
                StageStep::Next(CandidateStage::Until(TOOL_CALL_END))
            }
            (CallOpener::ToolCall { function: true, .. }, Some('<')) if FUNCTION.starts_with(start) => {
                StageStep::Stop(CandidateProgress::Incomplete)
            }
            (CallOpener::ToolCall { json: false, .. }, Some(_)) => {
                StageStep::Stop(CandidateProgress::NoMatch)
            }
            (CallOpener::ToolCalls, Some(first)) if first.is_ascii_alphabetic() => {
                StageStep::Next(CandidateStage::Name(ARGUMENTS))
            }
            (CallOpener::ToolCalls | CallOpener::Fence(_), Some('[')) | (_, Some('{')) => {
                StageStep::Next(CandidateStage::Json(JsonNesting::default()))
            }
            (_, Some(_)) => StageStep::Stop(CandidateProgress::NoMatch),
        }
    }

    fn name(&mut self, text: &str, end: &'static str) -> StageStep {
        let from = self.opener.marker().len();
        let rest = text.get(from..).unwrap_or_default();
        let limit = MAX_NAME + end.len();
        let window = prefix(rest, limit);
        let found = window.find(end);
        let name = found.and_then(|offset| window.get(..offset)).unwrap_or(window);
        if name.contains(['\n', '<', '{', '"']) {
            return StageStep::Stop(CandidateProgress::NoMatch);
        }
        let Some(offset) = found else {
            return StageStep::Stop(if rest.len() < limit {
                CandidateProgress::Incomplete
            } else {
                CandidateProgress::NoMatch
            });
        };
        self.scanned = from + offset + end.len();
        self.body = self.scanned;
        StageStep::Next(if self.opener == CallOpener::Function {
            CandidateStage::Head
        } else {
            CandidateStage::Json(JsonNesting::for_arguments())
        })
    }

    fn json(&mut self, text: &str) -> StageStep {
        let CandidateStage::Json(nesting) = &mut self.stage else {
            return StageStep::Stop(CandidateProgress::NoMatch);
        };
        if !nesting.plausible {
            match is_call_key(text.get(self.body..).unwrap_or_default()) {
                Some(plausible) => nesting.plausible = plausible,
                None => return StageStep::Stop(CandidateProgress::Incomplete),
            }
            if !nesting.plausible {
                return StageStep::Stop(CandidateProgress::NoMatch);
            }
        }
        let Some(end) = nesting.end(text, self.scanned) else {
            // Before the first bracket, only white space has been scanned.
            let open = nesting.depth > 0 || text.get(self.scanned..).unwrap_or_default().trim().is_empty();
            self.scanned = text.len();
            return StageStep::Stop(if open {
                CandidateProgress::Incomplete
            } else {
                CandidateProgress::NoMatch
            });
        };
        self.scanned = end;
        self.body_end = end;
        match self.end_marker() {
            Some(_) => StageStep::Next(CandidateStage::Tail),
            None => StageStep::Stop(CandidateProgress::Ends(end)),
        }
    }

    fn until(&mut self, text: &str, end: &'static str) -> StageStep {
        let found = text.get(self.scanned..).and_then(|rest| rest.find(end));
        if let Some(offset) = found {
            return StageStep::Stop(CandidateProgress::Ends(self.scanned + offset + end.len()));
        }
        // The text may end with a part of the end marker.
        let from = text.len().saturating_sub(end.len()).max(self.scanned);
        self.scanned =
            (from..=text.len()).find(|offset| text.is_char_boundary(*offset)).unwrap_or(text.len());
        StageStep::Stop(CandidateProgress::Incomplete)
    }

    fn tail(&mut self, text: &str) -> StageStep {
        let end = self.end_marker().unwrap_or_default();
        let rest = text.get(self.scanned..).unwrap_or_default();
        let start = rest.trim_start();
        self.scanned = text.len() - start.len();
        StageStep::Stop(if start.starts_with(end) {
            CandidateProgress::Ends(self.scanned + end.len())
        } else if end.starts_with(start) {
            CandidateProgress::Incomplete
        } else {
            CandidateProgress::NoMatch
        })
    }

    /// Marker that must follow the JSON.
    fn end_marker(&self) -> Option<&'static str> {
        match self.opener {
            CallOpener::ToolCall { .. } => Some(TOOL_CALL_END),
            CallOpener::Function => Some(FUNCTION_END),
            CallOpener::Fence(_) => Some("```"),
            CallOpener::ToolCalls | CallOpener::PythonTag | CallOpener::DeepSeek | CallOpener::Json(_) => {
                None
            }
        }
    }
}

enum StageStep {
    Next(CandidateStage),
    Stop(CandidateProgress),
}

const FUNCTION: &str = "<function=";
const TOOL_CALL_END: &str = "</tool_call>";
const FUNCTION_END: &str = "</function>";
const ARGUMENTS: &str = "[ARGS]";
const CALL_ID: &str = "[CALL_ID]";
const DEEP_SEEK_END: &str = "<｜tool▁calls▁end｜>";

impl JsonNesting {
    /// State for an object of arguments, whose keys are arbitrary.
    fn for_arguments() -> Self {
        Self { plausible: true, ..Self::default() }
    }

    /// Continues scanning at `from`. Returns the end of the value.
    fn end(&mut self, text: &str, from: usize) -> Option<usize> {
        for (offset, byte) in text.bytes().enumerate().skip(from) {
            if self.in_string {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.in_string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        return Some(offset + 1);
                    }
                }
                _ => {}
            }
            if self.depth == 0 && !byte.is_ascii_whitespace() {
                return None;
            }
        }
        None
    }
}

/// Checks that the first key of an object, or of the first object of a list, is one that a call has; `None` if it has
/// not arrived yet. Keeps other JSON from being held back for long.
fn is_call_key(text: &str) -> Option<bool> {
    const KEYS: [&str; 6] = ["name", "arguments", "parameters", "function", "id", "type"];
    let undecided = if text.len() < MAX_FIRST_KEY { None } else { Some(false) };
    let start = prefix(text, MAX_FIRST_KEY).trim_start();
    let start = start.strip_prefix('[').map_or(start, str::trim_start);
    let Some(object) = start.strip_prefix('{') else {
        return if start.is_empty() { undecided } else { Some(false) };
    };
    let object = object.trim_start();
    let Some(key) = object.strip_prefix('"') else {
        return if object.is_empty() { undecided } else { Some(false) };
    };
    match key.split_once('"') {
        Some((key, _)) => Some(KEYS.contains(&key)),
        None if KEYS.iter().any(|known| known.starts_with(key)) => undecided,
        None => Some(false),
    }
}

/// At most `limit` bytes of the text. Decisions must not depend on how much has arrived beyond them.
fn prefix(text: &str, limit: usize) -> &str {
    let end = (0..=limit.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    text.get(..end.unwrap_or_default()).unwrap_or_default()
}
