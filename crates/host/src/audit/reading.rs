//! Reads the records of a session and of its subagents, up to the first damage.

use futures_util::future::BoxFuture;
use pintle_agent::{Record, SessionId};
use pintle_governance::audit::{Audit, AuditReport, ChainReport};
use pintle_llm::error_chain;
use pintle_store::{Position, SessionStore, StoreError, Verification, read_intact};

use crate::failure::{Failure, OrFailure as _};
use crate::sessions::Sessions;
use crate::sessions::verify::{head_text, verify_checkpoints};

/// Verifies and reads a session with its subagents. `head` is a head of an earlier time that must be one of the lines.
///
/// Dropping the future stops the work, which changes nothing.
///
/// # Errors
///
/// A store that cannot be read. Damage is a part of the report.
pub fn read_audit(
    sessions: &Sessions,
    id: SessionId,
    head: Option<Position>,
) -> BoxFuture<'_, Result<AuditReport, Failure>> {
    Box::pin(report_of(sessions, id, head))
}

async fn report_of(
    sessions: &Sessions,
    id: SessionId,
    head: Option<Position>,
) -> Result<AuditReport, Failure> {
    let store = sessions.store();
    let found = store.verify(&id, head.as_ref()).await.or_failed("the session cannot be verified")?;
    let mut report = match record(store, &id).await? {
        Ok(record) => match Audit::of_record(&record) {
            Ok(audit) => AuditReport::new(audit).with_chain(verified(sessions, &id, &found, &record).await?),
            Err(error) => AuditReport::unreadable(id, error_chain(&error)).with_chain(chain_report(&found)),
        },
        Err(problem) => AuditReport::unreadable(id, problem).with_chain(chain_report(&found)),
    };
    for subagent in report.audit.iter_mut().flat_map(|audit| &mut audit.subagents) {
        let is_stored =
            store.summary(&subagent.session_id).await.or_failed("cannot read the store")?.is_some();
        if is_stored {
            let read = read_audit(sessions, subagent.session_id.clone(), None).await?;
            subagent.report = Some(Box::new(read));
        }
    }
    Ok(report)
}

/// Returns the record up to the first damaged line, or why no record can be read.
async fn record(store: &dyn SessionStore, id: &SessionId) -> Result<Result<Record, String>, Failure> {
    match read_intact(store, id).await {
        Ok(intact) => Ok(Ok(intact.record)),
        Err(StoreError::NotFound(_)) => Ok(Err("nothing of its record can be read".to_owned())),
        Err(error) if error.is_damage() => {
            Ok(Err(format!("nothing of its record can be read: {}", error_chain(&error))))
        }
        Err(error @ StoreError::Version { .. }) => Ok(Err(error_chain(&error))),
        Err(error) => Err(Failure::failed(format!("cannot read session {id}")).caused_by(&error)),
    }
}

async fn verified(
    sessions: &Sessions,
    id: &SessionId,
    found: &Verification,
    record: &Record,
) -> Result<ChainReport, Failure> {
    let checkpoints = verify_checkpoints(sessions, id, record).await?;
    let mut report = chain_report(found);
    report.checkpoints = checkpoints.intact as u64;
    for (id, error) in &checkpoints.problems {
        report = report.with_problem(None, format!("checkpoint {id}: {error}"));
    }
    Ok(report)
}

fn chain_report(found: &Verification) -> ChainReport {
    let mut report = ChainReport::new(found.head.seq, head_text(&found.head));
    report.values = found.blobs;
    report.matches_head = found.matches_head;
    report.unfinished_bytes = found.torn.as_ref().map(|torn| torn.bytes);
    for problem in &found.problems {
        report = report.with_problem(Some(problem.seq), problem.message.as_str());
    }
    report
}
