//! `pintle sessions show`: the conversation as text.

use pintle_agent::{Record, Turn};
use pintle_host::failure::{Failure, OrFailure as _};
use pintle_host::process_env::ProcessEnv;
use pintle_host::sanitize::json_line;
use pintle_host::sessions::{Sessions, export, require_directory};
use pintle_tui::console;
use serde_json::json;

use super::list::{self, SessionListRow};
use crate::arguments::{ListFormat, SessionArg};
use crate::exit::Exit;

pub(super) async fn show(
    sessions: &Sessions,
    args: &SessionArg,
    process_env: &ProcessEnv,
) -> Result<Exit, Failure> {
    let summary = sessions.find(&args.id).await?;
    let intact = sessions.intact_record(&summary.id).await?;
    if let Err(failure) = require_directory(&summary, process_env) {
        console::notice(&failure.message());
    }
    let is_damaged = intact.damage.is_some();
    let text = match args.output {
        ListFormat::Json => {
            let damage = intact.damage.map(|damage| damage.to_string());
            json(&list::row(sessions, &summary).await, &intact.record, damage)?
        }
        ListFormat::Text => {
            let replay = intact.record.replay().or_failed("the session cannot be shown")?;
            export::markdown(&summary, &replay.history, intact.damage.as_ref())
        }
    };
    console::print(&text).await?;
    Ok(if is_damaged { Exit::Failed } else { Exit::Done })
}

/// Returns a session as JSON: its fields in a list, its history, its checkpoints, and the `damage`
/// at which the history ends.
pub(super) fn json(
    row: &SessionListRow<'_>,
    record: &Record,
    damage: Option<String>,
) -> Result<String, Failure> {
    let replay = record.replay().or_failed("the session cannot be shown")?;
    let turns: Vec<_> = (1..).zip(&replay.history).map(|(number, turn)| entry(number, turn)).collect();
    let checkpoints: Vec<_> = replay
        .checkpoints()
        .into_iter()
        .map(|(turns, checkpoint)| json!({"entries": turns, "id": checkpoint.id, "partial": checkpoint.partial}))
        .collect();
    let mut shown = json!({"session": row, "history": turns, "checkpoints": checkpoints});
    if let (Some(damage), Some(shown)) = (damage, shown.as_object_mut()) {
        shown.insert("damage".to_owned(), damage.into());
    }
    json_line(&shown)
}

fn entry(number: usize, turn: &Turn) -> serde_json::Value {
    json!({"entry": number, "kind": export::kind_name(turn.kind), "message": turn.item.message()})
}
