//! Text in pieces of any size, taken apart into text and calls.

use std::collections::BTreeSet;

use super::candidate::{Candidate, Opener, Progress};
use super::parse::WrittenCall;
use super::{Offered, TextToolCallForm};

/// A part of an answer's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    Call(WrittenCall),
}

/// The longest call, in bytes. What is longer is text.
const LONGEST_CALL: usize = 1 << 20;

/// What a candidate costs that shows at its beginning that it is none, in bytes.
const EARLY: usize = 256;

/// How much may be looked at again because it was no call after all, in bytes. Beyond it the rest is text, so that the
/// work stays in proportion to the text whatever a model writes.
const MOST_LOOKED_AT_AGAIN: usize = 4 << 20;

/// Takes one text apart. What comes out does not depend on how the text is cut, but that text may come in several
/// pieces.
#[derive(Debug)]
pub(super) struct Recognizer {
    openers: Vec<Opener>,
    offered: Offered,
    /// What has come.
    text: String,
    /// Up to where it is decided, in bytes.
    decided: usize,
    /// What the rest may be.
    candidate: Option<Candidate>,
    place: Place,
    looked_at_again: usize,
}

/// Where in the text something stands.
#[derive(Debug)]
struct Place {
    /// Nothing but white space and calls stands before it.
    at_start: bool,
    /// The same for the line.
    at_line_start: bool,
    /// The backticks, or the tildes, that stand directly before it.
    run: Option<Run>,
    /// Within a code span, as many backticks as began it. A span ends with its line here, so that a backtick that
    /// stands alone does not hide what follows in others.
    span: Option<usize>,
    /// In a line that begins with `>`, as those do that quote.
    quoted: bool,
    /// Within a fenced block, what began it.
    fence: Option<Run>,
    /// In a line that ends the block if nothing else stands in it.
    ends_fence: bool,
    /// Within `<think>`.
    thinking: bool,
    /// The piece before is a call.
    behind_call: bool,
}

/// A mark, so many times in a row.
#[derive(Clone, Copy, Debug)]
struct Run {
    mark: char,
    length: usize,
}

const THINK: &str = "<think>";
const THINK_END: &str = "</think>";

/// What stands at a place.
enum Here {
    /// A character of text.
    Text(char),
    /// `<think>` or its end.
    Think(&'static str),
    /// The beginning of a call, perhaps.
    Opens(Opener),
    /// The beginning of a marker, perhaps: more text will decide.
    Undecided,
}

impl Recognizer {
    pub(super) fn new(forms: &BTreeSet<TextToolCallForm>, offered: Offered) -> Self {
        Self {
            openers: Opener::of(forms),
            offered,
            text: String::new(),
            decided: 0,
            candidate: None,
            place: Place::start(),
            looked_at_again: 0,
        }
    }

    /// Takes more text.
    pub(super) fn feed(&mut self, text: &str, out: &mut Vec<Piece>) {
        self.text.push_str(text);
        self.go_on(false, out);
        self.text.drain(..self.decided);
        self.decided = 0;
    }

    /// There is no more text: what still waits is decided.
    pub(super) fn finish(&mut self, out: &mut Vec<Piece>) {
        self.go_on(true, out);
    }

    /// The text broke off: what still waits is text.
    pub(super) fn give_up(&mut self, out: &mut Vec<Piece>) {
        self.openers.clear();
        self.candidate = None;
        self.go_on(true, out);
    }

    fn go_on(&mut self, is_end: bool, out: &mut Vec<Piece>) {
        loop {
            let rest = self.text.get(self.decided..).unwrap_or_default();
            let Some(candidate) = &mut self.candidate else {
                if self.scan(is_end, out) {
                    continue;
                }
                return;
            };
            match candidate.advance(rest) {
                Progress::Open if is_end => match candidate.at_the_end(rest) {
                    Progress::Ends(end) => self.decide(end, out),
                    Progress::Open | Progress::Not => self.refuse(rest.len(), out),
                },
                Progress::Open if rest.len() > LONGEST_CALL => self.refuse(LONGEST_CALL, out),
                Progress::Open => return,
                Progress::Ends(end) => self.decide(end, out),
                Progress::Not => {
                    let length = candidate.looked_at().max(EARLY);
                    self.refuse(length, out);
                }
            }
        }
    }

    /// A candidate has come to its end.
    fn decide(&mut self, end: usize, out: &mut Vec<Piece>) {
        let block = self.text.get(self.decided..self.decided + end);
        let block = block.filter(|block| block.len() <= LONGEST_CALL);
        let calls = self.candidate.as_ref().and_then(|candidate| candidate.calls(block?, &self.offered));
        let Some(calls) = calls else { return self.refuse(end.min(LONGEST_CALL), out) };
        out.extend(calls.into_iter().map(Piece::Call));
        self.decided += end;
        self.candidate = None;
        self.place = Place { behind_call: true, ..Place::start() };
    }

