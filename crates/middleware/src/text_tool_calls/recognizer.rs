//! Incremental splitting of text into plain text and calls.

use std::collections::BTreeSet;

use super::candidate::{CallCandidate, CallOpener, CandidateProgress};
use super::parse::ParsedCall;
use super::{OfferedTools, TextToolCallForm};

/// A segment of a response's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TextSegment {
    Text(String),
    Call(ParsedCall),
}

/// Limit on the length of a call in bytes; anything longer is text.
const MAX_CALL: usize = 1 << 20;

/// Minimum cost of a rejected candidate, in bytes.
const MIN_COST: usize = 256;

/// Limit on the bytes scanned more than once because of rejected candidates. Beyond it the rest is text, which keeps
/// the work proportional to the text whatever a model writes.
const MAX_RESCANNED: usize = 4 << 20;

/// Splits one text. The segments do not depend on chunk boundaries, except that text may be split into several
/// segments.
#[derive(Debug)]
pub(super) struct CallRecognizer {
    openers: Vec<CallOpener>,
    tools: OfferedTools,
    /// Text received and not yet emitted.
    text: String,
    /// Bytes of `text` already emitted.
    emitted: usize,
    /// Possible call at `emitted`.
    candidate: Option<CallCandidate>,
    context: MarkdownContext,
    rescanned: usize,
}

/// Markdown context of a position in the text.
#[derive(Debug)]
struct MarkdownContext {
    /// Preceded by white space and calls only.
    at_start: bool,
    /// Preceded in its line by white space and calls only.
    at_line_start: bool,
    /// Backticks or tildes directly before the position.
    run: Option<MarkRun>,
    /// Within a code span: the number of backticks that opened it. A span ends with its line here, so that a stray
    /// backtick does not hide calls in later lines.
    span: Option<usize>,
    /// In a quoted line, which begins with `>`.
    quoted: bool,
    /// Within a fenced block: its opening fence.
    fence: Option<MarkRun>,
    /// In a line that closes the block if nothing else follows in it.
    ends_fence: bool,
    /// Within `<think>`.
    thinking: bool,
    /// Preceded by a call and white space.
    after_call: bool,
}

/// A repeated mark.
#[derive(Clone, Copy, Debug)]
struct MarkRun {
    mark: char,
    length: usize,
}

const THINK: &str = "<think>";
const THINK_END: &str = "</think>";

/// Next token of the text.
enum TextToken {
    /// A character of text.
    Text(char),
    /// `<think>` or its end.
    Think(&'static str),
    /// A possible start of a call.
    Opener(CallOpener),
    /// A possible prefix of a marker: more text is needed.
    Incomplete,
}

impl CallRecognizer {
    pub(super) fn new(forms: &BTreeSet<TextToolCallForm>, tools: OfferedTools) -> Self {
        Self {
            openers: CallOpener::for_forms(forms),
            tools,
            text: String::new(),
            emitted: 0,
            candidate: None,
            context: MarkdownContext::start(),
            rescanned: 0,
        }
    }

    /// Adds text.
    pub(super) fn feed(&mut self, text: &str, out: &mut Vec<TextSegment>) {
        self.text.push_str(text);
        self.process(false, out);
        self.text.drain(..self.emitted);
        self.emitted = 0;
    }

    /// Emits the rest after the end of the text.
    pub(super) fn finish(&mut self, out: &mut Vec<TextSegment>) {
        self.process(true, out);
    }

    /// Emits the rest as text after the stream broke.
    pub(super) fn abort(&mut self, out: &mut Vec<TextSegment>) {
        self.openers.clear();
        self.candidate = None;
        self.process(true, out);
    }

    fn process(&mut self, is_end: bool, out: &mut Vec<TextSegment>) {
        loop {
            let rest = self.text.get(self.emitted..).unwrap_or_default();
            let Some(candidate) = &mut self.candidate else {
                if self.scan(is_end, out) {
                    continue;
                }
                return;
            };
            match candidate.advance(rest) {
                CandidateProgress::Incomplete if is_end => match candidate.finish(rest) {
                    CandidateProgress::Ends(end) => self.complete(end, out),
                    CandidateProgress::Incomplete | CandidateProgress::NoMatch => {
                        self.reject(rest.len(), out)
                    }
                },
                CandidateProgress::Incomplete if rest.len() > MAX_CALL => self.reject(MAX_CALL, out),
                CandidateProgress::Incomplete => return,
                CandidateProgress::Ends(end) => self.complete(end, out),
                CandidateProgress::NoMatch => {
                    let cost = candidate.cost().max(MIN_COST);
                    self.reject(cost, out);
                }
            }
        }
    }

    /// Emits the calls of a complete candidate, or rejects it.
    fn complete(&mut self, end: usize, out: &mut Vec<TextSegment>) {
        let block = self.text.get(self.emitted..self.emitted + end);
        let block = block.filter(|block| block.len() <= MAX_CALL);
        let calls = self.candidate.as_ref().and_then(|candidate| candidate.calls(block?, &self.tools));
        let Some(calls) = calls else { return self.reject(end.min(MAX_CALL), out) };
        out.extend(calls.into_iter().map(TextSegment::Call));
        self.emitted += end;
        self.candidate = None;
        self.context = MarkdownContext { after_call: true, ..MarkdownContext::start() };
    }

