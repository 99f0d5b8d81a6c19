//! The control channel of the example: who waits for which answer, and what of a session is decided there.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use pintle_agent::{
    ApprovalRequest, Approver, CallAnswer, Decision, EndAnswer, HookSession, Hooks, InputAnswer, ResultAnswer,
};
use pintle_compat::Line;
use pintle_compat::claude::{
    ControlChannel, ControlError, ControlEvent, ControlLimits, ControlStep, HookAnswer, HookBase, HookEvent,
    HookRegistration, IncomingLine, LineError, PermissionMode, PermissionRequest, PermissionUpdate,
    SentRequest,
};
use pintle_llm::ToolDefinition;
use pintle_tools::gate::{Judgement, Verdict};
use pintle_tools::pipeline::{Execution, Gate, PreparedCall};
use pintle_tools::{DefinitionError, DynTool, Effect, ToolContext, ToolError, ToolOutput};
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

/// Requests that wait for the host.
#[derive(Debug)]
pub(crate) struct Channel {
    control: Mutex<ControlChannel>,
    waiting: Mutex<BTreeMap<String, oneshot::Sender<ControlEvent>>>,
}

impl Channel {
    pub(crate) fn new() -> Self {
        let control = Mutex::new(ControlChannel::new(ControlLimits::default()));
        Self { control, waiting: Mutex::default() }
    }

    /// Takes a line. Answers go to whoever waits; anything else is returned.
    pub(crate) fn take(&self, line: Result<String, LineError>) -> Result<Option<ControlEvent>, String> {
        let incoming = line.and_then(|line| IncomingLine::parse(&line)).map_err(|error| error.to_string())?;
        let ControlStep { lines, event } =
            lock(&self.control).receive(incoming).map_err(|error| error.to_string())?;
        lines.iter().for_each(print);
        let id = match &event {
            Some(
                ControlEvent::Permission { id, .. }
                | ControlEvent::Hook { id, .. }
                | ControlEvent::Mcp { id, .. },
            ) => id.clone(),
            _ => return Ok(event),
        };
        if let (Some(waiting), Some(event)) = (lock(&self.waiting).remove(&id), event) {
            // A stopped turn no longer waits.
            let _ = waiting.send(event);
        }
        Ok(None)
    }

    /// Answers a request of the host.
    pub(crate) fn answer(&self, id: &str, answer: Result<Value, String>) {
        // A request that was cancelled needs no answer.
        if let Ok(line) = lock(&self.control).answer(id, answer) {
            print(&line);
        }
    }

    /// Ends everything that waits.
    pub(crate) fn close(&self) {
        lock(&self.control).close();
        lock(&self.waiting).clear();
    }

    async fn ask(
        &self,
        send: impl FnOnce(&mut ControlChannel) -> Result<SentRequest, ControlError>,
    ) -> Option<ControlEvent> {
        let (sender, answer) = oneshot::channel();
        let id = {
            let sent = send(&mut lock(&self.control)).ok()?;
            lock(&self.waiting).insert(sent.id.clone(), sender);
            print(&sent.line);
            sent.id
        };
        let _withdraw = Withdraw { channel: self, id };
        answer.await.ok()
    }

    /// Sends a message to a server in the host and returns its answer.
    pub(crate) async fn mcp(&self, server: &str, message: &Value) -> Result<Value, String> {
        match self.ask(|control| control.send_mcp(server, message)).await {
            Some(ControlEvent::Mcp { answer, .. }) => answer,
            _ => Err("the host is gone".to_owned()),
        }
    }

    async fn hook(&self, callback: &str, input: &Value, call: Option<&str>) -> Result<HookAnswer, String> {
        match self.ask(|control| control.run_hook(callback, input, call)).await {
            Some(ControlEvent::Hook { answer, .. }) => answer,
            _ => Err("the host is gone".to_owned()),
        }
    }
}

/// Tells the host that nobody waits any more, when a session drops a question.
struct Withdraw<'a> {
    channel: &'a Channel,
    id: String,
}

