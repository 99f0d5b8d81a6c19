//! A prepared call, and the result of its execution.

mod arguments;
mod stored;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pintle_env::{EnvError, ExecutionEnvironment, Output};
use pintle_llm::{Fingerprint, ToolCall, ToolResult};
use serde_json::Value;

use self::arguments::{Arguments, FittedArguments};
use crate::error::{ToolError, ToolErrorKind};
use crate::outside_sandbox::{SandboxSide, runs_commands};
use crate::registry::{RegisteredTool, ToolRegistry};
use crate::repair::ArgumentRepair;
use crate::schema;
use crate::tool::{DynTool, Effect, FileChange, ReadExtent, RepresentedCall, ToolInput};
use crate::write_locations::write_locations;

/// A call that may run: its tool is known, and its arguments are valid.
#[derive(Clone, Debug)]
pub struct PreparedCall {
    call_id: String,
    arguments: Arguments,
    input: InputSlot,
    repairs: Vec<ArgumentRepair>,
    reads: Vec<PathBuf>,
    read_extent: ReadExtent,
    writes: Vec<PathBuf>,
    targets: Vec<PathBuf>,
    hosts: Option<Vec<String>>,
    sandbox: Option<SandboxSide>,
    held: Option<Arc<dyn ExecutionEnvironment>>,
    /// The locations of the paths when a decision was requested.
    located: Option<Arc<PathLocations>>,
    tool: Arc<RegisteredTool>,
}

/// The [locations](write_locations) of paths, by path. A path that cannot be resolved has no location.
type PathLocations = BTreeMap<PathBuf, Vec<PathBuf>>;

/// The parsed input of a call, until an execution takes it. Clones share it.
#[derive(Clone)]
struct InputSlot(Arc<Mutex<Option<ToolInput>>>);

/// The result of a call.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Execution {
    /// The result for the model, truncated.
    pub result: ToolResult,
    /// The complete output.
    pub output: Output,
    /// The kind of failure, if the call failed.
    pub error: Option<ToolErrorKind>,
    /// The time-out that a command exceeded, if it did.
    pub timed_out: Option<Duration>,
    /// The exit code of a command that exited.
    pub exit_code: Option<i32>,
    /// The files that changed.
    pub changes: Vec<FileChange>,
    /// A question to the user: the run ends with this round, and the next input answers it.
    pub question: Option<String>,
    /// Reason why the run must end with this round, if a gate found one after the call.
    pub stop: Option<String>,
}

impl PreparedCall {
    /// Looks up the tool of a call, and parses and checks the arguments.
    ///
    /// # Errors
    ///
    /// An unknown tool, or arguments that the schema or the tool refuses.
    pub(crate) fn new(
        registry: &ToolRegistry,
        env: &dyn ExecutionEnvironment,
        call: &ToolCall,
    ) -> Result<Self, ToolError> {
        let find = |name: &str| registry.find(name).ok_or_else(|| unknown_tool(registry, name));
        let fit =
            |tool: &RegisteredTool, call: &ToolCall| arguments::fit(tool, call, registry.repairs_arguments());
        let mut tool = find(&call.name)?;
        let mut fitted = fit(&tool, call)?;
        if let Some(RepresentedCall { name, arguments }) = tool.tool().represented_call(&fitted.object) {
            tool = find(&name)?;
            fitted = fit(&tool, &ToolCall::from_raw(&call.id, name, arguments.to_string()))?;
        }
        let FittedArguments { object, arguments, repairs } = fitted;
        let mut input = tool.tool().parse(&object).map_err(|error| tool_error(tool.name(), error))?;
        let resolved = |paths: Vec<PathBuf>| -> Result<Vec<PathBuf>, ToolError> {
            paths.iter().map(|path| absolute(env, path)).collect()
        };
        let failed = |error| tool_error(tool.name(), error);
        let reads = resolved(std::mem::take(&mut input.reads)).map_err(failed)?;
        let writes = resolved(std::mem::take(&mut input.writes)).map_err(failed)?;
        let sandbox = match input.leaves_sandbox {
            true => Some(SandboxSide::Outside),
            false if runs_commands(&tool) => env.command_limits().map(|_limits| SandboxSide::Inside),
            false => None,
        };
        Ok(Self {
            call_id: call.id.clone(),
            arguments,
            sandbox,
            hosts: input.hosts.take(),
            read_extent: input.read_extent,
            input: InputSlot::new(input),
            repairs,
            reads,
            targets: writes.clone(),
            writes,
            held: None,
            located: None,
            tool,
        })
    }

