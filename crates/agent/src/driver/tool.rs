//! One tool call: prepared, then run, in tasks of their own.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use pintle_env::Output;
use pintle_llm::{ToolCall, ToolResult};
use pintle_tools::pipeline::{self, PreparedCall};
use pintle_tools::{ToolContext, ToolErrorKind};
use tokio_util::sync::CancellationToken;

use super::{Driver, Report, RunningTool, output};
use crate::id::CallKey;
use crate::turn::{CallPlan, FinishedCall, InputKind, Preparation};

impl Driver {
    pub(super) fn prepare_call(&mut self, call: CallKey, tool_call: ToolCall) {
        let registry = self.profile.tool_registry.clone();
        let gates = Arc::clone(&self.gates);
        let env = Arc::clone(&self.env);
        let reports = self.reports.clone();
        self.tasks.spawn(async move {
            let preparing = pipeline::prepare(&registry, &gates, env.as_ref(), &tool_call);
            let (preparation, prepared) = match AssertUnwindSafe(preparing).catch_unwind().await {
                Ok(pipeline::Preparation::Ready(call)) => {
                    (Preparation::Ready(plan(&call)), Some(Box::new(call)))
                }
                Ok(pipeline::Preparation::Ask { call, reason }) => {
                    (Preparation::Ask { plan: plan(&call), reason }, Some(Box::new(call)))
                }
                Ok(pipeline::Preparation::Refused(error)) => {
                    let message = error.for_model().to_owned();
                    (Preparation::Refused { error: error.kind(), message }, None)
                }
                Err(_) => {
                    let message =
                        format!("The call of {} could not be prepared: a gate panicked", tool_call.name);
                    (Preparation::Refused { error: ToolErrorKind::Failed, message }, None)
                }
            };
            // Without a driver nobody waits for the call.
            let _ = reports.send(Report::Prepared { call, preparation, prepared }).await;
        });
    }

    /// Runs a call whose start is in the log.
    pub(super) fn start_tool(&mut self, key: CallKey) {
        let reports = self.reports.clone();
        let Some(prepared) = self.prepared.get(&key).cloned() else {
            // The machine runs prepared calls only; should it ever ask for another, the model is told.
            self.tasks.spawn(async move {
                let _ = reports.send(Report::Input(InputKind::ToolLost { call: key })).await;
            });
            return;
        };
        let cancel = CancellationToken::new();
        let mut cx = ToolContext::new(Arc::clone(&self.env), prepared.call_id())
            .with_cancel(cancel.clone())
            .with_timeouts(self.config.command_timeouts);
        if let Some(start) = self.open_calls.get(prepared.call_id()) {
            cx = cx.with_on_output(output::sink(Arc::clone(&self.log), *start));
        }
        let limits = self.config.tool_output.clone();
        self.running.insert(key, RunningTool { cancel: cancel.clone() });
        self.tasks.spawn(async move {
            let running = AssertUnwindSafe(pipeline::execute(&prepared, &cx, &limits)).catch_unwind();
            let kind = tokio::select! {
                biased;
                // Dropping the call is what stops it; the environment ends its processes.
                () = cancel.cancelled() => InputKind::ToolLost { call: key },
                execution = running => InputKind::ToolFinished {
                    call: key,
                    finished: Box::new(match execution {
                        Ok(execution) => FinishedCall {
                            result: execution.result,
                            output: execution.output,
                            error: execution.error,
                            changes: execution.changes,
                        },
                        Err(_) => panicked(&prepared),
                    }),
                },
            };
            // Without a driver nobody waits for the result.
            let _ = reports.send(Report::Input(kind)).await;
        });
    }
}

fn plan(call: &PreparedCall) -> CallPlan {
    CallPlan { effect: call.effect(), repeatable: call.is_repeatable(), writes: call.writes().to_vec() }
}

fn panicked(call: &PreparedCall) -> FinishedCall {
    let text = format!("Tool error ({}): the tool panicked", call.name());
    FinishedCall {
        result: ToolResult::new(call.call_id(), text.clone(), true),
        output: Output::from(text),
        error: Some(ToolErrorKind::Failed),
        changes: Vec::new(),
    }
}
