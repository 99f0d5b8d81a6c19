//! Judges what a test runner has printed, and begins a task.

use pintle_workflow::contract::{AnchorPlan, Contract, TaskCheck};
use pintle_workflow::results::{ResultsFormat, TestStatus};
use pintle_workflow::task::{StepOrder, Task};

fn main() {
    let results = ResultsFormat::Tap.parse("1..2\nok 1 - adds\nnot ok 2 - subtracts\n");
    assert_eq!(results.count(TestStatus::Failed), 1);
    let because = "it is about documents".to_owned();
    let contract = Contract::new("Say how to begin.")
        .with_anchor(AnchorPlan::None { because })
        .with_check(TaskCheck::new("links", "make links"));
    let task = Task::new(contract).expect("the contract can be kept");
    assert_eq!(task.pending().steps[0].order, StepOrder::Baseline);
}
