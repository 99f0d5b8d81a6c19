//! From a model's call to its result, in two steps (loop specification, section 3.8; design, section 7).
//!
//! [`prepare`] looks up, validates and gates; [`execute`] runs and truncates. Whoever drives the loop stands
//! between them, so that one call can run while another waits for approval.

mod arguments;

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use pintle_env::{ExecutionEnvironment, Output, OutputCollector, OutputLimits};
use pintle_llm::{Fingerprint, ToolCall, ToolResult};
use serde_json::Value;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use self::arguments::{Arguments, Given};
use crate::context::ToolContext;
use crate::error::{ToolError, ToolErrorKind};
use crate::gate;
pub use crate::gate::{Gate, Verdict};
use crate::registry::{RegisteredTool, ToolRegistry};
use crate::repair::ArgumentRepair;
use crate::schema;
use crate::tool::{DynTool, Effect, FileChange, ToolOutput};
use crate::truncate::{self, TruncationLimits, TruncationRule};

/// A call that may run.
#[derive(Clone, Debug)]
pub struct PreparedCall {
    call_id: String,
    arguments: Given,
    repairs: Vec<ArgumentRepair>,
    reads: Vec<PathBuf>,
    writes: Vec<PathBuf>,
    targets: Vec<PathBuf>,
    tool: Arc<RegisteredTool>,
}

/// What became of a call's preparation.
#[derive(Debug)]
pub enum Preparation {
    /// It may run.
    Ready(PreparedCall),
    /// It may run if a person agrees.
    Ask {
        /// The call.
        call: PreparedCall,
        /// Why a person is asked.
        reason: String,
    },
    /// It will not run; the error is its result.
    Refused(ToolError),
}

/// Looks up the tool, validates the arguments, by the schema and by the tool itself, and has the gates judge the call.
pub async fn prepare(
    registry: &ToolRegistry,
    gates: &[Arc<dyn Gate>],
    env: &dyn ExecutionEnvironment,
    call: &ToolCall,
) -> Preparation {
    let prepared = match PreparedCall::new(registry, env, call) {
        Ok(prepared) => prepared,
        Err(error) => return Preparation::Refused(error),
    };
    match gate::judge(gates, &prepared).await {
        Verdict::Allow => Preparation::Ready(prepared.aimed(env).await),
        Verdict::Deny { reason } => Preparation::Refused(gate::denied(&call.name, &reason)),
        Verdict::Ask { reason } => Preparation::Ask { call: prepared.aimed(env).await, reason },
    }
}

/// Runs a prepared call and cuts its output for the model. Dropping the future stops the call.
///
/// Whatever the tool does, there is a result: a failure is told as `Tool error (NAME): …`, a panic of the tool is a
/// failure of the call, and so is a call that takes a minute longer than the longest command may, unless it
/// [waits](crate::Tool::waits). A tool that blocks its thread cannot be stopped. Nothing at all is told as
/// `(no output)`, and an output that is too large for memory goes to a spool file. Needs a tokio runtime with time,
/// and threads that may block.
pub async fn execute(call: &PreparedCall, cx: &ToolContext, limits: &TruncationLimits) -> Execution {
    let (mut output, error) = match answer(call, cx).await {
        Ok(output) => {
            let failed = output.is_error.then_some(ToolErrorKind::Failed);
            let error = output.timed_out.map(|_limit| ToolErrorKind::TimedOut).or(failed);
            (output, error)
        }
        Err(error) => {
            let error = failed(call.name(), error);
            (ToolOutput::new(error.for_model()).with_error(true), Some(error.kind()))
        }
    };
    output.text = spooled(output.text, cx.env.output_limits()).await;
    let shown = shown(&output, call, limits).await;
    let mut result = ToolResult::new(call.call_id.clone(), shown, output.is_error);
    result.images = output.images;
    let ToolOutput { text, timed_out, changes, question, .. } = output;
    Execution { result, output: text, error, timed_out, changes, question }
}

