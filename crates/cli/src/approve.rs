//! `--approve`: what is asked before it runs, and the person at the terminal who answers.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use pintle_agent::{ApprovalRequest, Approver, Decision, SubagentOrigin};
use pintle_tools::gate::{EffectGate, Permission};
use pintle_tools::{ChangeKind, Effect, FileChange};
use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, BufReader, Lines};
use tokio::sync::{Mutex, watch};

use crate::args::ApproveName;
use crate::console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::host;
use crate::render::{self, Part, Size, Style, diff_lines, mark};

/// Asks for the answer to a question that is on the screen.
const ENDS_WITHOUT: &str = "(an answer, or an empty line to end)";

/// How long a line may take that was typed before it was asked for.
const TYPED_AHEAD: Duration = Duration::from_millis(20);

/// Prompt below a call that needs approval.
const RUN_IT: &str = "Run it? [y]es, [n]o, or what to do instead: ";

/// The gate that asks about what `--approve` names.
pub(crate) fn gate(approve: ApproveName) -> EffectGate {
    let ask = |gate: EffectGate, effect: &Effect| gate.with(*effect, Permission::Ask);
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
    /// The size of the window by now.
    size: Box<dyn Fn() -> Size + Send + Sync>,
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
        Self::of(BufReader::new(tokio::io::stdin()), say, console::question_size, style)
    }

    fn of(
        answers: impl AsyncBufRead + Send + Unpin + 'static,
        say: impl Fn(Saying<'_>) + Send + Sync + 'static,
        size: impl Fn() -> Size + Send + Sync + 'static,
        style: Style,
    ) -> Self {
        let answers: Box<dyn AsyncBufRead + Send + Unpin> = Box::new(answers);
        let answers = Mutex::new(answers.lines());
        Self::with(Some(Person { answers, say: Box::new(say), size: Box::new(size), style }))
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
    /// `None` if nobody answers, or with nothing. Without `question` it is on the screen already.
    pub(crate) async fn ask(&self, mark: &str, question: Option<&str>) -> Option<String> {
        let person = self.shared.person.as_ref()?;
        self.wait_for(mark).await;
        let question = question.unwrap_or(ENDS_WITHOUT);
        let shown = |size| render::of_model(question, "> ", size, person.style);
        let answer = person.line(shown).await?;
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
        let answer = self.line(|size| question(request, size, self.style)).await;
        answer.map_or_else(|| deny("the person who was asked is gone"), |answer| decision(&answer))
    }

    /// What is typed after a question.
    async fn line(&self, question: impl FnOnce(Size) -> String) -> Option<String> {
        let mut answers = self.answers.lock().await;
        // What was typed before the question is no answer to it.
        while let Ok(Ok(Some(_))) = tokio::time::timeout(TYPED_AHEAD, answers.next_line()).await {}
        (self.say)(Saying::Question(&question((self.size)())));
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

/// Returns the question whether the call may run, with what would happen.
fn question(request: &ApprovalRequest, size: Size, style: Style) -> String {
    let whose = request.origin.as_ref().map(asker).unwrap_or_default();
    let head = format!("{whose}{} ({})", request.tool_name, request.reason);
    render::question(&head, &details(request), RUN_IT, size, style)
}

/// Which subagent it is that wants to do something.
fn asker(origin: &SubagentOrigin) -> String {
    let depth = if origin.depth > 1 { format!(" at depth {}", origin.depth) } else { String::new() };
    format!("{}{depth}: ", origin.agent_id)
}

/// The diff, or else the arguments. That it would fail by now is said besides: it may be otherwise when it runs.
fn details(request: &ApprovalRequest) -> Vec<Part> {
    let dry_run = request.dry_run.as_ref();
    if let Some(diff) = dry_run.and_then(|dry_run| rehearsed(&dry_run.changes)) {
        return vec![diff];
    }
    let failure = dry_run.and_then(|dry_run| dry_run.failure.as_ref());
    let failure = failure
        .map(|failure| Part::text(&format!("as things are, it would fail:\n{failure}\nits arguments:")));
    failure.into_iter().chain(given(request)).collect()
}

/// The command below its other arguments, or all arguments.
fn given(request: &ApprovalRequest) -> Vec<Part> {
    if request.effect == Effect::Execute
        && let Some(parts) = commanded(&request.arguments)
    {
        return parts;
    }
    vec![Part::text(&serde_json::to_string_pretty(&request.arguments).unwrap_or_default())]
}

/// A command line as it is, below what else was given: the directory that it runs in matters as much as what it says.
fn commanded(arguments: &Value) -> Option<Vec<Part>> {
    let fields = arguments.as_object()?;
    let (name, command) =
        ["command", "cmd"].into_iter().find_map(|name| Some((name, fields.get(name)?.as_str()?)))?;
    let others = fields.iter().filter(|(field, value)| *field != name && !value.is_null());
    let others: Vec<String> = others.map(|(field, value)| format!("{field}: {value}")).collect();
    Some(vec![Part::plain(others), Part::text(command)])
}

/// The lines of all diffs; nothing unless each change has one, since a person must see all of it.
fn rehearsed(changes: &[FileChange]) -> Option<Part> {
    let is_shown = |change: &FileChange| !change.diff.is_empty() && is_named_in_its_diff(change);
    let all = !changes.is_empty() && changes.iter().all(is_shown);
    all.then(|| Part::diff(changes.iter().flat_map(|change| diff_lines(&change.diff))))
}

/// Whether the head of its diff can be relied on: a line end in a name would let it speak of another file.
fn is_named_in_its_diff(change: &FileChange) -> bool {
    let from = match &change.kind {
        ChangeKind::Renamed { from } => from.as_str(),
        ChangeKind::Added | ChangeKind::Modified | ChangeKind::Deleted => "",
    };
    !change.path.contains(char::is_control) && !from.contains(char::is_control)
}

#[cfg(test)]
mod tests;
