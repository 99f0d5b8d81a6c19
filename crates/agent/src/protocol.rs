//! Plain data of a session: states, limits, inputs, actions, events and identifiers.
//!
//! The rest of this crate depends on these types, and they depend on none of its other modules. They can be serialised
//! where a record, an event or a stored machine contains them; no serialised name changes without a new
//! [version](crate::Record::VERSION).

mod action;
mod approval;
mod budget;
mod call;
mod checkpoint;
mod compaction;
mod context;
mod decision;
mod event;
mod history;
mod hooked;
mod id;
mod image;
mod input;
mod input_consequences;
mod limits;
mod outcome;
mod policy;
mod posted;
mod project;
mod start;
mod state;
mod subagent;
mod timestamp;
mod user_message;

pub use self::action::Action;
pub use self::approval::{ApprovalEnding, Principal};
pub use self::budget::{Account, BudgetKind, BudgetScope, BudgetUsage, Limits, ReachedBudget};
pub use self::call::{CallKind, CallPlan, ChangedArguments, Preparation};
pub use self::checkpoint::{Checkpoint, CheckpointReason};
pub use self::compaction::{Compaction, CompactionPolicy, CompactionReport};
pub use self::context::{TokenBounds, TurnContext};
pub use self::decision::Decision;
pub use self::event::{EventKind, ForkedFrom, SessionEvent, event_schema};
pub use self::history::{Turn, TurnKind};
pub use self::hooked::{CompactionTrigger, HookAdditions, SessionEndReason};
pub(crate) use self::hooked::{add_context, without_context};
pub use self::id::{CallKey, LoadId, ModelCallId, RunId, SegmentId, SessionId};
pub use self::image::ImageSummary;
pub use self::input::{Change, Input, InputKind, SegmentKind, Timer};
pub use self::input_consequences::InputConsequences;
pub use self::limits::{SubagentLimits, TurnLimits};
pub(crate) use self::outcome::Rejection;
pub use self::outcome::{Outcome, OutcomeStatus};
pub use self::policy::{PolicyChange, PolicyRule};
pub use self::posted::{PostedInput, PostedItem};
pub use self::project::{LoadedDocument, LoadedProject, Skill, SkippedFile};
pub use self::start::Start;
pub use self::state::{QueuedMessages, SessionState};
pub use self::subagent::{SubagentOrigin, SubagentRole, SubagentSettings, SubagentStatus};
pub(crate) use self::subagent::{agent_name, agent_number};
pub use self::timestamp::{InvalidTimestamp, Timestamp};
pub use self::user_message::UserMessage;