    /// Rejects a candidate after scanning `cost` bytes: its first character is text, and a call may start at any later
    /// one.
    fn reject(&mut self, cost: usize, out: &mut Vec<TextSegment>) {
        self.candidate = None;
        self.rescanned += cost;
        if self.rescanned > MAX_RESCANNED {
            self.openers.clear();
        }
        if let Some(first) = self.text.get(self.emitted..).and_then(|rest| rest.chars().next()) {
            self.context.advance(first);
            self.emit(first.len_utf8(), out);
        }
    }

    /// Searches for the next candidate and emits the text before it. Returns `false` if no candidate has arrived yet.
    fn scan(&mut self, is_end: bool, out: &mut Vec<TextSegment>) -> bool {
        let mut length = 0;
        while let Some(rest) = self.text.get(self.emitted + length..).filter(|rest| !rest.is_empty()) {
            match self.token(rest, is_end) {
                TextToken::Text(';') if self.context.after_call => {
                    // Llama separates calls by semicolons.
                    self.emit(length, out);
                    self.emitted += 1;
                    length = 0;
                }
                TextToken::Text(c) => {
                    self.context.advance(c);
                    length += c.len_utf8();
                }
                TextToken::Think(marker) => {
                    self.context = MarkdownContext { thinking: marker == THINK, ..MarkdownContext::start() };
                    length += marker.len();
                }
                TextToken::Opener(opener) => {
                    self.emit(length, out);
                    self.candidate = Some(CallCandidate::new(opener));
                    return true;
                }
                TextToken::Incomplete => break,
            }
        }
        self.emit(length, out);
        false
    }

    fn token(&self, rest: &str, is_end: bool) -> TextToken {
        let Some(first) = rest.chars().next() else { return TextToken::Incomplete };
        if !matches!(first, '<' | '[' | '{' | '`') || self.openers.is_empty() {
            return TextToken::Text(first);
        }
        let context = &self.context;
        let think = if context.thinking { Some(THINK_END) } else { Some(THINK).filter(|_| context.at_start) };
        let openers = self.openers.iter().copied().filter(|opener| context.allows(*opener));
        let mut markers = think.into_iter().chain(openers.clone().map(CallOpener::marker));
        if !is_end && markers.any(|marker| marker.len() > rest.len() && marker.starts_with(rest)) {
            return TextToken::Incomplete;
        }
        if let Some(marker) = think.filter(|marker| rest.starts_with(marker)) {
            return TextToken::Think(marker);
        }
        let mut openers = openers.filter(|opener| rest.starts_with(opener.marker()));
        openers.next().map_or(TextToken::Text(first), TextToken::Opener)
    }

    fn emit(&mut self, length: usize, out: &mut Vec<TextSegment>) {
        let text = self.text.get(self.emitted..self.emitted + length).unwrap_or_default();
        self.emitted += length;
        match out.last_mut() {
            _ if text.is_empty() => {}
            Some(TextSegment::Text(before)) => before.push_str(text),
            Some(TextSegment::Call(_)) | None => out.push(TextSegment::Text(text.to_owned())),
        }
    }
}

impl MarkdownContext {
    fn start() -> Self {
        Self {
            at_start: true,
            at_line_start: true,
            run: None,
            span: None,
            quoted: false,
            fence: None,
            ends_fence: false,
            thinking: false,
            after_call: false,
        }
    }

    /// Returns `true` if a call may start at this position.
    fn allows(&self, opener: CallOpener) -> bool {
        let is_code = self.fence.is_some()
            || self.span.is_some()
            || self.run.is_some_and(|run| run.mark == '`' || self.at_line_start && run.is_fence());
        !(is_code || self.quoted || self.thinking)
            && match opener {
                CallOpener::Json(_) => self.at_start,
                CallOpener::Fence(_) => self.at_line_start && self.run.is_none(),
                CallOpener::ToolCall { .. }
                | CallOpener::Function
                | CallOpener::ToolCalls
                | CallOpener::PythonTag
                | CallOpener::DeepSeek => true,
            }
    }

    /// Advances by one character of text.
    fn advance(&mut self, c: char) {
        self.at_start &= c.is_whitespace();
        self.after_call &= c.is_whitespace();
        if let Some(run) = self.run.as_mut().filter(|run| run.mark == c) {
            run.length += 1;
            return;
        }
        self.end_run();
        if matches!(c, '`' | '~') {
            self.run = Some(MarkRun { mark: c, length: 1 });
            return;
        }
        self.quoted |= self.at_line_start && c == '>';
        self.ends_fence &= c.is_whitespace();
        self.at_line_start &= c.is_whitespace();
        if c == '\n' {
            self.fence = self.fence.filter(|_| !self.ends_fence);
            (self.at_line_start, self.ends_fence, self.quoted, self.span) = (true, false, false, None);
        }
    }

    /// Interprets a run of marks at its end: three or more at the start of a line make a fence, other backticks open or
    /// close a span.
    fn end_run(&mut self) {
        let Some(run) = self.run.take() else { return };
        match (self.fence, self.span) {
            (Some(opening), _) => self.ends_fence = self.at_line_start && run.closes(opening),
            (None, _) if self.at_line_start && run.is_fence() => self.fence = Some(run),
            (None, _) if run.mark == '~' => {}
            (None, None) => self.span = Some(run.length),
            (None, Some(opening)) => self.span = Some(opening).filter(|opening| *opening != run.length),
        }
        self.at_line_start = false;
    }
}

impl MarkRun {
    fn is_fence(self) -> bool {
        self.length >= 3
    }

    /// Returns `true` if this fence closes a block opened by `opening`.
    fn closes(self, opening: Self) -> bool {
        self.mark == opening.mark && self.length >= opening.length
    }
}
