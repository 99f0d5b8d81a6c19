//! Hooks of several sources.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use pintle_agent::{
    ApprovalRequest, CallAnswer, CompactionTrigger, Decision, EndAnswer, HookContext, HookSession, Hooks,
    InputAnswer, ResultAnswer, SessionEndReason, SessionSource,
};
use pintle_tools::gate::{Judgement, Permission};
use pintle_tools::pipeline::{Execution, PreparedCall};
use serde_json::Value;

/// Two sources of hooks, such as hooks of the user and of the application. The stricter answer applies, and an allowance
/// only to the arguments that it was given for.
#[derive(Debug)]
pub(crate) struct JoinedHooks {
    first: Option<Arc<dyn Hooks>>,
    second: Arc<dyn Hooks>,
}

impl JoinedHooks {
    /// Joins sources; `None` without one. Each judges after the sources before it.
    pub(crate) fn join(sources: Vec<Arc<dyn Hooks>>) -> Option<Self> {
        let join = |first: Option<Self>, second| {
            let first = first.map(|first| Arc::new(first) as Arc<dyn Hooks>);
            Some(Self { first, second })
        };
        sources.into_iter().fold(None, join)
    }
}

#[async_trait]
impl Hooks for JoinedHooks {
    async fn session_started(&self, session: &HookSession, source: SessionSource) -> HookContext {
        let mut context = None;
        if let Some(first) = &self.first {
            context = first.session_started(session, source).await.0;
        }
        HookContext(joined(context, self.second.session_started(session, source).await.0))
    }

    async fn session_ended(&self, session: &HookSession, reason: SessionEndReason) {
        self.second.session_ended(session, reason).await;
        if let Some(first) = &self.first {
            first.session_ended(session, reason).await;
        }
    }

    async fn before_input(&self, session: &HookSession, text: &str) -> InputAnswer {
        let mut answer = InputAnswer::default();
        if let Some(first) = &self.first {
            answer = first.before_input(session, text).await;
        }
        if answer.refused.is_some() {
            return answer;
        }
        let mut second = self.second.before_input(session, text).await;
        second.context = joined(answer.context, second.context);
        second
    }

    async fn before_call(
        &self,
        session: &HookSession,
        call: &PreparedCall,
        judgement: &Judgement,
    ) -> CallAnswer {
        let Some(first) = &self.first else { return self.second.before_call(session, call, judgement).await };
        let mut first = first.before_call(session, call, judgement).await;
        if is_denial(&first) {
            return first;
        }
        let mut second = self.second.before_call(session, call, judgement).await;
        if is_denial(&second) {
            return second;
        }
        // A change by a later source must not discard a change by an earlier one.
        let arguments = first.arguments.clone().or_else(|| second.arguments.clone());
        for answer in [&mut first, &mut second] {
            drop_other_allowance(answer, arguments.as_ref());
        }
        if first.permission == Some(Permission::Ask) || second.permission.is_none() {
            (second.permission, second.reason) = (first.permission, first.reason);
            second.hook = first.hook.or(second.hook);
        }
        second.arguments = arguments;
        second.context = joined(first.context, second.context);
        second
    }

    async fn before_approval(&self, session: &HookSession, request: &ApprovalRequest) -> Option<Decision> {
        let mut first = None;
        if let Some(source) = &self.first {
            first = source.before_approval(session, request).await;
        }
        if matches!(first, Some(Decision::Deny { .. })) {
            return first;
        }
        match (first, self.second.before_approval(session, request).await) {
            (_, Some(denial @ Decision::Deny { .. })) => Some(denial),
            // As before a call, a later source must not discard a change by an earlier one.
            (Some(change @ Decision::Change { .. }), _) => Some(change),
            (first, second) => second.or(first),
        }
    }

    async fn after_call(
        &self,
        session: &HookSession,
        call: &PreparedCall,
        execution: &Execution,
        duration: Duration,
    ) -> ResultAnswer {
        let mut answer = ResultAnswer::default();
        if let Some(first) = &self.first {
            answer = first.after_call(session, call, execution, duration).await;
        }
        let second = self.second.after_call(session, call, execution, duration).await;
        answer.replacement = second.replacement.or(answer.replacement);
        answer.context = joined(answer.context, second.context);
        answer.stop = answer.stop.or(second.stop);
        answer
    }

