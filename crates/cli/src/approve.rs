//! `--approve`: what is asked before it runs, and the person at the terminal who answers.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use pintle_agent::{ApprovalRequest, Approver, Decision, SubagentOrigin};
use pintle_tools::gate::{EffectGate, Ruling};
use pintle_tools::{ChangeKind, Effect, FileChange};
use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, BufReader, Lines};
use tokio::sync::{Mutex, watch};

use crate::args::ApproveName;
use crate::console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::host;
use crate::render::{Style, mark, steers};

/// How long a line may take that was typed before it was asked for.
const TYPED_AHEAD: Duration = Duration::from_millis(20);

/// The gate that asks about what `--approve` names.
pub(crate) fn gate(approve: ApproveName) -> EffectGate {
    let ask = |gate: EffectGate, effect: &Effect| gate.with(*effect, Ruling::Ask);
    let effects: &[Effect] = match approve {
        ApproveName::Never => &[],
        ApproveName::Writes => &[Effect::Write],
        ApproveName::Commands => &[Effect::Execute],
        ApproveName::All => &[Effect::Write, Effect::Execute, Effect::Network],
    };
    effects.iter().fold(EffectGate::new(), ask)
}

/// Asks one question after the other and reads the answers, a line each. Without a terminal every question is
/// answered with no. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Terminal {
    shared: Arc<Shared>,
}

struct Shared {
    /// `None` if nobody can be asked.
    person: Option<Person>,
    /// The marks of the calls whose request has been shown: what came before it stands on the screen.
    shown: watch::Sender<Vec<String>>,
    /// Calls that were denied because nobody could be asked.
    unasked: AtomicU64,
}

struct Person {
    answers: Mutex<Lines<Box<dyn AsyncBufRead + Send + Unpin>>>,
    say: Box<dyn Fn(Saying<'_>) + Send + Sync>,
    style: Style,
}

/// What is said to a person.
#[derive(Clone, Copy, Debug)]
enum Saying<'a> {
    /// What is asked; the answer follows in the same line.
    Question(&'a str),
    /// There was one.
    Answered,
    /// There will be none: whoever was asked is gone, or nobody wants to know any more.
    Unanswered,
}

/// A question that stands on the screen; dropped without an answer, it ends its line.
struct Asked<'a> {
    person: &'a Person,
    is_answered: bool,
}

impl Terminal {
    /// That of this process: questions go to standard error, answers come from standard input.
    pub(crate) fn of_process(style: Style) -> Self {
        if !host::stdin_is_terminal() || !console::stderr_is_terminal() {
            return Self::with(None);
        }
        let say = |saying: Saying<'_>| match saying {
            Saying::Question(text) => console::question(text),
            Saying::Answered => console::answered(),
            Saying::Unanswered => console::unanswered(),
        };
        Self::of(BufReader::new(tokio::io::stdin()), say, style)
    }

    fn of(
        answers: impl AsyncBufRead + Send + Unpin + 'static,
        say: impl Fn(Saying<'_>) + Send + Sync + 'static,
        style: Style,
    ) -> Self {
        let answers: Box<dyn AsyncBufRead + Send + Unpin> = Box::new(answers);
        Self::with(Some(Person { answers: Mutex::new(answers.lines()), say: Box::new(say), style }))
    }

    fn with(person: Option<Person>) -> Self {
        let shared = Shared { person, shown: watch::Sender::default(), unasked: AtomicU64::new(0) };
        Self { shared: Arc::new(shared) }
    }

    /// Says that the request about this call stands on the screen, so that the question may follow it.
    pub(crate) fn shown(&self, mark: &str) {
        self.shared.shown.send_modify(|shown| shown.push(mark.to_owned()));
    }

    /// Whether somebody can be asked.
    pub(crate) fn can_ask(&self) -> bool {
        self.shared.person.is_some()
    }

    /// Puts a question of the model, once everything before `mark` has been [shown](Self::shown), and waits for a line.
    /// `None` if nobody answers, or with nothing.
    pub(crate) async fn ask(&self, mark: &str, question: &str) -> Option<String> {
        let person = self.shared.person.as_ref()?;
        self.wait_for(mark).await;
        let lines: Vec<String> = lines_of(question);
        let answer = person.line(&format!("\n{}\n> ", lines.join("\n"))).await?;
        Some(answer.trim().to_owned()).filter(|answer| !answer.is_empty())
    }

    async fn wait_for(&self, mark: &str) {
        let mut shown = self.shared.shown.subscribe();
        // The sender lives as long as this does.
        let _ = shown.wait_for(|shown| shown.iter().any(|known| known == mark)).await;
    }

    /// The failure that a run is whose calls needed an answer that nobody could give.
    pub(crate) fn failure(&self) -> Option<Failure> {
        let sentence = match self.shared.unasked.load(Ordering::Relaxed) {
            0 => return None,
            1 => "a call was denied: it needed approval, and there is no terminal to ask at".to_owned(),
            calls => {
                format!("{calls} calls were denied: they needed approval, and there is no terminal to ask at")
            }
        };
        Some(Failure::new(Exit::Denied, sentence).advise("--approve says what needs approval"))
    }
}

#[async_trait]
impl Approver for Terminal {
    async fn decide(&self, request: &ApprovalRequest) -> Decision {
        let Some(person) = &self.shared.person else {
            self.shared.unasked.fetch_add(1, Ordering::Relaxed);
            return deny("it needs approval, and nobody can be asked");
        };
        let subagent = request.origin.as_ref().map(|origin| &origin.session_id);
        self.wait_for(&mark(subagent, &request.call_id)).await;
        person.answer(request).await
    }
}

