//! Asks the user at the terminal to approve calls and to answer the model's questions.

mod effect;
mod prompt;
mod question;
mod spending;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use pintle_agent::{ApprovalRequest, Approver, Decision, Principal};
use pintle_governance::{APPROVAL_SOURCE, Mode, Policy, PresentPlan};
use pintle_host::attendant::{Attendant, unattended_denial};
use pintle_host::failure::{Failure, FailureKind};
use pintle_host::process_env;
use pintle_tools::gate::Permission;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, BufReader, Lines};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Mutex, MutexGuard, watch};
use tokio_util::sync::CancellationToken;

pub(crate) use self::effect::{effect, title};
pub use self::prompt::inside;
pub(crate) use self::prompt::{CallDecision, Choice, side};
pub use self::question::Question;
use crate::console;
use crate::render::{self, Section, Style, TerminalSize, call_key};

/// Prompt for a question of the model that is already on screen.
const ANSWER_PROMPT: &str = "(type an answer, or press Enter to end)";

/// Prompt below a plan.
const PLAN_PROMPT: &str =
    "Accept it? [y]es, [n]o, the mode to carry it out in (ask, edit, auto), or what to change: ";

/// Maximum length of suggested rules on the prompt line, in characters.
const MAX_RULES: usize = 40;

/// How long to wait for a line that was typed before the prompt.
const TYPEAHEAD_WINDOW: Duration = Duration::from_millis(20);

/// Asks one question after the other and reads one line per answer. Without a terminal, it denies requests unless a
/// conversation or another process decides. Cheap to clone.
#[derive(Clone)]
pub struct Prompter {
    shared: Arc<Shared>,
}

struct Shared {
    /// `None` without a terminal.
    terminal: Option<TerminalIo>,
    /// Keys of the calls and ends of runs that are on screen. All output before them is on screen too.
    shown: watch::Sender<Vec<String>>,
    /// Number of calls denied for lack of a terminal.
    unattended_denials: AtomicU64,
    /// Policy to which the user's rules are added.
    policy: OnceLock<Policy>,
    /// Whether a plan may be carried out in mode auto.
    allows_auto: AtomicBool,
    /// Number of requests that wait for a decision.
    asking: AtomicUsize,
    /// Whether pending requests stay on record when this process exits.
    keeps_requests: AtomicBool,
    /// Cancelled when the terminal disappears while a recorded request is pending.
    gone: CancellationToken,
    /// Whether another process decides if there is no terminal.
    waits: bool,
    /// Lock for writes to the terminal. A question that belongs to no call holds it while it is open, because a redraw
    /// would erase the question.
    screen: Mutex<()>,
    /// Sender of the questions that a conversation shows, which also decides on the requests of its session.
    questions: Option<UnboundedSender<Question>>,
    /// User who answers.
    principal: Option<Principal>,
}

/// Terminal input and output.
struct TerminalIo {
    input: Mutex<Lines<Box<dyn AsyncBufRead + Send + Unpin>>>,
    output: Box<dyn Fn(PromptEvent<'_>) + Send + Sync>,
    /// Returns the current size of the window.
    size: Box<dyn Fn() -> TerminalSize + Send + Sync>,
    style: Style,
}

/// Change to the prompt on screen.
#[derive(Clone, Copy, Debug)]
enum PromptEvent<'a> {
    /// A prompt is shown. The answer follows on the same line.
    Shown(&'a str),
    Answered,
    /// Input ended, or the answer is no longer needed.
    Abandoned,
}

/// Prompt on screen. Ends its line when dropped without an answer.
struct OpenPrompt<'a> {
    terminal: &'a TerminalIo,
    is_answered: bool,
}

impl Prompter {
    /// Returns the prompter of this process. It prompts on standard error and reads answers from standard input.
    pub fn from_process(style: Style, principal: Option<Principal>, waits: bool) -> Self {
        let mut prompter = Self::for_process(style);
        if let Some(shared) = Arc::get_mut(&mut prompter.shared) {
            (shared.principal, shared.waits) = (principal, waits);
        }
        prompter
    }

