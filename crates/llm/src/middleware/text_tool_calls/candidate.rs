//! What may be a call: a marker, and as much of what follows as has come.

use std::collections::BTreeSet;

use super::parse::{self, WrittenCall};
use super::{Offered, TextToolCallForm};

/// What a call may begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opener {
    /// `<tool_call>`, before what is enabled of the two.
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
    /// A fence and its language.
    Fence(&'static str),
    /// DeepSeek's token before all calls.
    DeepSeek,
    /// A bracket of bare JSON.
    Json(&'static str),
}

impl Opener {
    /// Those of a set of forms.
    pub(super) fn of(forms: &BTreeSet<TextToolCallForm>) -> Vec<Self> {
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

/// How far a candidate is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// More text will decide.
    Open,
    /// It ends here, in bytes.
    Ends(usize),
    /// It is no call.
    Not,
}

/// A possible call. Looks at each byte of its text once, however the text is cut into pieces.
#[derive(Debug)]
pub(super) struct Candidate {
    opener: Opener,
    stage: Stage,
    /// How much has been looked at, in bytes.
    seen: usize,
    /// Where JSON begins and ends, or another body.
    body: usize,
    body_end: usize,
}

/// What is being read.
#[derive(Debug)]
enum Stage {
    /// The white space before the body.
    Head,
    /// A name, up to this marker.
    Name(&'static str),
    /// A JSON object or list.
    Json(Nesting),
    /// Anything, up to this marker.
    Until(&'static str),
    /// The white space before the end marker.
    Tail,
}

/// The brackets of JSON that are open.
#[derive(Debug, Default)]
struct Nesting {
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// Its first key is one that a call has.
    plausible: bool,
}

/// The longest name with what may stand beside it before its arguments, in bytes.
const LONGEST_NAME: usize = 160;

/// Within how many bytes JSON must show its first key.
const FIRST_KEY: usize = 256;

impl Candidate {
    pub(super) fn new(opener: Opener) -> Self {
        let (stage, seen) = match opener {
            Opener::Json(_) => (Stage::Json(Nesting::default()), 0),
            Opener::Function => (Stage::Name(">"), opener.marker().len()),
            Opener::DeepSeek => (Stage::Until(DEEP_SEEK_END), opener.marker().len()),
            Opener::ToolCall { .. } | Opener::ToolCalls | Opener::PythonTag | Opener::Fence(_) => {
                (Stage::Head, opener.marker().len())
            }
        };
        Self { opener, stage, seen, body: seen, body_end: 0 }
    }

    /// Looks at what has come, which begins with the marker.
    pub(super) fn advance(&mut self, text: &str) -> Progress {
        loop {
            let step = match &mut self.stage {
                Stage::Head => self.head(text),
                Stage::Name(end) => {
                    let end = *end;
                    self.name(text, end)
                }
                Stage::Json(_) => self.json(text),
                Stage::Until(end) => {
                    let end = *end;
                    self.until(text, end)
                }
                Stage::Tail => self.tail(text),
            };
            match step {
                Step::Next(stage) => self.stage = stage,
                Step::Stop(progress) => return progress,
            }
        }
    }

    /// Where it ends if nothing more comes: a missing end marker is forgiven.
    pub(super) fn at_the_end(&self, text: &str) -> Progress {
        match self.stage {
            Stage::Tail => Progress::Ends(text.len()),
            Stage::Until(_) if self.opener != Opener::Function => Progress::Ends(text.len()),
            Stage::Head | Stage::Name(_) | Stage::Json(_) | Stage::Until(_) => Progress::Not,
        }
    }

    /// How much it took to see that it is no call, in bytes, beyond a few.
    pub(super) fn looked_at(&self) -> usize {
        self.body_end
    }

    /// The calls that its whole text makes; `None` if it makes none, or one of a tool that is not there.
    pub(super) fn calls(&self, text: &str, offered: &Offered) -> Option<Vec<WrittenCall>> {
        let body = |end: usize| text.get(self.body..end);
        let calls = match self.opener {
            Opener::Json(_) | Opener::PythonTag | Opener::Fence(_) => parse::json(body(self.body_end)?)?,
            Opener::ToolCalls => match text.get(self.opener.marker().len()..self.body)?.trim() {
                "" => parse::json(body(self.body_end)?)?,
                name => {
                    let name = name.strip_suffix(ARGUMENTS)?;
                    // An id of the server's own may stand behind the name.
                    let name = name.split_once(CALL_ID).map_or(name, |(name, _)| name);
                    vec![parse::named(name, body(self.body_end)?)?]
                }
            },
            Opener::ToolCall { .. } if self.body_end > 0 => parse::json(body(self.body_end)?)?,
            Opener::ToolCall { .. } => {
                let body = body(text.len())?.trim_end();
                vec![parse::function(body.strip_suffix(TOOL_CALL_END).unwrap_or(body), offered)?]
            }
            Opener::Function => vec![parse::function(text, offered)?],
            Opener::DeepSeek => {
                let body = body(text.len())?;
                parse::deep_seek(body.strip_suffix(DEEP_SEEK_END).unwrap_or(body))?
            }
        };
        (!calls.is_empty() && calls.iter().all(|call| offered.has(&call.name))).then_some(calls)
    }

    fn head(&mut self, text: &str) -> Step {
        let rest = text.get(self.seen..).unwrap_or_default();
        let start = rest.trim_start();
        self.seen = text.len() - start.len();
        self.body = self.seen;
        match (self.opener, start.chars().next()) {
            (_, None) => Step::Stop(Progress::Open),
            (Opener::Function, Some('{')) => Step::Next(Stage::Json(Nesting::of_arguments())),
            (Opener::Function, Some('<')) => Step::Next(Stage::Until(FUNCTION_END)),
            (Opener::ToolCall { function: true, .. }, Some('<')) if start.starts_with(FUNCTION) => {
                Step::Next(Stage::Until(TOOL_CALL_END))
            }
            (Opener::ToolCall { function: true, .. }, Some('<')) if FUNCTION.starts_with(start) => {
                Step::Stop(Progress::Open)
            }
            (Opener::ToolCall { json: false, .. }, Some(_)) => Step::Stop(Progress::Not),
            (Opener::ToolCalls, Some(first)) if first.is_ascii_alphabetic() => {
                Step::Next(Stage::Name(ARGUMENTS))
            }
            (Opener::ToolCalls | Opener::Fence(_), Some('[')) | (_, Some('{')) => {
                Step::Next(Stage::Json(Nesting::default()))
            }
            (_, Some(_)) => Step::Stop(Progress::Not),
        }
    }

    fn name(&mut self, text: &str, end: &'static str) -> Step {
        let from = self.opener.marker().len();
        let rest = text.get(from..).unwrap_or_default();
        let most = LONGEST_NAME + end.len();
        let looked_at = beginning(rest, most);
        let found = looked_at.find(end);
        let name = found.and_then(|place| looked_at.get(..place)).unwrap_or(looked_at);
        if name.contains(['\n', '<', '{', '"']) {
            return Step::Stop(Progress::Not);
        }
        let Some(place) = found else {
            return Step::Stop(if rest.len() < most { Progress::Open } else { Progress::Not });
        };
        self.seen = from + place + end.len();
        self.body = self.seen;
        Step::Next(if self.opener == Opener::Function {
            Stage::Head
        } else {
            Stage::Json(Nesting::of_arguments())
        })
    }

    fn json(&mut self, text: &str) -> Step {
        let Stage::Json(nesting) = &mut self.stage else { return Step::Stop(Progress::Not) };
        if !nesting.plausible {
            match first_key(text.get(self.body..).unwrap_or_default()) {
                Some(is_a_calls) => nesting.plausible = is_a_calls,
                None => return Step::Stop(Progress::Open),
            }
            if !nesting.plausible {
                return Step::Stop(Progress::Not);
            }
        }
        let Some(end) = nesting.end(text, self.seen) else {
            // What was seen before is white space where nothing has begun.
            let begun = nesting.depth > 0 || text.get(self.seen..).unwrap_or_default().trim().is_empty();
            self.seen = text.len();
            return Step::Stop(if begun { Progress::Open } else { Progress::Not });
        };
        self.seen = end;
        self.body_end = end;
        match self.end_marker() {
            Some(_) => Step::Next(Stage::Tail),
            None => Step::Stop(Progress::Ends(end)),
        }
    }

    fn until(&mut self, text: &str, end: &'static str) -> Step {
        let found = text.get(self.seen..).and_then(|rest| rest.find(end));
        if let Some(place) = found {
            return Step::Stop(Progress::Ends(self.seen + place + end.len()));
        }
        // The end marker may have begun.
        let from = text.len().saturating_sub(end.len()).max(self.seen);
        self.seen = (from..=text.len()).find(|place| text.is_char_boundary(*place)).unwrap_or(text.len());
        Step::Stop(Progress::Open)
    }

    fn tail(&mut self, text: &str) -> Step {
        let end = self.end_marker().unwrap_or_default();
        let rest = text.get(self.seen..).unwrap_or_default();
        let start = rest.trim_start();
        self.seen = text.len() - start.len();
        Step::Stop(if start.starts_with(end) {
            Progress::Ends(self.seen + end.len())
        } else if end.starts_with(start) {
            Progress::Open
        } else {
            Progress::Not
        })
    }

    /// What follows the JSON.
    fn end_marker(&self) -> Option<&'static str> {
        match self.opener {
            Opener::ToolCall { .. } => Some(TOOL_CALL_END),
            Opener::Function => Some(FUNCTION_END),
            Opener::Fence(_) => Some("```"),
            Opener::ToolCalls | Opener::PythonTag | Opener::DeepSeek | Opener::Json(_) => None,
        }
    }
}

enum Step {
    Next(Stage),
    Stop(Progress),
}

const FUNCTION: &str = "<function=";
const TOOL_CALL_END: &str = "</tool_call>";
const FUNCTION_END: &str = "</function>";
const ARGUMENTS: &str = "[ARGS]";
const CALL_ID: &str = "[CALL_ID]";
const DEEP_SEEK_END: &str = "<｜tool▁calls▁end｜>";

impl Nesting {
    /// Of an object that holds arguments alone, whose keys may be any.
    fn of_arguments() -> Self {
        Self { plausible: true, ..Self::default() }
    }

    /// Where the value ends that is read on from `from`.
    fn end(&mut self, text: &str, from: usize) -> Option<usize> {
        for (place, byte) in text.bytes().enumerate().skip(from) {
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
                        return Some(place + 1);
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

/// Whether the first key of an object, or of the first object of a list, is one that a call has; `None` if it has not
/// come yet. Any other JSON need not be held back for long.
fn first_key(text: &str) -> Option<bool> {
    const KEYS: [&str; 6] = ["name", "arguments", "parameters", "function", "id", "type"];
    let undecided = if text.len() < FIRST_KEY { None } else { Some(false) };
    let start = beginning(text, FIRST_KEY).trim_start();
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

/// No more of a text than so many bytes: what is decided must not depend on how much has come beyond them.
fn beginning(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    text.get(..end.unwrap_or_default()).unwrap_or_default()
}