impl Drop for Withdraw<'_> {
    fn drop(&mut self) {
        lock(&self.channel.waiting).remove(&self.id);
        if let Some(line) = lock(&self.channel.control).withdraw(&self.id) {
            print(&line);
        }
    }
}

/// Permissions of the session.
#[derive(Clone, Debug)]
pub(crate) struct Permissions {
    pub(crate) mode: Arc<Mutex<PermissionMode>>,
    /// Names of tools that run without being asked about.
    pub(crate) allowed: Vec<String>,
    pub(crate) disallowed: Vec<String>,
}

#[async_trait]
impl Gate for Permissions {
    async fn check(&self, call: &PreparedCall) -> Verdict {
        let name = call.name().to_owned();
        let mode = *lock(&self.mode);
        if self.disallowed.contains(&name) {
            return Verdict::deny("the host does not allow this tool");
        }
        match (mode, call.effect()) {
            (PermissionMode::BypassPermissions, _) | (_, Effect::Read) => Verdict::ALLOW,
            (PermissionMode::Plan, _) => Verdict::deny("nothing is changed in plan mode"),
            (PermissionMode::AcceptEdits, Effect::Write) => Verdict::ALLOW,
            _ if self.allowed.contains(&name) => Verdict::ALLOW,
            _ => Verdict::ask("it is not a call that only reads"),
        }
    }
}

/// Asks the host about calls.
#[derive(Debug)]
pub(crate) struct HostApprover {
    pub(crate) channel: Arc<Channel>,
    pub(crate) permissions: Permissions,
    pub(crate) asks: bool,
}

#[async_trait]
impl Approver for HostApprover {
    async fn decide(&self, request: &ApprovalRequest) -> Decision {
        if !self.asks {
            return Decision::Deny { reason: Some("nobody can be asked".to_owned()) };
        }
        let question = PermissionRequest::new(request);
        match self.channel.ask(|control| control.ask_permission(&question)).await {
            Some(ControlEvent::Permission { answer, .. }) => {
                for update in answer.updates() {
                    if let PermissionUpdate::SetMode(mode) = update {
                        *lock(&self.permissions.mode) = *mode;
                    }
                }
                answer.decision()
            }
            _ => Decision::Deny { reason: Some("the host is gone".to_owned()) },
        }
    }
}

/// Runs the hooks of the host.
#[derive(Debug)]
pub(crate) struct HostHooks {
    pub(crate) channel: Arc<Channel>,
    pub(crate) registered: Vec<HookRegistration>,
}

impl HostHooks {
    /// Returns the answer of the first hook that says something.
    async fn run(
        &self,
        session: &HookSession,
        event: HookEvent,
        subject: &str,
        fields: Value,
        call: Option<&str>,
    ) -> Option<HookAnswer> {
        let fields: Map<String, Value> = fields.as_object().cloned().unwrap_or_default();
        let base = HookBase {
            session_id: session.id.to_string(),
            directory: session.directory.display().to_string(),
            ..HookBase::default()
        };
        let input = base.input(event, fields);
        let registered = self.registered.iter();
        for hook in registered.filter(|hook| hook.event == event && hook.matcher.matches(subject)) {
            for callback in &hook.callbacks {
                match self.channel.hook(callback, &input, call).await {
                    Ok(answer) if answer == HookAnswer::default() => {}
                    Ok(answer) => return Some(answer),
                    Err(reason) if hook.blocks_on_failure => return Some(HookAnswer::failed(reason)),
                    Err(reason) => eprintln!("warning: a hook failed: {reason}"),
                }
            }
        }
        None
    }
}

#[async_trait]
impl Hooks for HostHooks {
    async fn before_input(&self, session: &HookSession, text: &str) -> InputAnswer {
        let fields = json!({"prompt": text});
        let answer = self.run(session, HookEvent::UserPromptSubmit, "", fields, None).await;
        answer.map_or_else(InputAnswer::default, |answer| answer.input_answer())
    }