    async fn before_end(&self, session: &HookSession, text: &str, sent_on: u32) -> EndAnswer {
        let mut answer = EndAnswer::default();
        if let Some(first) = &self.first {
            answer = first.before_end(session, text, sent_on).await;
        }
        if answer.send_on.is_some() {
            return answer;
        }
        self.second.before_end(session, text, sent_on).await
    }

    async fn before_compaction(&self, session: &HookSession, trigger: CompactionTrigger) -> Option<String> {
        if let Some(first) = &self.first
            && let Some(reason) = first.before_compaction(session, trigger).await
        {
            return Some(reason);
        }
        self.second.before_compaction(session, trigger).await
    }
}

fn is_denial(answer: &CallAnswer) -> bool {
    answer.permission == Some(Permission::Deny) || answer.stop.is_some()
}

/// Removes an allowance that was given for other arguments than the call gets. `None` are the original arguments.
fn drop_other_allowance(answer: &mut CallAnswer, arguments: Option<&Value>) {
    if answer.permission == Some(Permission::Allow) && answer.arguments.as_ref() != arguments {
        (answer.permission, answer.reason, answer.hook) = (None, None, None);
    }
}

fn joined(first: Option<String>, second: Option<String>) -> Option<String> {
    match (first, second) {
        (Some(first), Some(second)) => Some(format!("{first}\n\n{second}")),
        (first, second) => first.or(second),
    }
}

#[cfg(test)]
mod tests {
    use pintle_agent::SessionId;
    use pintle_llm::Fingerprint;
    use serde_json::json;

    use super::*;

    /// Adds its name to inputs, and refuses the inputs that are its name.
    #[derive(Debug)]
    struct Source(&'static str);

    #[async_trait]
    impl Hooks for Source {
        async fn before_input(&self, _session: &HookSession, text: &str) -> InputAnswer {
            if text == self.0 { InputAnswer::refuse(self.0) } else { InputAnswer::add(self.0) }
        }
    }

    #[tokio::test]
    async fn sources_answer_in_their_order_until_one_refuses() {
        let session = HookSession::new(SessionId::new("s"), "/w", None);
        let named = |names: &[&'static str]| {
            let sources = names.iter().map(|name| Arc::new(Source(name)) as Arc<dyn Hooks>);
            JoinedHooks::join(sources.collect())
        };
        assert!(named(&[]).is_none());
        for (names, text, refused, context) in [
            (&["a"][..], "go", None, Some("a")),
            (&["a"], "a", Some("a"), None),
            (&["a", "b", "c"], "go", None, Some("a\n\nb\n\nc")),
            (&["a", "b", "c"], "b", Some("b"), Some("a")),
        ] {
            let answer = named(names).unwrap().before_input(&session, text).await;
            let found = (answer.refused.as_deref(), answer.context.as_deref());
            assert_eq!(found, (refused, context), "{names:?} {text}");
        }
    }

    /// Decides on calls that need approval.
    #[derive(Debug)]
    struct FixedDecision(Option<Decision>);

    #[async_trait]
    impl Hooks for FixedDecision {
        async fn before_approval(&self, _: &HookSession, _: &ApprovalRequest) -> Option<Decision> {
            self.0.clone()
        }
    }

    #[tokio::test]
    async fn denials_and_earlier_changes_precede_other_decisions() {
        let session = HookSession::new(SessionId::new("s"), "/w", None);
        let request = ApprovalRequest::new("call_1", "shell", Fingerprint::from_bytes(b"call"));
        let change = |command: &str| Some(Decision::Change { arguments: json!({"command": command}) });
        let (approval, denial) = (Some(Decision::Approve), Some(Decision::Deny { reason: None }));
        for (first, second, expected) in [
            (None, None, None),
            (approval.clone(), None, approval.clone()),
            (None, approval.clone(), approval.clone()),
            (approval.clone(), change("b"), change("b")),
            (change("a"), None, change("a")),
            (change("a"), approval.clone(), change("a")),
            (change("a"), change("b"), change("a")),
            (change("a"), denial.clone(), denial.clone()),
            (denial.clone(), approval, denial),
        ] {
            let case = format!("{first:?} {second:?}");
            let sources = [first, second].map(|decision| Arc::new(FixedDecision(decision)) as Arc<dyn Hooks>);
            let joined = JoinedHooks::join(sources.into()).unwrap();
            assert_eq!(joined.before_approval(&session, &request).await, expected, "{case}");
        }
    }
}
