//! Names in the journal of a task, in its inbox and in messages between its processes.

use pintle_evidence::proof::{Finding, ProofStep};
use pintle_evidence::results::{ResultsFormat, TestStatus};
use pintle_test_conditions::SerialisedValues;

use crate::contract::{AnchorPlan, Contract, DecisionGate, EvidencePlan, PassCondition};
use crate::local::PostedSignal;
use crate::local::journal_line::{ContractLine, InputLine};
use crate::task::{StepId, StepKind, StepOutput, TaskInput, TaskSignal, WorkEnd};
use crate::{ChangeKind, CommandEnd, ControlKind, StepProgress, TaskEnd, TaskStatus, TestStability};

#[test]
fn serialised_names_are_those_of_the_fixture() {
    let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/serialised/task.json"));
    let mut values = SerialisedValues::parse(text);
    values.check_variants::<StepKind>("step kinds", None);
    values.check::<StepId>("steps");
    values.check_variants::<TaskInput>("inputs", None);
    values.check_variants::<StepOutput>("findings of steps", None);
    values.check_variants::<WorkEnd>("ends of work", None);
    values.check_variants::<TaskSignal>("signals", None);
    values.check::<PostedSignal>("posted signals");
    values.check_variants::<DecisionGate>("gates", None);
    values.check::<ContractLine>("contract lines");
    values.check::<InputLine>("input lines");
    values.check::<Contract>("contracts");
    values.check_variants::<AnchorPlan>("anchor plans", Some("kind"));
    values.check_variants::<PassCondition>("conditions of checks", None);
    values.check_variants::<ResultsFormat>("formats of results", None);
    values.check_variants::<CommandEnd>("ends of commands", None);
    values.check_variants::<TestStatus>("statuses of tests", None);
    values.check_variants::<TestStability>("stabilities", None);
    values.check::<ChangeKind>("changes");
    values.check_variants::<ProofStep>("steps of a proof", None);
    values.check::<Finding>("findings");
    values.check_variants::<TaskStatus>("states of tasks", None);
    values.check_variants::<TaskEnd>("ends of tasks", None);
    values.check_variants::<StepProgress>("progress of steps", None);
    values.check_variants::<ControlKind>("kinds of controls", None);
    values.check::<EvidencePlan>("additional evidence");
    values.finish();
}