    /// Returns a prompter for a conversation, which shows the requests of its session and decides them. Also returns
    /// the receiver of the other questions, which the conversation shows.
    pub fn in_conversation(principal: Option<Principal>) -> (Self, UnboundedReceiver<Question>) {
        let (sender, questions) = unbounded_channel();
        let mut prompter = Self::new(None);
        if let Some(shared) = Arc::get_mut(&mut prompter.shared) {
            (shared.principal, shared.questions) = (principal, Some(sender));
        }
        (prompter, questions)
    }

    /// Returns whether this process can ask at a terminal.
    pub fn has_terminal() -> bool {
        process_env::stdin_is_terminal() && console::stderr_is_terminal()
    }

    fn for_process(style: Style) -> Self {
        if !Self::has_terminal() {
            return Self::new(None);
        }
        let output = |event: PromptEvent<'_>| match event {
            PromptEvent::Shown(text) => console::prompt(text),
            PromptEvent::Answered => console::prompt_answered(),
            PromptEvent::Abandoned => console::prompt_abandoned(),
        };
        Self::with_io(BufReader::new(tokio::io::stdin()), output, console::prompt_size, style)
    }

    fn with_io(
        input: impl AsyncBufRead + Send + Unpin + 'static,
        output: impl Fn(PromptEvent<'_>) + Send + Sync + 'static,
        size: impl Fn() -> TerminalSize + Send + Sync + 'static,
        style: Style,
    ) -> Self {
        let input: Box<dyn AsyncBufRead + Send + Unpin> = Box::new(input);
        let input = Mutex::new(input.lines());
        Self::new(Some(TerminalIo { input, output: Box::new(output), size: Box::new(size), style }))
    }

    fn new(terminal: Option<TerminalIo>) -> Self {
        let shared = Shared {
            terminal,
            shown: watch::Sender::default(),
            unattended_denials: AtomicU64::new(0),
            policy: OnceLock::new(),
            allows_auto: AtomicBool::new(true),
            asking: AtomicUsize::new(0),
            screen: Mutex::default(),
            keeps_requests: AtomicBool::new(false),
            gone: CancellationToken::new(),
            waits: false,
            questions: None,
            principal: None,
        };
        Self { shared: Arc::new(shared) }
    }

    /// Records that requests stay on record when this process exits, so that another process can decide them.
    pub fn keep_requests(&self) {
        self.shared.keeps_requests.store(true, Ordering::Relaxed);
    }

    /// Returns whether a request is pending and stays on record when this process exits.
    pub fn can_be_left(&self) -> bool {
        self.shared.keeps_requests.load(Ordering::Relaxed) && self.shared.asking.load(Ordering::Relaxed) > 0
    }

    /// Completes when the terminal disappears while a recorded request is pending.
    pub async fn terminal_gone(&self) {
        self.shared.gone.cancelled().await;
    }

    /// Marks the call or run with this key as shown, so that its question may follow.
    pub fn mark_shown(&self, key: &str) {
        self.shared.shown.send_modify(|shown| shown.push(key.to_owned()));
    }

    /// Waits until no question outside of a call is open, and locks the screen.
    pub async fn screen(&self) -> MutexGuard<'_, ()> {
        self.shared.screen.lock().await
    }

    /// Asks a question of the model once everything up to `key` has been [shown](Self::mark_shown). Returns `None` if the
    /// answer is empty or input has ended. If `question` is `None`, the question is already on screen.
    pub async fn ask(&self, key: &str, question: Option<&str>) -> Option<String> {
        let terminal = self.shared.terminal.as_ref()?;
        self.wait_until_shown(key).await;
        let question = question.unwrap_or(ANSWER_PROMPT);
        let prompt = |size| render::model_question(question, "> ", size, terminal.style);
        let answer = terminal.ask(prompt).await?;
        Some(answer.trim().to_owned()).filter(|answer| !answer.is_empty())
    }

    /// Asks a question that belongs to no call. Returns `None` without a terminal, or if input has ended.
    pub async fn ask_now(&self, text: &str, prompt: &str) -> Option<String> {
        self.ask_about(text, &[], prompt).await
    }

    /// As [`ask_now`](Self::ask_now), with sections below the text.
    pub async fn ask_about(&self, text: &str, sections: &[Section], prompt: &str) -> Option<String> {
        let terminal = self.shared.terminal.as_ref()?;
        let _screen = self.screen().await;
        let question = |size| {
            let question = render::question(text, sections, prompt, size, terminal.style);
            format!("{}{question}", render::erase_live_region(terminal.style))
        };
        terminal.ask(question).await
    }

    async fn wait_until_shown(&self, key: &str) {
        let mut shown = self.shared.shown.subscribe();
        // The sender lives as long as `self`.
        let _ = shown.wait_for(|shown| shown.iter().any(|known| known == key)).await;
    }

    /// Returns a failure if calls were denied for lack of a terminal.
    pub fn failure(&self) -> Option<Failure> {
        let message = match self.shared.unattended_denials.load(Ordering::Relaxed) {
            0 => return None,
            1 => "1 call was denied: it needed approval, but no terminal was available".to_owned(),
            calls => {
                format!("{calls} calls were denied: they needed approval, but no terminal was available")
            }
        };
        let hint = "--allow RULE lets such calls run, and --mode selects what needs approval";
        Some(Failure::new(FailureKind::Denied, message).with_hint(hint))
    }
}