    /// Returns the call with its paths resolved once. Gates judge the resolved paths, and a tool that runs in
    /// [`judged_in`](Self::judged_in) uses the same paths, even if another process replaces a file or directory.
    ///
    /// Environments that resolve paths by name return the call unchanged. Directories are kept open until the call is dropped.
    ///
    /// # Errors
    ///
    /// As [`ExecutionEnvironment::hold`].
    pub async fn hold(&self, env: &dyn ExecutionEnvironment) -> Result<Self, EnvError> {
        let paths: Vec<PathBuf> = self.reads.iter().chain(&self.writes).cloned().collect();
        let held = if paths.is_empty() { None } else { env.hold(&paths).await? };
        Ok(Self { held, ..self.clone() })
    }

    /// Returns the call without its [held](Self::hold) paths, so that it can wait.
    #[must_use]
    pub fn release(self) -> Self {
        Self { held: None, ..self }
    }

    /// Returns the environment with the [held](Self::hold) paths of the call, or `env` if the call holds none.
    #[must_use]
    pub fn judged_in<'a>(
        &'a self,
        env: &'a Arc<dyn ExecutionEnvironment>,
    ) -> &'a Arc<dyn ExecutionEnvironment> {
        self.held.as_ref().unwrap_or(env)
    }

    /// Returns the call with a record of the locations of its paths, in the environment of its [held](Self::hold) paths
    /// or in `env`. The record remains after [`release`](Self::release), so that a decision on the call applies only to
    /// these files.
    ///
    /// An earlier record remains. A path that cannot be resolved is recorded without a location. Dropping the future
    /// has no effect.
    #[must_use]
    pub async fn locate(self, env: &dyn ExecutionEnvironment) -> Self {
        if self.located.is_some() {
            return self;
        }
        let located = Some(Arc::new(self.resolve_locations(env).await));
        Self { located, ..self }
    }

    /// Returns the recorded locations of each path, as [`locate`](Self::locate) found them, by path. Empty without a record.
    pub fn locations(&self) -> impl Iterator<Item = (&Path, &[PathBuf])> {
        let located = self.located.iter().flat_map(|located| located.iter());
        located.map(|(path, locations)| (path.as_path(), locations.as_slice()))
    }

    /// Returns a path whose location now differs from the [recorded](Self::locate) one, in the environment of its
    /// [held](Self::hold) paths or in `env`; `None` if there is no such path, and without a record.
    ///
    /// Dropping the future has no effect.
    pub async fn find_redirected(&self, env: &dyn ExecutionEnvironment) -> Option<PathBuf> {
        let recorded = self.located.as_deref()?;
        let now = self.resolve_locations(env).await;
        now.into_iter().find(|(path, locations)| recorded.get(path) != Some(locations)).map(|(path, _)| path)
    }

    async fn resolve_locations(&self, env: &dyn ExecutionEnvironment) -> PathLocations {
        let env = self.held.as_deref().unwrap_or(env);
        let mut located = PathLocations::new();
        for path in self.reads.iter().chain(&self.writes) {
            let locations = write_locations(env, path).await.unwrap_or_default();
            located.insert(path.clone(), locations);
        }
        located
    }

    /// Resolves the links in the paths that the call writes, so that two names of one file have the same target.
    pub(crate) async fn with_resolved_targets(mut self, env: &dyn ExecutionEnvironment) -> Self {
        if self.effect() == Effect::Write {
            let env = self.held.as_deref().unwrap_or(env);
            for target in &mut self.targets {
                // If links cannot be resolved or are dangling, the path itself is the target.
                if let Ok(real) = env.canonicalize(target).await {
                    *target = real;
                }
            }
        }
        self
    }

    /// Returns the parsed input. Only the first execution gets the input that was parsed when the call was prepared;
    /// later ones parse the arguments again.
    ///
    /// # Errors
    ///
    /// Arguments that the tool refuses now.
    pub(crate) fn take_input(&self) -> Result<ToolInput, ToolError> {
        match self.input.take() {
            Some(input) => Ok(input),
            None => self.tool().parse(self.arguments()),
        }
    }

    /// Returns a copy that does not take the parsed input from this call.
    pub(crate) fn without_input(&self) -> Self {
        Self { input: InputSlot::empty(), ..self.clone() }
    }

    /// Returns the tool's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.tool.name()
    }

    /// Returns the id that the result must have.
    #[must_use]
    pub fn call_id(&self) -> &str {
        &self.call_id
    }

    /// Returns the arguments, which fit the schema.
    #[must_use]
    pub fn arguments(&self) -> &Value {
        self.arguments.object()
    }

    /// Returns the repairs of the arguments, in the order in which they were made.
    #[must_use]
    pub fn repairs(&self) -> &[ArgumentRepair] {
        &self.repairs
    }

    /// Returns the files that the call may change, as absolute paths.
    #[must_use]
    pub fn writes(&self) -> &[PathBuf] {
        &self.writes
    }

    /// Returns [`writes`](Self::writes) with all links resolved, as far as the environment resolves links. Calls that
    /// share a target must run in order.
    #[must_use]
    pub fn targets(&self) -> &[PathBuf] {
        &self.targets
    }

    /// Returns the files and directories that the call reads, as absolute paths.
    #[must_use]
    pub fn reads(&self) -> &[PathBuf] {
        &self.reads
    }

    /// Returns how much of the directories among its [`reads`](Self::reads) the call reads.
    #[must_use]
    pub fn read_extent(&self) -> ReadExtent {
        self.read_extent
    }

    /// Returns the hosts that the call reaches; `None` if they are unknown.
    #[must_use]
    pub fn hosts(&self) -> Option<&[String]> {
        self.hosts.as_deref()
    }

    /// Returns whether the command of the call runs inside or outside of its environment's sandbox; `None` without a
    /// sandbox, and for calls that are not commands.
    #[must_use]
    pub fn sandbox(&self) -> Option<SandboxSide> {
        self.sandbox
    }

    /// Returns the tool's canonical kind, such as `shell` for a tool called `Bash`.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.tool.kind()
    }

    /// Returns a hash over the id, the tool and the arguments.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        let [id, name] = [&self.call_id, self.name()].map(|part| Fingerprint::from_bytes(part.as_bytes()));
        // Arguments may be megabytes long.
        let arguments = Fingerprint::from_display(self.arguments());
        [id, name, arguments].into_iter().fold(Fingerprint::from_bytes(b"call"), Fingerprint::chain)
    }

    /// Returns the registered tool.
    pub(crate) fn registered(&self) -> &RegisteredTool {
        &self.tool
    }

    /// Returns the tool itself.
    pub(crate) fn tool(&self) -> &dyn DynTool {
        self.tool.tool()
    }

    /// Returns the side effect of the call.
    #[must_use]
    pub fn effect(&self) -> Effect {
        self.tool.effect()
    }

    /// Returns whether repeating the call does no harm.
    #[must_use]
    pub fn is_repeatable(&self) -> bool {
        self.tool.is_repeatable()
    }

    /// Returns whether the call [declares](crate::Tool::declares_changes) its changes.
    #[must_use]
    pub fn declares_changes(&self) -> bool {
        self.tool.tool().declares_changes()
    }
}

