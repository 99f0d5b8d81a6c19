//! Calls that wait for approval: their effects, and the keys that decide.

mod words;

use std::sync::Arc;

use pintle_agent::{ApprovalRequest, Decision};

pub(crate) use self::words::Answer;
use super::editor::{Editor, EditorKeyEffect};
use super::keys::{Key, KeyCode};
use crate::approve::{self, CallDecision, Choice};
use crate::render::{Colour, Face, Margins, StyledLine, break_anywhere, expand_tabs, plural, wrap};

/// Columns before the effect of a call.
const INDENT: usize = 4;

/// Maximum length of rules shown beside their key, in characters. Longer rules match exactly the call that is shown.
const SHOWN_RULES: usize = 160;

/// Pending calls, in the order of their requests.
#[derive(Debug, Default)]
pub(crate) struct Approvals {
    pending: Vec<Arc<ApprovalRequest>>,
    /// Index of the call that is shown.
    selected: usize,
    /// Whether keys decide. Otherwise they go to the input editor.
    is_focused: bool,
    asking: ApprovalInput,
}

/// Question about the call that is shown.
#[derive(Debug, Default)]
enum ApprovalInput {
    #[default]
    Decision,
    /// The rule to add.
    Rule(Editor),
    /// The reason of a denial.
    Words(Editor),
}

/// Decision on a call.
#[derive(Clone, Debug)]
pub(crate) struct RequestDecision {
    pub(crate) request: Arc<ApprovalRequest>,
    pub(crate) decision: Decision,
    /// Rules to add for this session.
    pub(crate) rules: Vec<String>,
}

impl RequestDecision {
    fn new(request: &Arc<ApprovalRequest>, decision: CallDecision) -> Self {
        let CallDecision { decision, rules } = decision;
        Self { request: Arc::clone(request), decision, rules }
    }
}

/// Returns whether two requests are the same.
pub(crate) fn is_same(one: &ApprovalRequest, other: &ApprovalRequest) -> bool {
    let session = |request: &ApprovalRequest| request.origin.as_ref().map(|origin| origin.session_id.clone());
    one.call_id == other.call_id && one.fingerprint == other.fingerprint && session(one) == session(other)
}

impl Approvals {
    /// Sets the pending calls and returns the new ones. If none was pending before, they get the keys unless the user is
    /// writing.
    pub(crate) fn set(
        &mut self,
        pending: Vec<Arc<ApprovalRequest>>,
        is_writing: bool,
    ) -> Vec<Arc<ApprovalRequest>> {
        let is_known = |request: &ApprovalRequest| self.pending.iter().any(|known| is_same(known, request));
        let new: Vec<_> = pending.iter().filter(|request| !is_known(request)).cloned().collect();
        let shown = self.selected_request().cloned();
        let had_none = self.pending.is_empty();
        self.pending = pending;
        let still = shown.and_then(|shown| self.pending.iter().position(|request| is_same(request, &shown)));
        if still.is_none() {
            self.asking = ApprovalInput::Decision;
        }
        self.selected = still.unwrap_or_else(|| self.selected.min(self.pending.len().saturating_sub(1)));
        if self.pending.is_empty() {
            self.is_focused = false;
        } else if had_none {
            self.is_focused = !is_writing;
        }
        new
    }

    /// Returns the number of pending calls.
    pub(crate) fn len(&self) -> usize {
        self.pending.len()
    }

    /// Returns whether no call is pending.
    pub(crate) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Returns whether keys decide.
    pub(crate) fn is_focused(&self) -> bool {
        self.is_focused
    }

    /// Returns whether keys decide, and no text about the call is being written.
    pub(crate) fn is_deciding(&self) -> bool {
        self.is_focused && matches!(self.asking, ApprovalInput::Decision)
    }

    /// Returns whether the user writes a rule or a reason.
    pub(crate) fn is_writing(&self) -> bool {
        self.is_focused && !self.is_deciding()
    }

    /// Gives the keys to the pending calls, if any, or to the input editor.
    pub(crate) fn focus(&mut self, is_focused: bool) {
        self.is_focused = is_focused && !self.pending.is_empty();
    }

    /// Returns the call that is shown.
    pub(crate) fn selected_request(&self) -> Option<&Arc<ApprovalRequest>> {
        self.pending.get(self.selected)
    }