#[async_trait]
impl Approver for Prompter {
    async fn decide(&self, request: &ApprovalRequest) -> Decision {
        let _asking = PendingRequestGuard::new(&self.shared.asking);
        let Some(terminal) = &self.shared.terminal else {
            if self.shared.questions.is_some() {
                return std::future::pending().await;
            }
            if self.shared.waits {
                // The decision arrives through the inbox of the session.
                console::notice(&format!("{} waits for `pintle approvals decide`", request.tool_name));
                return std::future::pending().await;
            }
            if !is_plan(request) {
                self.shared.unattended_denials.fetch_add(1, Ordering::Relaxed);
            }
            return unattended_denial(request);
        };
        let subagent = request.origin.as_ref().map(|origin| &origin.session_id);
        self.wait_until_shown(&call_key(subagent, &request.call_id)).await;
        let policy = self.shared.policy.get();
        loop {
            let answer = terminal.ask_about(request).await;
            // A lost terminal is not an answer.
            if answer.is_none() && self.can_be_left() && !Self::has_terminal() {
                self.shared.gone.cancel();
                return std::future::pending().await;
            }
            let added = match Answer::parse(answer.as_deref(), request) {
                Answer::Decided(CallDecision { decision, rules }) if rules.is_empty() => return decision,
                Answer::Decided(CallDecision { rules, .. }) => {
                    add_rules(policy, &rules, &request.call_id).await
                }
                Answer::Accepted(Mode::Auto) if !self.shared.allows_auto.load(Ordering::Relaxed) => {
                    Err("mode auto needs a sandbox, and no sandbox is available".to_owned())
                }
                Answer::Accepted(mode) => {
                    policy.map(|policy| policy.set_after_plan(mode)).ok_or_else(no_rules)
                }
            };
            match added {
                Ok(()) => return Decision::Approve,
                Err(problem) => console::notice(&problem),
            }
        }
    }

    fn principal(&self) -> Option<Principal> {
        // Without a terminal or a conversation, no user decides.
        self.shared.principal.clone().filter(|_| self.is_attended())
    }
}

#[async_trait]
impl Attendant for Prompter {
    fn is_attended(&self) -> bool {
        self.shared.terminal.is_some() || self.shared.questions.is_some()
    }

    fn user(&self) -> Option<Principal> {
        self.shared.principal.clone()
    }

    fn set_policy(&self, policy: Policy) {
        let _ = self.shared.policy.set(policy);
    }

    fn refuse_auto(&self) {
        self.shared.allows_auto.store(false, Ordering::Relaxed);
    }

    /// Asks at the prompt or in the conversation.
    async fn ask_for_text(&self, question: &str, details: &[String], prompt: &str) -> Option<String> {
        if let Some(questions) = &self.shared.questions {
            let (question, answer) = Question::new(question, details.to_vec(), prompt);
            questions.send(question).ok()?;
            return answer.await.ok();
        }
        let sections: Vec<Section> = details.iter().map(|text| Section::text(text)).collect();
        self.ask_about(question, &sections, prompt).await
    }
}

/// Counts a request while it is pending.
struct PendingRequestGuard<'a>(&'a AtomicUsize);

