//! `pintle task plan`: the steps of a task, of which users may edit the remaining ones.

use std::io::Write as _;

use pintle_host::failure::{Failure, OrFailure as _};
use pintle_host::process_env::ProcessEnv;
use pintle_host::sanitize::{json_line, sanitize};
use pintle_host::sessions::Sessions;
use pintle_tui::{console, user_editor};
use pintle_workflow::IntactTask;
use pintle_workflow::contract::MAX_ROUNDS;
use pintle_workflow::task::{Task, TaskPlan, TaskSignal};
use serde_json::json;

use super::{find, read, read_intact, signals};
use crate::arguments::{ListFormat, PlanTaskArgs};
use crate::exit::Exit;

/// Comment in the file that the user edits.
const COMMENT: &str = "\n# The remaining steps, one in each line, in order. The planner decides about the next step with them.\n";

pub(super) async fn plan(args: &PlanTaskArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    let sessions = Sessions::open(process_env).await?;
    let id = find(&sessions, &args.task.id).await?;
    if args.edit {
        let task = read(&sessions, &id).await?;
        let plan = require_plan(&task)?;
        if !task.is_planning() {
            return Err(Failure::usage(format!("the plan of task {id} has ended")));
        }
        let Some(backlog) = edit_backlog(plan.backlog(), process_env)? else {
            console::notice("the remaining steps are unchanged");
            return Ok(Exit::Done);
        };
        return signals::post(&sessions, &id, &TaskSignal::Plan { backlog }, process_env).await;
    }
    let IntactTask { task, damage, .. } = read_intact(&sessions, &id).await?;
    let plan = require_plan(&task)?;
    let text = match args.output {
        ListFormat::Text => render_plan(plan),
        ListFormat::Json => {
            let steps = plan.rounds().iter().map(|round| {
                json!({
                    "goal": round.step().goal, "paths": round.step().paths, "checks": round.step().checks,
                    "size": round.step().size, "leaves_failing": round.step().leaves_failing,
                    "state": round.state(), "candidates": round.candidates().len(), "spent": round.spent(),
                })
            });
            json_line(&json!({
                "id": id.as_str(), "rounds": task.contract().plan_rounds(), "open": task.is_planning(),
                "steps": steps.collect::<Vec<_>>(), "remaining": plan.backlog(), "spent": plan.spent(),
            }))?
        }
    };
    console::print(&text).await?;
    Ok(if damage.is_some() { Exit::Failed } else { Exit::Done })
}

fn require_plan(task: &Task) -> Result<&TaskPlan, Failure> {
    task.plan().filter(|plan| !plan.is_skipped()).ok_or_else(|| {
        Failure::usage("the task has no plan").with_hint(
            "`[plan] rounds` of a contract is the number of its steps, and a large draft has a plan",
        )
    })
}

fn render_plan(plan: &TaskPlan) -> String {
    let mut text = String::new();
    for (number, round) in (1..).zip(plan.rounds()) {
        let state = round.state();
        let (goal, state) = (sanitize(round.step().goal.trim()), sanitize(&state));
        text.push_str(&format!("{number:>3}  {goal}\n     {state}, {}\n", round.spent().dollars()));
    }
    for goal in plan.backlog() {
        text.push_str(&format!("  -  {}\n", sanitize(goal.trim())));
    }
    if text.is_empty() {
        text.push_str("no steps yet\n");
    }
    text
}

/// Lets the user edit the remaining steps. Returns `None` if they are unchanged.
fn edit_backlog(backlog: &[String], process_env: &ProcessEnv) -> Result<Option<Vec<String>>, Failure> {
    let editor = user_editor::require(process_env)?;
    let file = tempfile::Builder::new().prefix("plan-").suffix(".txt").tempfile();
    let mut file = file.or_failed("the plan cannot be written")?;
    let lines = backlog.iter().map(|goal| single_line(goal) + "\n").collect::<String>();
    file.write_all((lines + COMMENT).as_bytes()).or_failed("the plan cannot be written")?;
    user_editor::open(&editor, file.path(), process_env)?;
    let text = pintle_host::process_env::read_text("plan", file.path())?;
    let edited = parse_backlog(&text);
    if edited.len() > MAX_ROUNDS as usize {
        return Err(Failure::usage(format!(
            "the plan has {} steps; expected at most {MAX_ROUNDS}",
            edited.len()
        )));
    }
    let before: Vec<String> = backlog.iter().map(|goal| single_line(goal)).collect();
    Ok((edited != before).then_some(edited))
}

fn parse_backlog(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_owned).collect()
}

fn single_line(goal: &str) -> String {
    goal.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edited_backlog_is_read_line_by_line() {
        let cases = [
            ("", vec![]),
            (COMMENT, vec![]),
            ("a b\n\n  # no\n c \n", vec!["a b", "c"]),
            ("a\r\nb", vec!["a", "b"]),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_backlog(text), expected, "{text:?}");
        }
        assert_eq!(single_line(" a\n  b "), "a b");
    }
}