/// A call that has run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Execution {
    /// What the model gets: cut to the limits.
    pub result: ToolResult,
    /// The whole output, for the host.
    pub output: Output,
    /// The kind of failure, if the call failed.
    pub error: Option<ToolErrorKind>,
    /// The limit of time that a command ran over, if it did.
    pub timed_out: Option<Duration>,
    /// The files that changed.
    pub changes: Vec<FileChange>,
    /// A question to the user, which ends the turn until it is answered.
    pub question: Option<String>,
}

impl PreparedCall {
    fn new(
        registry: &ToolRegistry,
        env: &dyn ExecutionEnvironment,
        call: &ToolCall,
    ) -> Result<Self, ToolError> {
        let tool = registry.get(&call.name).ok_or_else(|| unknown_tool(registry, &call.name))?;
        let Arguments { value: arguments, given, repairs } =
            arguments::fit(tool, call, registry.repairs_arguments())?;
        tool.tool().check_json(&arguments).map_err(|error| failed(tool.name(), error))?;
        let resolved =
            |paths: Vec<PathBuf>| -> Vec<PathBuf> { paths.iter().map(|path| env.resolve(path)).collect() };
        let reads = resolved(tool.tool().read_paths(&arguments));
        let writes = resolved(tool.tool().written_paths(&arguments));
        let (call_id, tool, targets) = (call.id.clone(), Arc::clone(tool), writes.clone());
        Ok(Self { call_id, arguments: given, repairs, reads, writes, targets, tool })
    }

    /// Follows the links in what it writes, so that two names of one file are known to be one file.
    async fn aimed(mut self, env: &dyn ExecutionEnvironment) -> Self {
        if self.effect() == Effect::Write {
            for target in &mut self.targets {
                // Where links cannot be followed, or lead nowhere, a file goes by its name.
                if let Ok(real) = env.canonicalize(target).await {
                    *target = real;
                }
            }
        }
        self
    }

    /// The tool's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.tool.name()
    }

    /// The id that the result must carry.
    #[must_use]
    pub fn call_id(&self) -> &str {
        &self.call_id
    }

    /// The arguments, which fit the schema.
    #[must_use]
    pub fn arguments(&self) -> &Value {
        self.arguments.object()
    }

    /// What was mended in the arguments, in the order in which it was done. Empty if they came as the schema wants
    /// them.
    #[must_use]
    pub fn repairs(&self) -> &[ArgumentRepair] {
        &self.repairs
    }

    /// The files that it may change, absolute.
    #[must_use]
    pub fn writes(&self) -> &[PathBuf] {
        &self.writes
    }

    /// Where the files that it may change really are: [`writes`](Self::writes) with every link followed, as far as
    /// the environment follows links. Calls that share one must keep their order.
    #[must_use]
    pub fn targets(&self) -> &[PathBuf] {
        &self.targets
    }

    /// The files and directories that it says it looks at, absolute.
    #[must_use]
    pub fn reads(&self) -> &[PathBuf] {
        &self.reads
    }

    /// The tool's canonical kind, such as `shell` for one that is called `Bash`.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.tool.kind()
    }

    /// What tells this call from every other: the id, the tool and these very arguments.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        let [id, name] = [&self.call_id, self.name()].map(|part| Fingerprint::of(part.as_bytes()));
        // Arguments may be megabytes long.
        let arguments = Fingerprint::of_text(self.arguments());
        [id, name, arguments].into_iter().fold(Fingerprint::of(b"call"), Fingerprint::chain)
    }

    /// The tool itself.
    pub(crate) fn tool(&self) -> &dyn DynTool {
        self.tool.tool()
    }

    /// What it does to the world.
    #[must_use]
    pub fn effect(&self) -> Effect {
        self.tool.effect()
    }

    /// Whether it may be made twice without harm.
    #[must_use]
    pub fn is_repeatable(&self) -> bool {
        self.tool.is_repeatable()
    }
}

/// A failure as the model reads it.
fn failed(name: &str, error: ToolError) -> ToolError {
    ToolError::new(error.kind(), format!("Tool error ({name}): {}", error.for_model())).with_source(error)
}

