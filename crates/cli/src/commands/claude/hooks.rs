//! Hooks that run in the host. They only restrict the permissions of a session, and never extend them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use pintle_agent::{
    ApprovalRequest, CallAnswer, CompactionTrigger, Decision, EndAnswer, HookContext, HookSession, Hooks,
    InputAnswer, ResultAnswer, SessionEndReason, SessionSource,
};
use pintle_compat::claude::{HookAnswer, HookBase, HookEvent, HookRegistration};
use pintle_tools::gate::{Judgement, Permission};
use pintle_tools::pipeline::{Execution, PreparedCall};
use pintle_tui::console;
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use super::channel::HostChannel;
use super::permissions::HostPermissions;

/// Default and maximum time limit of a hook.
const TIMEOUT: Duration = Duration::from_secs(60);
const MAX_TIMEOUT: Duration = Duration::from_secs(600);

/// Maximum size of a result that is passed to a hook, in bytes.
const RESULT: usize = 64 << 10;

/// Hooks that the host has registered.
#[derive(Debug)]
pub(super) struct HostHooks {
    pub(super) channel: Arc<HostChannel>,
    pub(super) permissions: Arc<HostPermissions>,
    pub(super) registered: Vec<HookRegistration>,
}

impl HostHooks {
    /// Runs the hooks of an event one after the other and returns the first answer that changes something.
    async fn run(
        &self,
        session: &HookSession,
        event: HookEvent,
        subject: &str,
        fields: Value,
        call: Option<&str>,
    ) -> HookAnswer {
        let fields: Map<String, Value> = fields.as_object().cloned().unwrap_or_default();
        let base = HookBase {
            session_id: session.id.to_string(),
            directory: session.directory.display().to_string(),
            permission_mode: self.permissions.mode().to_string(),
            agent_id: session.origin.as_ref().map(|origin| origin.agent_id.clone()),
            ..HookBase::default()
        };
        let input = base.input(event, fields);
        let registered = self.registered.iter();
        for hook in registered.filter(|hook| hook.event == event && hook.matcher.matches(subject)) {
            let limit = hook.timeout.unwrap_or(TIMEOUT).min(MAX_TIMEOUT);
            for callback in &hook.callbacks {
                let answer = timeout(limit, self.channel.hook(callback, &input, call)).await;
                let answer = answer.unwrap_or_else(|_| Err(format!("no answer in {} s", limit.as_secs())));
                match answer {
                    Ok(answer) if answer == HookAnswer::default() => {}
                    Ok(answer) => {
                        if let Some(message) = &answer.system_message {
                            console::notice(&format!("a hook of the host: {message}"));
                        }
                        return answer;
                    }
                    Err(reason) if hook.blocks_on_failure => return HookAnswer::failed(reason),
                    Err(reason) => console::notice(&format!("a hook of the host failed: {reason}")),
                }
            }
        }
        HookAnswer::default()
    }
}

#[async_trait]
impl Hooks for HostHooks {
    async fn session_started(&self, session: &HookSession, source: SessionSource) -> HookContext {
        let (event, source) = match (&session.origin, source) {
            (Some(_), _) => (HookEvent::SubagentStart, ""),
            (None, SessionSource::Resumed) => (HookEvent::SessionStart, "resume"),
            (None, SessionSource::Forked) => (HookEvent::SessionStart, "fork"),
            (None, SessionSource::New | _) => (HookEvent::SessionStart, "startup"),
        };
        HookContext(self.run(session, event, source, json!({"source": source}), None).await.context)
    }

    async fn session_ended(&self, session: &HookSession, _: SessionEndReason) {
        if session.origin.is_none() {
            let fields = json!({"reason": "other"});
            self.run(session, HookEvent::SessionEnd, "other", fields, None).await;
        }
    }

    async fn before_input(&self, session: &HookSession, text: &str) -> InputAnswer {
        let fields = json!({"prompt": text});
        self.run(session, HookEvent::UserPromptSubmit, "", fields, None).await.input_answer()
    }

    async fn before_call(&self, session: &HookSession, call: &PreparedCall, _: &Judgement) -> CallAnswer {
        let fields = json!({
            "tool_name": call.name(), "tool_input": call.arguments(), "tool_use_id": call.call_id(),
        });
        let mut answer =
            self.run(session, HookEvent::PreToolUse, call.name(), fields, Some(call.call_id())).await;
        answer.permission = answer.permission.filter(|permission| *permission != Permission::Allow);
        answer.call_answer()
    }

    async fn before_approval(&self, session: &HookSession, request: &ApprovalRequest) -> Option<Decision> {
        let fields = json!({"tool_name": request.tool_name, "tool_input": request.arguments});
        let id = Some(request.call_id.as_str());
        let answer = self.run(session, HookEvent::PermissionRequest, &request.tool_name, fields, id).await;
        answer.decision().filter(|decision| matches!(decision, Decision::Deny { .. }))
    }

    async fn after_call(
        &self,
        session: &HookSession,
        call: &PreparedCall,
        execution: &Execution,
        duration: Duration,
    ) -> ResultAnswer {
        let output = execution.output.head_text_lossy(RESULT).unwrap_or_default();
        let mut fields = json!({
            "tool_name": call.name(), "tool_input": call.arguments(), "tool_use_id": call.call_id(),
            "duration_ms": duration.as_millis(),
        });
        let (event, name) = match execution.error {
            Some(_) => (HookEvent::PostToolUseFailure, "error"),
            None => (HookEvent::PostToolUse, "tool_response"),
        };
        if let Some(fields) = fields.as_object_mut() {
            fields.insert(name.to_owned(), output.into());
        }
        self.run(session, event, call.name(), fields, Some(call.call_id())).await.result_answer()
    }

    async fn before_end(&self, session: &HookSession, text: &str, sent_on: u32) -> EndAnswer {
        let fields = json!({"stop_hook_active": sent_on > 0, "last_assistant_message": text});
        let event = if session.origin.is_some() { HookEvent::SubagentStop } else { HookEvent::Stop };
        self.run(session, event, "", fields, None).await.end_answer()
    }

    async fn before_compaction(&self, session: &HookSession, trigger: CompactionTrigger) -> Option<String> {
        let trigger = if trigger == CompactionTrigger::Manual { "manual" } else { "auto" };
        let fields = json!({"trigger": trigger});
        let answer = self.run(session, HookEvent::PreCompact, trigger, fields, None).await;
        let reason = answer.stop.or(answer.reason.filter(|_| answer.blocks));
        reason.or_else(|| answer.blocks.then(|| "a hook of the host refused it".to_owned()))
    }
}
