//! `pintle sessions verify`.

use pintle_agent::SessionId;
use pintle_host::failure::{Failure, OrFailure as _};
use pintle_host::sanitize::json_line;
use pintle_host::sessions::Sessions;
use pintle_host::sessions::verify::{head_text, verify_checkpoints};
use pintle_store::checkpoint::VerifiedCheckpoints;
use pintle_store::{Hash, Position, Verification, read_record};
use pintle_tui::{console, render};
use serde_json::json;

use crate::arguments::{ListFormat, VerifyArgs};
use crate::exit::Exit;

pub(super) async fn verify(sessions: &Sessions, args: &VerifyArgs) -> Result<Exit, Failure> {
    let head = args.head.as_deref().map(parse_head).transpose()?;
    let id = sessions.find(&args.session.id).await?.id;
    let found =
        sessions.store().verify(&id, head.as_ref()).await.or_failed("the session cannot be verified")?;
    let checkpoints = checkpoints(sessions, &id).await?;
    let is_intact = found.is_intact() && checkpoints.problems.is_empty();
    let text = match args.session.output {
        ListFormat::Json => {
            let problems = found.problems.iter();
            let problems: Vec<_> =
                problems.map(|problem| json!({"line": problem.seq, "message": problem.message})).collect();
            let broken = checkpoints.problems.iter();
            let broken: Vec<_> = broken
                .map(|(id, error)| json!({"id": id.to_string(), "message": error.to_string()}))
                .collect();
            let object = json!({
                "id": id.as_str(),
                "intact": is_intact,
                "head": head_text(&found.head),
                "lines": found.head.seq,
                "values": found.blobs,
                "matches_head": found.matches_head,
                "unfinished_bytes": found.torn.as_ref().map(|torn| torn.bytes),
                "problems": problems,
                "checkpoints": checkpoints.intact,
                "contents": checkpoints.contents,
                "broken_checkpoints": broken,
            });
            json_line(&object)?
        }
        ListFormat::Text => describe(&found, &checkpoints),
    };
    console::print(&text).await?;
    Ok(if is_intact { Exit::Done } else { Exit::Failed })
}

/// Verifies all checkpoints of a session. Damage of the record, which lists them, is reported separately.
async fn checkpoints(sessions: &Sessions, id: &SessionId) -> Result<VerifiedCheckpoints, Failure> {
    let Ok(record) = read_record(sessions.store(), id).await else {
        return Ok(VerifiedCheckpoints::default());
    };
    verify_checkpoints(sessions, id, &record).await
}

fn describe(found: &Verification, checkpoints: &VerifiedCheckpoints) -> String {
    let mut text = String::new();
    for (id, error) in &checkpoints.problems {
        text.push_str(&format!("checkpoint {id}: {error}\n"));
    }
    for problem in &found.problems {
        text.push_str(&format!("line {}: {}\n", problem.seq, problem.message));
    }
    if let Some(torn) = &found.torn {
        let bytes = render::plural(torn.bytes, "byte");
        text.push_str(&format!("line {} is unfinished: {bytes}\n", found.head.seq + 1));
    }
    match found.matches_head {
        Some(true) => text.push_str("the given head is one of the lines\n"),
        Some(false) => {
            text.push_str("the given head is NOT one of the lines: the journal was cut off or rewritten\n")
        }
        None => text.push_str(
            "without a head that was kept elsewhere, lines that were cut off at the end are not noticed\n",
        ),
    }
    let is_intact = found.is_intact() && checkpoints.problems.is_empty();
    let verdict = if is_intact { "intact" } else { "DAMAGED" };
    text.push_str(&format!(
        "{verdict}: {}, {}, {} with {}, head {}\n",
        render::plural(found.head.seq, "line"),
        render::plural(found.blobs, "large value"),
        render::plural(checkpoints.intact, "checkpoint"),
        render::plural(checkpoints.contents, "content"),
        head_text(&found.head)
    ));
    text
}

/// Parses `EPOCH:LINE:HASH`.
pub(crate) fn parse_head(text: &str) -> Result<Position, Failure> {
    let mut parts = text.splitn(3, ':');
    let mut number = || parts.next().and_then(|part| part.parse::<u64>().ok());
    let (epoch, seq) = (number(), number());
    let hash = parts.next().and_then(|part| part.parse::<Hash>().ok());
    match (epoch, seq, hash) {
        (Some(epoch), Some(seq), Some(hash)) => Ok(Position::new(epoch, seq, hash)),
        _ => Err(Failure::usage(format!("--head {text}: expected EPOCH:LINE:HASH, as `verify` prints it"))),
    }
}
