//! Permissions of a session: the mode that the host has set, and the host's decisions on calls.

use std::sync::{Arc, Mutex, OnceLock};

use async_trait::async_trait;
use pintle_agent::{ApprovalRequest, Approver, Decision, SessionHandle};
use pintle_compat::claude::{
    PermissionAnswer, PermissionMode, PermissionRequest, PermissionUpdate, RuleBehavior, ToolRule,
};
use pintle_governance::{APPROVAL_SOURCE, Mode, Policy, PresentPlan};
use pintle_tools::gate::Permission;
use pintle_tui::console;

use super::channel::{HostChannel, lock};
use super::rules::own_rules;
use crate::arguments::command_line::own_mode;

/// Forwards decisions on calls to the host.
#[derive(Debug)]
pub(super) struct HostPermissions {
    channel: Arc<HostChannel>,
    mode: Mutex<PermissionMode>,
    /// Whether the host answers `can_use_tool`.
    asks: bool,
    may_bypass: bool,
    /// Policy and handle, once the session is open.
    session: OnceLock<(Policy, SessionHandle)>,
}

impl HostPermissions {
    pub(super) fn new(channel: Arc<HostChannel>, mode: PermissionMode, asks: bool, may_bypass: bool) -> Self {
        Self { channel, mode: Mutex::new(mode), asks, may_bypass, session: OnceLock::new() }
    }

    pub(super) fn mode(&self) -> PermissionMode {
        *lock(&self.mode)
    }

    /// Sets the session that the permissions apply to. Without a sandbox, its mode may differ from the mode of the
    /// host.
    pub(super) fn attach(&self, policy: &Policy, handle: SessionHandle) {
        if policy.mode() != own_mode(self.mode()) {
            *lock(&self.mode) = match policy.mode() {
                Mode::Plan => PermissionMode::Plan,
                Mode::Ask => PermissionMode::Default,
                Mode::Edit => PermissionMode::AcceptEdits,
                Mode::Auto => PermissionMode::BypassPermissions,
            };
        }
        let _ = self.session.set((policy.clone(), handle));
    }

    /// Changes the mode.
    ///
    /// The error is the reason why the mode is not allowed or cannot be recorded.
    pub(super) async fn set_mode(&self, mode: PermissionMode) -> Result<(), String> {
        if mode == PermissionMode::BypassPermissions && !self.may_bypass {
            return Err("mode bypassPermissions needs --allow-dangerously-skip-permissions".to_owned());
        }
        if let Some((policy, _)) = self.session.get() {
            policy.set_mode(own_mode(mode)).await.map_err(|error| error.to_string())?;
        }
        *lock(&self.mode) = mode;
        Ok(())
    }

    /// Applies a change that came with an answer.
    ///
    /// Fails with a reason if a change that restricts cannot be applied.
    async fn apply(&self, update: &PermissionUpdate, request: &ApprovalRequest) -> Result<(), String> {
        match update {
            PermissionUpdate::SetMode(mode) => self.set_mode(*mode).await,
            PermissionUpdate::AddRules { behavior, rules } => {
                for rule in rules {
                    self.add_rule(*behavior, rule, request).await?;
                }
                Ok(())
            }
            PermissionUpdate::ReplaceRules { behavior: RuleBehavior::Allow, .. }
            | PermissionUpdate::RemoveRules { behavior: RuleBehavior::Allow, .. }
            | PermissionUpdate::RemoveDirectories(_) => {
                Err("rules and directories that allow something cannot be removed here".to_owned())
            }
            PermissionUpdate::ReplaceRules { .. }
            | PermissionUpdate::RemoveRules { .. }
            | PermissionUpdate::AddDirectories(_) => {
                console::notice("a change of permissions that allows more is ignored: it is not supported");
                Ok(())
            }
        }
    }

    async fn add_rule(
        &self,
        behavior: RuleBehavior,
        rule: &ToolRule,
        request: &ApprovalRequest,
    ) -> Result<(), String> {
        let permission = match behavior {
            RuleBehavior::Allow => Permission::Allow,
            RuleBehavior::Ask => Permission::Ask,
            RuleBehavior::Deny => Permission::Deny,
        };
        // The host returns a suggested rule unchanged.
        let suggested = rule.scope.clone().filter(|scope| request.suggested_rules.contains(scope));
        let own = match suggested {
            Some(suggested) => Some(vec![suggested]),
            None => own_rules(rule, behavior, |_| true),
        };
        let Some(own) = own else {
            let message = format!("the rule `{rule}` has no counterpart here");
            return match permission {
                Permission::Allow => {
                    console::notice(&format!("{message} and is ignored"));
                    Ok(())
                }
                Permission::Ask | Permission::Deny => Err(message),
            };
        };
        let Some((policy, _)) = self.session.get() else { return Ok(()) };
        for rule in own {
            let source = format!("{APPROVAL_SOURCE}{}", request.call_id);
            let added = policy.add_rule(permission, &rule, source).await;
            added.map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

#[async_trait]
impl Approver for HostPermissions {
    async fn decide(&self, request: &ApprovalRequest) -> Decision {
        let is_plan = request.tool_kind == PresentPlan::NAME;
        if !self.asks || self.mode() == PermissionMode::DontAsk {
            return deny(match is_plan {
                true => "no user can accept it here; give the complete plan as your final answer",
                false => "it needs approval, and no user can be asked",
            });
        }
        let Some(answer) = self.channel.permission(&PermissionRequest::new(request)).await else {
            return deny("the host closed the connection");
        };
        for update in answer.updates() {
            if let Err(reason) = self.apply(update, request).await {
                console::notice(&format!("the call is denied: {reason}"));
                return deny(&reason);
            }
        }
        if let (PermissionAnswer::Deny { interrupts: true, .. }, Some((_, handle))) =
            (&answer, self.session.get())
        {
            // Fails only if the session has ended.
            let _ = handle.stop_turn();
        }
        answer.decision()
    }
}

fn deny(reason: &str) -> Decision {
    Decision::Deny { reason: Some(reason.to_owned()) }
}
