#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests build sessions without a host"))]

pub mod audit;
mod budget;
mod gate;
mod gate_chain;
mod governed;
mod grant;
mod hidden;
mod hooks;
mod mode;
mod network;
mod pattern;
mod policy;
mod revocation;
mod rules;
mod signed_grant;
mod signing_key;
mod tool_names;
mod watch;
mod workspace_policy;

pub use async_trait::async_trait;
pub use audit::{Audit, AuditError, AuditReport, CallHistory};
pub use budget::{
    Agreement, AtLimit, BudgetApprover, BudgetError, BudgetPolicy, BudgetQuestion, ScopedLimits,
    SessionBudget, UnknownPrice,
};
pub use gate::GrantGate;
pub use gate_chain::{GateChain, GatePosition};
pub use governed::{GovernError, GovernedBuilder, GovernedSession, RecordedSettings};
pub use grant::{
    ArgumentScope, Attenuation, Axis, Delegation, EffectCeiling, Grant, GrantError, GrantId, PathScope,
    Window,
};
pub use hidden::HiddenPathGate;
pub use hooks::{
    ExternalHooks, HookAnswer, HookCommand, HookCommands, HookEvent, HookFailure, HookRun, HooksError,
    TrustedPrograms,
};
pub use mode::{CallTraits, Mode, UnknownMode};
pub use network::{HostScope, NetworkScope};
pub use pattern::Pattern;
pub use policy::{
    APPROVAL_SOURCE, Policy, PolicyError, PolicyGate, PresentPlan, PresentPlanInput, RecordedPolicy,
};
pub use revocation::{RevocationSource, Revocations, RevokedGrants};
pub use rules::{Address, CallFacts, DeniedReads, Rule, RuleError, Rules, RulesError, Ruling};
pub use signed_grant::{
    ChainError, GrantClaims, GrantRecipient, GrantTrust, GrantTrustError, SignedChain, SignedGrant,
    UnsignableNumber,
};
pub use signing_key::{KeyError, PrivateKey, PublicKey};
pub use watch::{
    FinalCheck, ProtectedPathWatch, ProtectedPaths, WatchedFiles, own_protected_paths, protected_paths,
};
pub use workspace_policy::WorkspacePolicy;
