//! Messages to the sessions of a plan: missing evidence, and input of users.

use super::*;
use crate::prompts::{self, PlanRequest};

#[test]
fn missing_evidence_of_the_whole_change_returns_to_the_planner() {
    let mut told = Vec::new();
    let mut played = PlayedTask::new(planned(5));
    played.play(|step| {
        if let StepOrder::Plan { feedback, .. } = &step.order {
            told.push(feedback.clone().unwrap_or_default());
        }
        let output = match (step.id.kind, step.id.round, step.id.attempt) {
            (StepKind::Plan, 1, _) => plan(&["one"]),
            (StepKind::Plan, 2, 1) => plan(&[]),
            // The same change would only be judged again.
            (StepKind::Plan, 2, 2) => plan(&[]),
            (StepKind::Plan, 2, _) => plan(&["two"]),
            (StepKind::Work, round, _) => work(&round.to_string(), Confidence::High, None),
            (StepKind::Evidence, 1.., _) => held(),
            (StepKind::Evidence, 0, 1) => evidence(3, 1),
            _ => right(step).0,
        };
        // The whole change has the patch that was worked on.
        let output = match output {
            StepOutput::Evidence(mut facts) => {
                facts.diff.patch.hash = if step.id.attempt == 1 { "1".to_owned() } else { "2".to_owned() };
                StepOutput::Evidence(facts)
            }
            output => output,
        };
        (output, 0.0)
    });
    assert_eq!(played.end(), "done by 0");
    let missing = "About the whole change:\n- check tests: it exited with 1\n";
    assert_eq!(told[..3], ["", "", missing]);
    assert!(told[3].starts_with("Your last answer cannot be used:\n- next: expected a step"), "{}", told[3]);
    assert!(told[3].ends_with(missing), "{}", told[3]);
}

#[test]
fn users_edit_the_backlog_and_steer() {
    let mut played = PlayedTask::new(planned(5));
    let edit = |task: &mut Task, goals: &[&str]| {
        let backlog = goals.iter().map(|goal| (*goal).to_owned()).collect();
        task.apply(TaskInput::Signal(TaskSignal::Plan { backlog }))
    };
    let feedback = |task: &Task| match &task.pending().steps[0].order {
        StepOrder::Plan { feedback, .. } | StepOrder::Work { feedback, .. } => {
            feedback.clone().unwrap_or_default()
        }
        order => panic!("{order:?}"),
    };
    let finish = |played: &mut PlayedTask, output: StepOutput| {
        played.finish(played.task.pending().steps[0].id.clone(), output, 0.0);
    };
    finish(&mut played, baseline());
    finish(&mut played, anchor(1));
    assert!(edit(&mut played.task, &["first the parser"]));
    let told = "A user has edited the remaining steps, which now are:\n- first the parser\n";
    assert_eq!(feedback(&played.task), told);
    let planner = played.task.pending().steps[0].id.clone();
    assert!(played.task.apply(TaskInput::StepStarted(planner.clone())));
    // An edit while the planner works changes neither its message nor is it lost.
    assert!(edit(&mut played.task, &["then the printer"]));
    assert_eq!(feedback(&played.task), told);
    finish(&mut played, plan(&["the parser", "anything"]));
    assert_eq!(task_plan(&played).backlog(), ["then the printer"]);
    let steer = TaskSignal::Steer { candidate: None, text: "use integers".to_owned() };
    assert!(played.task.apply(TaskInput::Signal(steer)));
    assert_eq!(feedback(&played.task), "- use integers\n");
    assert!(!edit(&mut played.task, &["x".repeat(MAX_STEP_GOAL + 1).as_str()]), "a goal has a limit");
    finish(&mut played, work("a", Confidence::High, None));
    finish(&mut played, held());
    let words = feedback(&played.task);
    let message = prompts::plan(&PlanRequest {
        contract: played.task.contract(),
        plan: task_plan(&played),
        step: &played.task.pending().steps[0].id.clone(),
        feedback: Some(&words),
        context: "",
    });
    assert_eq!(
        message.matches("- then the printer\n").count(),
        1,
        "the edited steps are listed once: {message}"
    );
    finish(&mut played, plan(&[]));
    assert_eq!(played.task.pending().steps[0].id.to_string(), "evidence-0-1", "the edit was sent");
    assert!(!edit(&mut played.task, &["too late"]));
    assert!(!edit(&mut PlayedTask::new(contract()).task, &["there is no plan"]));
}

/// The steps are the change of the first candidate, so its sessions receive the messages to the others.
#[test]
fn messages_to_any_candidate_reach_the_sessions_of_a_plan() {
    let feedback = |task: &Task| match &task.pending().steps[0].order {
        StepOrder::Plan { feedback, .. } | StepOrder::Work { feedback, .. } => {
            feedback.clone().unwrap_or_default()
        }
        order => panic!("{order:?}"),
    };
    let steer = |played: &mut PlayedTask, candidate: Option<usize>, text: &str| {
        let signal = TaskSignal::Steer { candidate, text: text.to_owned() };
        assert!(played.task.apply(TaskInput::Signal(signal)));
    };
    let finish = |played: &mut PlayedTask, output: StepOutput| {
        played.finish(played.task.pending().steps[0].id.clone(), output, 0.0);
    };
    let mut played = PlayedTask::new(planned(5).with_candidates(vec![CandidatePlan::default(); 3]));
    finish(&mut played, baseline());
    finish(&mut played, anchor(1));
    steer(&mut played, None, "to all");
    steer(&mut played, Some(2), "to the last");
    assert_eq!(feedback(&played.task), "Messages of users:\n- to all\n", "it may still be one goal");
    finish(&mut played, plan(&["one", "two"]));
    steer(&mut played, Some(1), "to the second");
    assert_eq!(feedback(&played.task), "- to all\n- to the last\n- to the second\n");
    finish(&mut played, work("a", Confidence::High, None));
    finish(&mut played, held());
    assert_eq!(feedback(&played.task), "");
    steer(&mut played, Some(2), "late");
    assert_eq!(feedback(&played.task), "Messages of users:\n- late\n");
}

#[test]
fn findings_about_a_change_end_with_the_next_snapshot() {
    let mut messages = Vec::new();
    let mut played = PlayedTask::new(planned(5));
    played.play(|step| {
        if let StepOrder::Plan { feedback, .. } = &step.order {
            messages.push(feedback.clone().unwrap_or_default());
        }
        let output = match (step.id.kind, step.id.round, step.id.attempt) {
            (StepKind::Plan, round @ (1 | 3), _) => plan(&[&format!("step {round}")]),
            (StepKind::Plan, 2, 1) => plan(&[]),
            (StepKind::Plan, 2, _) => plan(&["step 2", "step 3"]),
            (StepKind::Work, round, _) => work(&round.to_string(), Confidence::High, None),
            (StepKind::Evidence, 1.., _) => held(),
            (StepKind::Evidence, 0, 1) => {
                let StepOutput::Evidence(mut facts) = evidence(3, 1) else { unreachable!() };
                facts.diff.patch.hash = "1".to_owned();
                StepOutput::Evidence(facts)
            }
            _ => right(step).0,
        };
        (output, 0.0)
    });
    assert!(messages[2].starts_with("About the whole change:\n"), "{messages:?}");
    assert_eq!(messages[3..], ["", ""], "the next snapshot was not judged");
    assert_eq!(played.end(), "done by 0");
}