impl Execution {
    /// Creates a result without a failure, a changed file or a question.
    #[must_use]
    pub fn new(result: ToolResult, output: Output) -> Self {
        Self {
            result,
            output,
            error: None,
            timed_out: None,
            exit_code: None,
            changes: Vec::new(),
            question: None,
            stop: None,
        }
    }

    /// Creates the result of a call that did not run or did not return, such as a refused one.
    #[must_use]
    pub fn failed(call_id: impl Into<String>, error: &ToolError) -> Self {
        let result = ToolResult::new(call_id, error.for_model(), true);
        Self { error: Some(error.kind()), ..Self::new(result, Output::from(error.for_model())) }
    }
}

impl InputSlot {
    fn new(input: ToolInput) -> Self {
        Self(Arc::new(Mutex::new(Some(input))))
    }

    fn empty() -> Self {
        Self(Arc::default())
    }

    fn take(&self) -> Option<ToolInput> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl fmt::Debug for InputSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InputSlot")
    }
}

/// Adds the tool's name to a failure, as the model reads it.
pub(crate) fn tool_error(name: &str, error: ToolError) -> ToolError {
    ToolError::new(error.kind(), format!("Tool error ({name}): {}", error.for_model())).with_source(error)
}

/// Returns an absolute path, as the environment resolves it.
///
/// # Errors
///
/// A path with `~`, if the home directory is unknown.
fn absolute(env: &dyn ExecutionEnvironment, path: &Path) -> Result<PathBuf, ToolError> {
    if path.starts_with("~") && env.home_directory().is_none() {
        return Err(ToolError::invalid_arguments(format!(
            "the home directory is not known, so {path} names no file: give an absolute path, or ./{path} for an \
             entry named ~",
            path = path.display()
        )));
    }
    Ok(env.resolve(path))
}

fn unknown_tool(registry: &ToolRegistry, name: &str) -> ToolError {
    const MAX_NAME: usize = 128;
    let similar = registry.similar_names(name);
    let all: Vec<&str> = registry.names().collect();
    let hint = match (similar.as_slice(), all.as_slice()) {
        (_, []) => "There are no tools.".to_owned(),
        ([], all) => format!("Available tools: {}.", all.join(", ")),
        (similar, _) => format!("Did you mean {}?", similar.join(", ")),
    };
    let name = schema::shortened(name.to_owned(), MAX_NAME);
    ToolError::new(ToolErrorKind::UnknownTool, format!("Unknown tool: {name}. {hint}"))
}