    /// Inserts pasted text.
    pub(crate) fn paste(&mut self, text: &str) {
        if let ApprovalInput::Rule(editor) | ApprovalInput::Words(editor) = &mut self.asking {
            editor.insert(text);
        }
    }

    /// Handles a key. Returns the decision that it makes.
    pub(crate) fn key(&mut self, key: Key, columns: usize) -> Option<RequestDecision> {
        let request = self.selected_request()?.clone();
        match &mut self.asking {
            ApprovalInput::Decision => self.choose(key, &request),
            ApprovalInput::Rule(editor) | ApprovalInput::Words(editor) => {
                match key {
                    Key { code: KeyCode::Escape, .. } => self.asking = ApprovalInput::Decision,
                    Key { code: KeyCode::Enter, .. } => return self.enter(&request),
                    key => match editor.key(key, columns) {
                        EditorKeyEffect::Yes
                        | EditorKeyEffect::Above
                        | EditorKeyEffect::Below
                        | EditorKeyEffect::No => {}
                    },
                }
                None
            }
        }
    }

    fn choose(&mut self, key: Key, request: &Arc<ApprovalRequest>) -> Option<RequestDecision> {
        let KeyCode::Char(character) = key.code else {
            if matches!(key.code, KeyCode::Up | KeyCode::Left) {
                self.selected = self.selected.saturating_sub(1);
            } else if matches!(key.code, KeyCode::Down | KeyCode::Right | KeyCode::Tab) {
                self.selected = (self.selected + 1).min(self.pending.len().saturating_sub(1));
            }
            return None;
        };
        if key.modifiers.ctrl || key.modifiers.alt {
            return None;
        }
        match character {
            'e' if !request.suggested_rules.is_empty() => {
                let mut editor = Editor::default();
                editor.set(&request.suggested_rules.join(" "));
                self.asking = ApprovalInput::Rule(editor);
                None
            }
            'w' => {
                self.asking = ApprovalInput::Words(Editor::default());
                None
            }
            _ => {
                let choice = Choice::for_call(request).find(|choice| choice.key().starts_with(character))?;
                Some(RequestDecision::new(request, choice.decide(request).ok()?))
            }
        }
    }

    /// Returns the decision for the written rule or reason.
    fn enter(&mut self, request: &Arc<ApprovalRequest>) -> Option<RequestDecision> {
        let decision = match std::mem::take(&mut self.asking) {
            ApprovalInput::Rule(mut editor) => {
                let rule = editor.take().trim().to_owned();
                if rule.is_empty() {
                    return None;
                }
                CallDecision::allowed_by(vec![rule])
            }
            ApprovalInput::Words(mut editor) => CallDecision::denied(editor.take().trim()),
            ApprovalInput::Decision => return None,
        };
        Some(RequestDecision::new(request, decision))
    }

    /// Returns at most `height` rows about the call that is shown, and the cursor position. If the details need more than
    /// `most` rows, only `most` of them are shown. The complete details are [above](long_details).
    pub(crate) fn rows(
        &self,
        columns: usize,
        height: usize,
        most: usize,
    ) -> (Vec<StyledLine>, Option<(usize, usize)>) {
        let Some(request) = self.selected_request() else { return (Vec::new(), None) };
        // Keys come first. If there is little room, the details were printed above.
        let (mut keys, cursor) = self.keys(request, columns);
        keys.truncate(height);
        let mut rows = self.head(mark(), request, columns);
        rows.truncate(height - keys.len());
        let room = height - keys.len() - rows.len();
        let details = details(request, columns);
        let shown = if details.len() > most { room.min(most) } else { room };
        rows.extend(fold(details, shown).into_iter().take(room));
        let cursor = cursor.map(|(row, column)| (rows.len() + row, column));
        rows.extend(keys);
        (rows, cursor)
    }

    /// Returns the rows that name the call and the reason for the question, after a mark.
    fn head(&self, mark: StyledLine, request: &ApprovalRequest, columns: usize) -> Vec<StyledLine> {
        let position = match self.pending.len() {
            1 => String::new(),
            count => format!(" [{} of {count}]", self.selected + 1),
        };
        wrap(&head(mark, request).and(position, Face::DIM), columns, &Margins::default())
    }