    /// A candidate is none, which `length` bytes had to be looked at for: its first character is text, and a call may
    /// begin at any behind it.
    fn refuse(&mut self, length: usize, out: &mut Vec<Piece>) {
        self.candidate = None;
        self.looked_at_again += length;
        if self.looked_at_again > MOST_LOOKED_AT_AGAIN {
            self.openers.clear();
        }
        if let Some(first) = self.text.get(self.decided..).and_then(|rest| rest.chars().next()) {
            self.place.pass(first);
            self.say(first.len_utf8(), out);
        }
    }

    /// Looks for the next candidate, and says the text before it. `false` if there is none yet.
    fn scan(&mut self, is_end: bool, out: &mut Vec<Piece>) -> bool {
        let mut said = 0;
        while let Some(rest) = self.text.get(self.decided + said..).filter(|rest| !rest.is_empty()) {
            match self.here(rest, is_end) {
                Here::Text(';') if self.place.behind_call => {
                    // Llama sets its calls off by semicolons.
                    self.say(said, out);
                    self.decided += 1;
                    said = 0;
                }
                Here::Text(c) => {
                    self.place.pass(c);
                    said += c.len_utf8();
                }
                Here::Think(marker) => {
                    self.place = Place { thinking: marker == THINK, ..Place::start() };
                    said += marker.len();
                }
                Here::Opens(opener) => {
                    self.say(said, out);
                    self.candidate = Some(Candidate::new(opener));
                    return true;
                }
                Here::Undecided => break,
            }
        }
        self.say(said, out);
        false
    }

    fn here(&self, rest: &str, is_end: bool) -> Here {
        let Some(first) = rest.chars().next() else { return Here::Undecided };
        if !matches!(first, '<' | '[' | '{' | '`') || self.openers.is_empty() {
            return Here::Text(first);
        }
        let place = &self.place;
        let think = if place.thinking { Some(THINK_END) } else { Some(THINK).filter(|_| place.at_start) };
        let openers = self.openers.iter().copied().filter(|opener| place.admits(*opener));
        let mut markers = think.into_iter().chain(openers.clone().map(Opener::marker));
        if !is_end && markers.any(|marker| marker.len() > rest.len() && marker.starts_with(rest)) {
            return Here::Undecided;
        }
        if let Some(marker) = think.filter(|marker| rest.starts_with(marker)) {
            return Here::Think(marker);
        }
        let mut openers = openers.filter(|opener| rest.starts_with(opener.marker()));
        openers.next().map_or(Here::Text(first), Here::Opens)
    }

    fn say(&mut self, length: usize, out: &mut Vec<Piece>) {
        let said = self.text.get(self.decided..self.decided + length).unwrap_or_default();
        self.decided += length;
        match out.last_mut() {
            _ if said.is_empty() => {}
            Some(Piece::Text(before)) => before.push_str(said),
            Some(Piece::Call(_)) | None => out.push(Piece::Text(said.to_owned())),
        }
    }
}

impl Place {
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
            behind_call: false,
        }
    }

    /// Whether a call may begin here.
    fn admits(&self, opener: Opener) -> bool {
        let is_code = self.fence.is_some()
            || self.span.is_some()
            || self.run.is_some_and(|run| run.mark == '`' || self.at_line_start && run.is_fence());
        !(is_code || self.quoted || self.thinking)
            && match opener {
                Opener::Json(_) => self.at_start,
                Opener::Fence(_) => self.at_line_start && self.run.is_none(),
                Opener::ToolCall { .. }
                | Opener::Function
                | Opener::ToolCalls
                | Opener::PythonTag
                | Opener::DeepSeek => true,
            }
    }

    /// Goes on behind a character of text.
    fn pass(&mut self, c: char) {
        self.at_start &= c.is_whitespace();
        self.behind_call &= c.is_whitespace();
        if let Some(run) = self.run.as_mut().filter(|run| run.mark == c) {
            run.length += 1;
            return;
        }
        self.end_run();
        if matches!(c, '`' | '~') {
            self.run = Some(Run { mark: c, length: 1 });
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

    /// Behind the last one of some marks: at the beginning of a line three make a fence, and any other backticks a
    /// span.
    fn end_run(&mut self) {
        let Some(run) = self.run.take() else { return };
        match (self.fence, self.span) {
            (Some(begun), _) => self.ends_fence = self.at_line_start && run.ends(begun),
            (None, _) if self.at_line_start && run.is_fence() => self.fence = Some(run),
            (None, _) if run.mark == '~' => {}
            (None, None) => self.span = Some(run.length),
            (None, Some(begun)) => self.span = Some(begun).filter(|begun| *begun != run.length),
        }
        self.at_line_start = false;
    }
}

impl Run {
    fn is_fence(self) -> bool {
        self.length >= 3
    }

    /// Whether it may end the block that the other one began.
    fn ends(self, begun: Self) -> bool {
        self.mark == begun.mark && self.length >= begun.length
    }
}