impl<'a> PendingRequestGuard<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for PendingRequestGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Adds rules that allow calls like this one in this session.
async fn add_rules(policy: Option<&Policy>, rules: &[String], call_id: &str) -> Result<(), String> {
    let policy = policy.ok_or_else(no_rules)?;
    for rule in rules {
        let source = format!("{APPROVAL_SOURCE}{call_id}");
        let added = policy.add_rule(Permission::Allow, rule, source).await;
        added.map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn no_rules() -> String {
    "no rules can be added here".to_owned()
}

impl TerminalIo {
    async fn ask_about(&self, request: &ApprovalRequest) -> Option<String> {
        self.ask(|size| approval_question(request, size, self.style)).await
    }

    /// Shows a question and returns the line typed after it.
    async fn ask(&self, question: impl FnOnce(TerminalSize) -> String) -> Option<String> {
        let mut input = self.input.lock().await;
        // Discard lines typed before the question.
        while let Ok(Ok(Some(_))) = tokio::time::timeout(TYPEAHEAD_WINDOW, input.next_line()).await {}
        (self.output)(PromptEvent::Shown(&question((self.size)())));
        let mut prompt = OpenPrompt { terminal: self, is_answered: false };
        let answer = input.next_line().await.ok().flatten();
        prompt.is_answered = answer.is_some();
        answer
    }
}

impl Drop for OpenPrompt<'_> {
    fn drop(&mut self) {
        let event = if self.is_answered { PromptEvent::Answered } else { PromptEvent::Abandoned };
        (self.terminal.output)(event);
    }
}

impl fmt::Debug for Prompter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prompter").field("is_attended", &self.is_attended()).finish_non_exhaustive()
    }
}

/// Answer to the question about a call.
#[derive(Debug, PartialEq)]
enum Answer {
    Decided(CallDecision),
    /// The plan is accepted and carried out in this mode.
    Accepted(Mode),
}

impl Answer {
    /// Parses an answer. `None` means that the terminal was closed. Any text that is not a known answer denies the call,
    /// and the model receives it as the reason.
    fn parse(answer: Option<&str>, request: &ApprovalRequest) -> Self {
        let Some(answer) = answer else {
            let reason = Some("the terminal was closed without an answer".to_owned());
            return Self::Decided(CallDecision::once(Decision::Deny { reason }));
        };
        let answer = answer.trim();
        if let Some(Ok(decision)) = Choice::by_name(answer).map(|choice| choice.decide(request)) {
            return Self::Decided(decision);
        }
        if is_plan(request)
            && let Ok(mode @ (Mode::Ask | Mode::Edit | Mode::Auto)) = answer.to_ascii_lowercase().parse()
        {
            return Self::Accepted(mode);
        }
        // Other text describes what to do instead.
        Self::Decided(CallDecision::by_rule(answer).unwrap_or_else(|| CallDecision::denied(answer)))
    }
}

fn is_plan(request: &ApprovalRequest) -> bool {
    request.tool_kind == PresentPlan::NAME
}

/// Formats the approval question for a call, with its effect.
fn approval_question(request: &ApprovalRequest, size: TerminalSize, style: Style) -> String {
    let head = format!("{} ({})", title(request), request.reason);
    let mut details = effect(request);
    let rules = request.suggested_rules.join(", ");
    let prompt = if is_plan(request) {
        PLAN_PROMPT.to_owned()
    } else if rules.chars().count() <= MAX_RULES {
        prompt_line(request, &rules)
    } else {
        // Show long rules in full, because the answer may accept them.
        details.push(Section::text(&format!("for this session: {rules}")));
        prompt_line(request, "as above")
    };
    render::question(&head, &details, &prompt, size, style)
}

/// Returns the choices for a call on one line, with their keys in brackets.
fn prompt_line(request: &ApprovalRequest, rules: &str) -> String {
    let choices = Choice::for_call(request).map(|choice| {
        let (key, rest) = choice.word().split_at(choice.key().len());
        let meaning = match choice {
            Choice::Yes | Choice::No => String::new(),
            Choice::Inside => " instead".to_owned(),
            Choice::Session => format!(" {rules}"),
        };
        format!("[{key}]{rest}{meaning}")
    });
    let choices: Vec<String> = choices.collect();
    format!("Run it{}? {}, or what to do instead: ", side(request), choices.join(", "))
}

#[cfg(test)]
mod tests;
