//! A call from start to end, for applications without a session.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use pintle_llm::ToolCall;

use super::{Execution, Gate, JudgedCall, PreparedCall, execute, prepare};
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::gate::{self, Permission};
use crate::registry::ToolRegistry;
use crate::truncate::TruncationLimits;

type Approve = dyn Fn(PreparedCall, String) -> Pin<Box<dyn Future<Output = bool> + Send>> + Send + Sync;

/// The gates, limits and approvals of [`run`]. By default every call runs, with the default limits.
#[derive(Clone, Default)]
pub struct RunOptions {
    gates: Vec<Arc<dyn Gate>>,
    limits: TruncationLimits,
    approve: Option<Arc<Approve>>,
}

impl RunOptions {
    /// Creates options without gates.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a gate.
    #[must_use]
    pub fn with_gate(mut self, gate: impl Gate + 'static) -> Self {
        self.gates.push(Arc::new(gate));
        self
    }

    /// Adds the gates of a chain, in this order.
    #[must_use]
    pub fn with_gates(mut self, gates: impl IntoIterator<Item = Arc<dyn Gate>>) -> Self {
        self.gates.extend(gates);
        self
    }

    /// Sets the limits on the output that the model reads.
    #[must_use]
    pub fn with_limits(mut self, limits: TruncationLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the function that decides on calls that a gate asks about. Its second argument is the reason. Without such
    /// a function, these calls are denied.
    #[must_use]
    pub fn with_approval<F, Fut>(mut self, approve: F) -> Self
    where
        F: Fn(PreparedCall, String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = bool> + Send + 'static,
    {
        self.approve = Some(Arc::new(move |call, reason| Box::pin(approve(call, reason))));
        self
    }
}

impl fmt::Debug for RunOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunOptions")
            .field("gates", &self.gates)
            .field("limits", &self.limits)
            .field("approve", &self.approve.is_some())
            .finish()
    }
}

/// Prepares, gates and executes one call. The result of a call that must not run is the reason.
///
/// One [`ToolContext`] may serve many calls. Its [`call_id`](ToolContext::call_id) is replaced by the id of the call.
/// Dropping the future stops the call.
///
/// ```
/// use std::sync::Arc;
/// use pintle_env::MemoryEnvironment;
/// use pintle_llm::ToolCall;
/// use pintle_tools::gate::{EffectGate, Permission};
/// use pintle_tools::pipeline::{RunOptions, run};
/// use pintle_tools::{Effect, ToolContext, ToolRegistry, builtin};
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let mut registry = ToolRegistry::new();
/// builtin::register_core(&mut registry)?;
/// let cx = ToolContext::new(Arc::new(MemoryEnvironment::new("/project")), "");
/// let options = RunOptions::new()
///     .with_gate(EffectGate::new().with_permission(Effect::Write, Permission::Ask))
///     .with_approval(|call, _reason| async move { call.writes().iter().all(|path| path.starts_with("/project")) });
///
/// let call = ToolCall::from_raw("call_1", "write_file", r#"{"file_path": "/etc/passwd", "content": ""}"#);
/// let execution = run(&registry, &call, &cx, &options).await;
/// assert_eq!(execution.result.text(), "The call of write_file was denied: the call changes files");
/// # Ok::<(), pintle_tools::DefinitionError>(())
/// # }).unwrap();
/// ```
pub async fn run(
    registry: &ToolRegistry,
    call: &ToolCall,
    cx: &ToolContext,
    options: &RunOptions,
) -> Execution {
    let mut cx = cx.clone();
    cx.call_id.clone_from(&call.id);
    let prepared = match prepare(registry, &options.gates, cx.env.as_ref(), call).await {
        JudgedCall::Ready { call: prepared, .. } => prepared,
        JudgedCall::Ask { call, judgement } => match approved(call, judgement.reason(), &cx, options).await {
            Ok(prepared) => prepared,
            Err(error) => return Execution::failed(&cx.call_id, &error),
        },
        JudgedCall::Refused { error, .. } => return Execution::failed(&cx.call_id, &error),
    };
    cx.env = Arc::clone(prepared.judged_in(&cx.env));
    for gate in &options.gates {
        gate.before_run(&prepared).await;
    }
    let execution = execute(&prepared, &cx, &options.limits).await;
    for gate in &options.gates {
        gate.ran(&prepared, &execution).await;
    }
    execution
}

