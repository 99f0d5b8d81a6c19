//! Names in the journal of a session and in its inbox. The golden journals have few of the inputs.

use pintle_llm::{ErrorKind, Retry};
use pintle_test_conditions::SerialisedValues;
use pintle_tools::gate::Permission;
use pintle_tools::{ChangeKind, Effect, Reconciliation, SandboxSide, ToolErrorKind};

use crate::protocol::{
    BudgetKind, BudgetScope, CallKind, Change, CheckpointReason, Decision, InputKind, OutcomeStatus,
    PostedInput, Preparation, SegmentKind, SubagentRole, SubagentStatus, Timer, TurnKind,
};
use crate::record::{RecordEntry, RecordHeader};

#[test]
fn serialised_names_are_those_of_the_fixture() {
    let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/serialised/journal.json"));
    let mut values = SerialisedValues::parse(text);
    values.check_variants::<InputKind>("inputs", Some("input"));
    values.check_variants::<Change>("changes of the configuration", None);
    values.check_variants::<SegmentKind>("kinds of segments", None);
    values.check_variants::<Timer>("timers", None);
    values.check_variants::<Preparation>("preparations", None);
    values.check_variants::<Reconciliation>("reconciliations", None);
    values.check::<RecordHeader>("headers");
    values.check::<RecordEntry>("entries");
    values.check_variants::<PostedInput>("posted inputs", Some("kind"));
    values.check_variants::<Decision>("decisions", None);
    values.check_variants::<TurnKind>("kinds of turns", None);
    values.check_variants::<CallKind>("kinds of calls", None);
    values.check_variants::<CheckpointReason>("reasons of checkpoints", None);
    values.check_variants::<BudgetKind>("kinds of budgets", None);
    values.check_variants::<BudgetScope>("scopes of budgets", None);
    values.check_variants::<SubagentStatus>("states of subagents", None);
    values.check_variants::<SubagentRole>("roles of subagents", None);
    values.check_variants::<OutcomeStatus>("statuses of outcomes", None);
    values.check_variants::<Permission>("permissions", None);
    values.check_variants::<Effect>("effects", None);
    values.check_variants::<ChangeKind>("changes of files", None);
    values.check_variants::<SandboxSide>("sides of the sandbox", None);
    values.check_variants::<ToolErrorKind>("errors of tools", None);
    values.check_variants::<ErrorKind>("errors of models", None);
    values.check::<Retry>("retries");
    values.finish();
}