impl Person {
    async fn answer(&self, request: &ApprovalRequest) -> Decision {
        let answer = self.line(&question(request, self.style)).await;
        answer.map_or_else(|| deny("the person who was asked is gone"), |answer| decision(&answer))
    }

    /// What is typed after a question.
    async fn line(&self, question: &str) -> Option<String> {
        let mut answers = self.answers.lock().await;
        // What was typed before the question is no answer to it.
        while let Ok(Ok(Some(_))) = tokio::time::timeout(TYPED_AHEAD, answers.next_line()).await {}
        (self.say)(Saying::Question(question));
        let mut asked = Asked { person: self, is_answered: false };
        let answer = answers.next_line().await.ok().flatten();
        asked.is_answered = answer.is_some();
        answer
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        let end = if self.is_answered { Saying::Answered } else { Saying::Unanswered };
        (self.person.say)(end);
    }
}

impl fmt::Debug for Terminal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Terminal").field("asks", &self.shared.person.is_some()).finish_non_exhaustive()
    }
}

fn deny(reason: &str) -> Decision {
    Decision::Deny { reason: Some(reason.to_owned()) }
}

/// What a line means: only a plain yes is one, and any other sentence is for the model.
fn decision(answer: &str) -> Decision {
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Decision::Approve,
        "" | "n" | "no" => deny("the user said no"),
        _ => Decision::Deny { reason: Some(format!("the user says: {}", answer.trim())) },
    }
}

/// What would happen, whole, and the question.
fn question(request: &ApprovalRequest, style: Style) -> String {
    let whose = request.origin.as_ref().map(asker).unwrap_or_default();
    let mut text = format!("\n{whose}{} ({}):\n", visible(&request.tool_name), visible(&request.reason));
    for line in details(request, style) {
        text.push_str("    ");
        text.push_str(&line);
        text.push('\n');
    }
    text.push_str("Run it? [y]es, [n]o, or what to do instead: ");
    text
}

/// Which subagent it is that wants to do something.
fn asker(origin: &SubagentOrigin) -> String {
    let depth = if origin.depth > 1 { format!(" at depth {}", origin.depth) } else { String::new() };
    format!("{}{depth}: ", visible(&origin.agent_id))
}

/// The diff, the command, or else the arguments.
fn details(request: &ApprovalRequest, style: Style) -> Vec<String> {
    if let Some(rehearsal) = &request.rehearsal
        && let Some(lines) = rehearsed(&rehearsal.changes, style)
    {
        return lines;
    }
    if let Some(failure) = request.rehearsal.as_ref().and_then(|rehearsal| rehearsal.failure.as_ref()) {
        return std::iter::once("as things are, it would fail:".to_owned())
            .chain(lines_of(failure))
            .collect();
    }
    if request.effect == Effect::Execute
        && let Some(lines) = commanded(&request.arguments)
    {
        return lines;
    }
    lines_of(&serde_json::to_string_pretty(&request.arguments).unwrap_or_default())
}

/// A command line as it stands, below what else was given: where it runs is as much of it as what it says.
fn commanded(arguments: &Value) -> Option<Vec<String>> {
    let fields = arguments.as_object()?;
    let (name, command) =
        ["command", "cmd"].into_iter().find_map(|name| Some((name, fields.get(name)?.as_str()?)))?;
    let others = fields.iter().filter(|(field, value)| *field != name && !value.is_null());
    let mut lines: Vec<String> = others.map(|(field, value)| visible(&format!("{field}: {value}"))).collect();
    lines.extend(lines_of(command));
    Some(lines)
}

/// The lines of all diffs; nothing unless each change has one, since a person must see all of it.
fn rehearsed(changes: &[FileChange], style: Style) -> Option<Vec<String>> {
    let mut lines = Vec::new();
    for change in changes {
        if change.diff.is_empty() || !is_named_in_its_diff(change) {
            return None;
        }
        lines.extend(change.diff.lines().map(|line| style.diff_line(&visible(line))));
    }
    (!lines.is_empty()).then_some(lines)
}

/// Whether the head of its diff can be relied on: a line end in a name would let it speak of another file.
fn is_named_in_its_diff(change: &FileChange) -> bool {
    let from = match &change.kind {
        ChangeKind::Renamed { from } => from.as_str(),
        ChangeKind::Added | ChangeKind::Modified | ChangeKind::Deleted => "",
    };
    !change.path.contains(char::is_control) && !from.contains(char::is_control)
}

fn lines_of(text: &str) -> Vec<String> {
    text.split('\n').map(visible).collect()
}

/// A line in which nothing is hidden: what could steer a terminal, and what it would not show, is written out.
fn visible(line: &str) -> String {
    let mut shown = String::with_capacity(line.len());
    for character in line.chars() {
        if steers(character) || is_unseen(character) || character == '\n' {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    shown
}

/// Characters that take no room, or look like a blank, and are none. Accents are not among them, nor is what chooses
/// the picture of an emoji.
fn is_unseen(character: char) -> bool {
    matches!(
        character,
        '\u{AD}'
            | '\u{34F}'
            | '\u{61C}'
            | '\u{115F}'..='\u{1160}'
            | '\u{17B4}'..='\u{17B5}'
            | '\u{180B}'..='\u{180F}'
            | '\u{200B}'..='\u{200F}'
            | '\u{2028}'..='\u{2029}'
            | '\u{2060}'..='\u{206F}'
            | '\u{3164}'
            | '\u{FEFF}'
            | '\u{FFA0}'
            | '\u{FFF0}'..='\u{FFFB}'
            | '\u{E0000}'..='\u{E0FFF}'
    )
}

#[cfg(test)]
mod tests;