/// What the tool answers, in the time that it has.
async fn answer(call: &PreparedCall, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
    /// What a tool may need besides its commands.
    const MARGIN: Duration = Duration::from_secs(60);
    let tool = call.tool.tool();
    let answer = caught(async { tool.call_json(call.arguments.to_object(), cx).await });
    if tool.waits() {
        return answer.await;
    }
    let limit = cx.timeouts.max.saturating_add(MARGIN);
    timeout(limit, answer).await.unwrap_or_else(|_| {
        tracing::error!(tool = call.name(), seconds = limit.as_secs(), "a tool hangs");
        let message = format!("no answer within {} s, so the call was stopped", limit.as_secs());
        Err(ToolError::new(ToolErrorKind::TimedOut, message))
    })
}

/// Lets a tool's panic end its own call and nothing else.
async fn caught(call: impl Future<Output = Result<ToolOutput, ToolError>>) -> Result<ToolOutput, ToolError> {
    let mut call = pin!(call);
    // Nothing of a call is looked at after its panic, so nothing half done can be seen.
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| call.as_mut().poll(context))) {
        Ok(poll) => poll,
        Err(payload) => Poll::Ready(Err(panicked(payload.as_ref()))),
    })
    .await
}

fn panicked(payload: &(dyn Any + Send)) -> ToolError {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message");
    let text = schema::shortened(text.to_owned(), 500);
    tracing::error!(message = text, "a tool panicked");
    ToolError::new(ToolErrorKind::Failed, format!("the tool itself is broken: it panicked ({text})"))
}

/// An output that a tool holds in memory although it is too large for that. It stays there if the disk is full.
async fn spooled(output: Output, limits: OutputLimits) -> Output {
    /// The bytes of one write.
    const BLOCK: usize = 1 << 20;
    if output.is_spooled() || output.len() <= limits.inline as u64 {
        return output;
    }
    let held = output.clone();
    let copied = spawn_blocking(move || {
        let mut copy = OutputCollector::new(limits);
        let mut offset = 0;
        while offset < held.len() {
            let block = held.read_at(offset, BLOCK).ok()?;
            offset += block.len() as u64;
            copy.push(&block);
        }
        let copy = copy.finish();
        (copy.dropped() == 0).then_some(copy)
    });
    copied.await.ok().flatten().unwrap_or(output)
}

/// What the model reads.
async fn shown(output: &ToolOutput, call: &PreparedCall, limits: &TruncationLimits) -> String {
    const PREFACE: usize = 2_000;
    let tool = &call.tool;
    let mut rule = limits.rule(tool.name(), tool.kind(), tool.truncation());
    rule.chars = rule.chars.min(output.max_chars.unwrap_or(usize::MAX));
    let text = cut(&output.text, rule).await;
    if output.preface.is_empty() && output.text.is_empty() && output.images.is_empty() {
        return "(no output)".into();
    }
    format!("{}{text}", schema::shortened(output.preface.clone(), PREFACE))
}

/// An output cut by a rule. A spooled one is read from disk, which must not hold up other tasks.
async fn cut(output: &Output, rule: TruncationRule) -> String {
    if !output.is_spooled() {
        return truncate::truncate_to(output, rule);
    }
    let output = output.clone();
    match spawn_blocking(move || truncate::truncate_to(&output, rule)).await {
        Ok(text) => text,
        Err(error) => format!("[ERROR: The output cannot be read back: {error}]"),
    }
}

fn unknown_tool(registry: &ToolRegistry, name: &str) -> ToolError {
    const LONGEST: usize = 128;
    let nearest = registry.nearest(name);
    let all: Vec<&str> = registry.names().collect();
    let hint = match (nearest.as_slice(), all.as_slice()) {
        (_, []) => "There are no tools.".to_owned(),
        ([], all) => format!("Available tools: {}.", all.join(", ")),
        (nearest, _) => format!("Did you mean {}?", nearest.join(", ")),
    };
    let name = schema::shortened(name.to_owned(), LONGEST);
    ToolError::new(ToolErrorKind::UnknownTool, format!("Unknown tool: {name}. {hint}"))
}

#[cfg(test)]
mod tests;