/// Asks for approval, and has the gates judge the call again, since asking may have taken long.
async fn approved(
    call: PreparedCall,
    reason: String,
    cx: &ToolContext,
    options: &RunOptions,
) -> Result<PreparedCall, ToolError> {
    let call = call.locate(cx.env.as_ref()).await.release();
    let is_approved = match &options.approve {
        Some(approve) => approve(call.clone(), reason.clone()).await,
        None => false,
    };
    if !is_approved {
        return Err(gate::denied(call.name(), &reason));
    }
    let call = call.hold(cx.env.as_ref()).await?;
    let judgement = gate::judge(&options.gates, &call).await;
    match judgement.permission() {
        Permission::Allow | Permission::Ask => match call.find_redirected(cx.env.as_ref()).await {
            Some(path) => Err(gate::denied(call.name(), &gate::redirected(&path))),
            None => Ok(call),
        },
        Permission::Deny => Err(gate::denied(call.name(), &judgement.reason())),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use pintle_env::{ExecutionEnvironmentExt as _, LocalEnvironment, MemoryEnvironment};
    use serde_json::json;

    use super::*;
    use crate::builtin;
    use crate::error::ToolErrorKind;
    use crate::gate::{EffectGate, Permission, ReadBeforeWrite, Verdict};
    use crate::tool::Effect;

    struct Harness {
        env: Arc<MemoryEnvironment>,
        registry: ToolRegistry,
    }

    impl Harness {
        fn new() -> Self {
            let mut registry = ToolRegistry::new();
            builtin::register_core(&mut registry).unwrap();
            Self { env: Arc::new(MemoryEnvironment::new("/p").with_file("a", "one\n")), registry }
        }

        async fn run(&self, name: &str, arguments: serde_json::Value, options: &RunOptions) -> Execution {
            let cx = ToolContext::new(self.env.clone(), "");
            let call = ToolCall::from_raw("call_7", name, arguments.to_string());
            let execution = run(&self.registry, &call, &cx, options).await;
            assert_eq!(execution.result.tool_call_id, "call_7");
            assert_eq!(execution.result.is_error, execution.error.is_some());
            execution
        }
    }

    #[tokio::test]
    async fn a_call_runs_or_is_answered_with_its_error() {
        let harness = Harness::new();
        let options = RunOptions::new().with_limits(TruncationLimits::new().with_chars("read_file", 1));
        let read = harness.run("read_file", json!({"file_path": "a"}), &options).await;
        assert_eq!((read.error, read.output.to_text_lossy().unwrap().as_str()), (None, "1 | one"));
        assert!(read.result.text().contains("characters were removed"), "the limits apply");
        let unknown = harness.run("nothing", json!({}), &options).await;
        assert_eq!(unknown.error, Some(ToolErrorKind::UnknownTool));
        assert_eq!(unknown.output.to_text_lossy().unwrap(), unknown.result.text());
    }

    #[tokio::test]
    async fn a_question_is_denied_or_put_to_the_callback() {
        let harness = Harness::new();
        let write = json!({"file_path": "b", "content": "new"});
        let asking =
            || RunOptions::new().with_gate(EffectGate::new().with_permission(Effect::Write, Permission::Ask));
        let denied = harness.run("write_file", write.clone(), &asking()).await;
        assert_eq!(denied.error, Some(ToolErrorKind::Denied));
        assert_eq!(denied.result.text(), "The call of write_file was denied: the call changes files");
        for (answer, expected) in [(false, Some(ToolErrorKind::Denied)), (true, None)] {
            let asked = Arc::new(Mutex::new(Vec::new()));
            let log = Arc::clone(&asked);
            let options = asking().with_approval(move |call, reason| {
                log.lock().unwrap().push(format!("{} {}: {reason}", call.name(), call.call_id()));
                async move { answer }
            });
            assert_eq!(harness.run("write_file", write.clone(), &options).await.error, expected);
            assert_eq!(*asked.lock().unwrap(), ["write_file call_7: the call changes files"]);
            assert_eq!(harness.env.file_exists("b".as_ref()).await.unwrap(), answer);
        }
    }

    /// Gate that records the calls of its methods, and asks.
    #[derive(Clone, Debug, Default)]
    struct StepRecordingGate(Arc<Mutex<Vec<&'static str>>>);

    #[async_trait::async_trait]
    impl Gate for StepRecordingGate {
        async fn check(&self, _call: &PreparedCall) -> Verdict {
            self.0.lock().unwrap().push("check");
            Verdict::ask("scripted")
        }

        async fn before_run(&self, _call: &PreparedCall) {
            self.0.lock().unwrap().push("before_run");
        }

        async fn ran(&self, _call: &PreparedCall, _execution: &Execution) {
            self.0.lock().unwrap().push("ran");
        }
    }

    #[tokio::test]
    async fn gates_prepare_once_for_a_call_that_runs() {
        let harness = Harness::new();
        for (answer, expected) in [(true, &["check", "check", "before_run", "ran"][..]), (false, &["check"])]
        {
            let gate = StepRecordingGate::default();
            let options = RunOptions::new()
                .with_gate(gate.clone())
                .with_approval(move |_, _| std::future::ready(answer));
            harness.run("read_file", json!({"file_path": "a"}), &options).await;
            assert_eq!(*gate.0.lock().unwrap(), expected);
        }
    }

    #[tokio::test]
    async fn gates_learn_of_executions_and_judge_approved_calls_again() {
        let harness = Harness::new();
        let options = RunOptions::new().with_gate(ReadBeforeWrite::new(harness.env.clone()));
        let write = json!({"file_path": "a", "content": "two"});
        assert_eq!(
            harness.run("write_file", write.clone(), &options).await.error,
            Some(ToolErrorKind::Denied)
        );
        harness.run("read_file", json!({"file_path": "a"}), &options).await;
        let env = harness.env.clone();
        let racing = options
            .clone()
            .with_gate(EffectGate::new().with_permission(Effect::Write, Permission::Ask))
            .with_approval(move |_, _| {
                let env = env.clone();
                async move { env.write_file("a".as_ref(), "theirs").await.is_ok() }
            });
        let stale = harness.run("write_file", write.clone(), &racing).await;
        assert!(stale.result.text().contains("has changed on disk"), "{}", stale.result.text());
        harness.run("read_file", json!({"file_path": "a"}), &options).await;
        assert_eq!(harness.run("write_file", write, &options).await.error, None);
    }

    #[tokio::test]
    #[expect(clippy::disallowed_methods, reason = "another process changes the link")]
    async fn an_approval_does_not_hold_where_a_link_leads_elsewhere() {
        let mut registry = ToolRegistry::new();
        builtin::register_core(&mut registry).unwrap();
        for is_redirected in [false, true] {
            let directory = tempfile::tempdir().unwrap();
            for name in ["project/inside", "outside"] {
                std::fs::create_dir_all(directory.path().join(name)).unwrap();
            }
            let link = directory.path().join("project/here");
            std::os::unix::fs::symlink("inside", &link).unwrap();
            let asks = EffectGate::new().with_permission(Effect::Write, Permission::Ask);
            let options = RunOptions::new().with_gate(asks).with_approval(move |_, _| {
                if is_redirected {
                    std::fs::remove_file(&link).unwrap();
                    std::os::unix::fs::symlink("../outside", &link).unwrap();
                }
                std::future::ready(true)
            });
            let env = LocalEnvironment::with_host_env(directory.path().join("project"), []).unwrap();
            let cx = ToolContext::new(Arc::new(env), "");
            let arguments = json!({"file_path": "here/x", "content": "1"}).to_string();
            let call = ToolCall::from_raw("call_1", "write_file", arguments);
            let execution = run(&registry, &call, &cx, &options).await;
            assert_eq!(execution.error, is_redirected.then_some(ToolErrorKind::Denied));
            assert_eq!(
                execution.result.text().contains("here/x now leads to another location"),
                is_redirected
            );
            assert_eq!(directory.path().join("project/inside/x").exists(), !is_redirected);
            assert!(!directory.path().join("outside/x").exists());
        }
    }
}