    async fn before_call(&self, session: &HookSession, call: &PreparedCall, _: &Judgement) -> CallAnswer {
        let fields = json!({
            "tool_name": call.name(), "tool_input": call.arguments(), "tool_use_id": call.call_id(),
        });
        let answer =
            self.run(session, HookEvent::PreToolUse, call.name(), fields, Some(call.call_id())).await;
        answer.map_or_else(CallAnswer::default, |answer| answer.call_answer())
    }

    async fn after_call(
        &self,
        session: &HookSession,
        call: &PreparedCall,
        execution: &Execution,
        duration: Duration,
    ) -> ResultAnswer {
        let output = execution.output.head_text_lossy(64 << 10).unwrap_or_default();
        let fields = json!({
            "tool_name": call.name(), "tool_input": call.arguments(), "tool_use_id": call.call_id(),
            "tool_response": output, "error": output, "duration_ms": duration.as_millis(),
        });
        let failed = execution.error.is_some();
        let event = if failed { HookEvent::PostToolUseFailure } else { HookEvent::PostToolUse };
        let answer = self.run(session, event, call.name(), fields, Some(call.call_id())).await;
        answer.map_or_else(ResultAnswer::default, |answer| answer.result_answer())
    }

    async fn before_end(&self, session: &HookSession, text: &str, sent_on: u32) -> EndAnswer {
        let fields = json!({"stop_hook_active": sent_on > 0, "last_assistant_message": text});
        let answer = self.run(session, HookEvent::Stop, "", fields, None).await;
        answer.map_or_else(EndAnswer::default, |answer| answer.end_answer())
    }
}

/// Tool of an MCP server that runs in the host.
pub(crate) struct HostTool {
    channel: Arc<Channel>,
    server: String,
    tool: String,
    description: String,
    schema: Value,
}

impl HostTool {
    /// Asks a server for its tools.
    pub(crate) async fn list(channel: &Arc<Channel>, server: &str) -> Result<Vec<Self>, String> {
        let hello = json!({
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "example", "version": "0"},
        });
        channel.mcp(server, &rpc(1, "initialize", &hello)).await?;
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        channel.mcp(server, &initialized).await?;
        let listed = channel.mcp(server, &rpc(2, "tools/list", &json!({}))).await?;
        let tools = listed.pointer("/result/tools").and_then(Value::as_array).cloned().unwrap_or_default();
        let text = |tool: &Value, name: &str| tool.get(name).and_then(Value::as_str).map(str::to_owned);
        let tool = |tool: &Value| {
            Some(Self {
                channel: Arc::clone(channel),
                server: server.to_owned(),
                tool: text(tool, "name")?,
                description: text(tool, "description").unwrap_or_default(),
                schema: tool.get("inputSchema")?.clone(),
            })
        };
        Ok(tools.iter().filter_map(tool).collect())
    }

    pub(crate) fn name(&self) -> String {
        format!("mcp__{}__{}", self.server, self.tool)
    }
}

#[async_trait]
impl DynTool for HostTool {
    fn definition(&self) -> Result<ToolDefinition, DefinitionError> {
        let name = self.name();
        ToolDefinition::new(&name, &self.description, self.schema.clone())
            .map_err(|error| DefinitionError::refused(&name, error))
    }

    fn effect(&self) -> Effect {
        Effect::Network
    }

    fn waits(&self) -> bool {
        true
    }

    async fn call_json(&self, arguments: Value, _: &ToolContext) -> Result<ToolOutput, ToolError> {
        let call = rpc(3, "tools/call", &json!({"name": self.tool, "arguments": arguments}));
        let answer = self.channel.mcp(&self.server, &call).await.map_err(ToolError::failed)?;
        let text = answer.pointer("/result/content/0/text").and_then(Value::as_str).unwrap_or_default();
        match answer.pointer("/result/isError").and_then(Value::as_bool) {
            Some(true) => Err(ToolError::failed(text)),
            _ => Ok(ToolOutput::new(text)),
        }
    }
}

fn rpc(id: u64, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

impl fmt::Debug for HostTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostTool").field("name", &self.name()).finish_non_exhaustive()
    }
}

/// Locks a mutex; what it protects is valid after a panic as well.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes a line. A host that closed its end is gone, and the end of the input tells so.
pub(crate) fn print(line: &Line) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