    fn keys(&self, request: &ApprovalRequest, columns: usize) -> (Vec<StyledLine>, Option<(usize, usize)>) {
        let (label, editor) = match &self.asking {
            ApprovalInput::Decision => {
                return (wrap(&choices(request, self.is_focused), columns, &Margins::blank(2)), None);
            }
            ApprovalInput::Rule(editor) => ("  rule for this session: ", editor),
            ApprovalInput::Words(editor) => ("  deny, and say: ", editor),
        };
        let layout = editor.indented_layout(columns, INDENT);
        let mut rows = vec![StyledLine::new(label, Face::BOLD)];
        rows.extend(layout.rows);
        (rows, Some((1 + layout.cursor.0, layout.cursor.1)))
    }
}

/// Returns the mark before a question.
fn mark() -> StyledLine {
    StyledLine::new("? ", Face::coloured(Colour::Yellow))
}

fn head(mark: StyledLine, request: &ApprovalRequest) -> StyledLine {
    let head = mark.and(to_single_line(&approve::title(request)), Face::BOLD);
    head.and(format!(" ({})", to_single_line(&request.reason)), Face::PLAIN)
}

/// Returns the complete details of a call, if they need more than `most` rows.
pub(crate) fn long_details(
    request: &ApprovalRequest,
    columns: usize,
    most: usize,
) -> Option<Vec<StyledLine>> {
    let rows = details(request, columns);
    let head = wrap(&head(mark(), request), columns, &Margins::default());
    (rows.len() > most).then(|| head.into_iter().chain(rows).collect())
}

/// Returns the rows that describe the effect of the call.
fn details(request: &ApprovalRequest, columns: usize) -> Vec<StyledLine> {
    let lines = approve::effect(request).into_iter().flat_map(|section| section.to_lines());
    lines.flat_map(|line| break_anywhere(&line, columns, &Margins::blank(INDENT))).collect()
}

/// Returns the suggested rules, with hidden characters made visible.
fn rules(request: &ApprovalRequest) -> String {
    to_single_line(&request.suggested_rules.join(", "))
}

/// Returns a text with hidden characters and line ends made visible.
fn to_single_line(text: &str) -> String {
    expand_tabs(&pintle_host::sanitize::to_single_line(text))
}

/// Returns the first and the last rows, and between them the number of omitted rows.
fn fold(rows: Vec<StyledLine>, height: usize) -> Vec<StyledLine> {
    if rows.len() <= height.max(3) {
        return rows;
    }
    let kept = height.max(3) - 1;
    let (first, last) = (kept.div_ceil(2), kept / 2);
    let omitted = rows.len() - first - last;
    let note = StyledLine::new(format!("  … {}, as above", plural(omitted as u64, "more row")), Face::DIM);
    let end = rows.len() - last;
    let (head, tail) = (rows.iter().take(first), rows.iter().skip(end));
    head.cloned().chain([note]).chain(tail.cloned()).collect()
}

fn choices(request: &ApprovalRequest, is_focused: bool) -> StyledLine {
    if !is_focused {
        return StyledLine::new("Alt+A decides", Face::BOLD);
    }
    let mut line = StyledLine::default();
    let mut choice = |key: &str, meaning: &str| {
        if !line.is_empty() {
            line.push("  ", Face::PLAIN);
        }
        line.push(key, Face::BOLD.and(Face::coloured(Colour::Cyan)));
        line.push(format!(" {meaning}"), Face::PLAIN);
    };
    for offered in Choice::for_call(request) {
        let key = offered.key();
        match offered {
            Choice::Yes => choice(key, &format!("once{}", approve::side(request))),
            Choice::Inside => choice(key, "inside instead"),
            Choice::No => {
                choice(key, "no");
                choice("w", "no, with words");
            }
            // Last, because rules may be long.
            Choice::Session => {
                let rules = rules(request);
                let is_short = rules.chars().count() <= SHOWN_RULES;
                let calls = if is_short { rules.as_str() } else { "calls like exactly this one" };
                choice(key, &format!("for this session: {calls}"));
                choice("e", if is_short { "edit that" } else { "show and edit the rule" });
            }
        }
    }
    line
}
