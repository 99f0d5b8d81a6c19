//! Reads the records of a session and of its subagents, as far as they are as they were written.

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use pintle_agent::{Record, SessionId};
use pintle_governance::audit::{Audit, AuditReport, ChainReport};
use pintle_store::{
    Blobs, Filter, Holder, Line, LineId, Opened, Page, Position, Posting, Reader, SessionStore,
    SessionWriter, StoreError, Summary, Timestamp, Verification, read_record,
};

use crate::failure::{Failure, OrFailure as _, chain};
use crate::sessions::{Sessions, verify};

/// Verifies and reads a session with its subagents.
///
/// # Errors
///
/// A failure if the store cannot be read. Damage is a result.
pub(super) fn report(
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
    let mut report = match record(store, &id, &found).await? {
        Ok(record) => match Audit::of_record(&record) {
            Ok(audit) => AuditReport::new(audit).with_chain(verified(sessions, &id, &found, &record).await?),
            Err(error) => AuditReport::unreadable(id, chain(&error)).with_chain(of_lines(&found)),
        },
        Err(problem) => AuditReport::unreadable(id, problem).with_chain(of_lines(&found)),
    };
    for subagent in report.audit.iter_mut().flat_map(|audit| &mut audit.subagents) {
        let is_kept = store.summary(&subagent.session_id).await.or_failed("cannot read the store")?.is_some();
        if is_kept {
            let read = self::report(sessions, subagent.session_id.clone(), None).await?;
            subagent.report = Some(Box::new(read));
        }
    }
    Ok(report)
}

/// Returns the record up to the first damaged line, or why there is none.
async fn record(
    store: &dyn SessionStore,
    id: &SessionId,
    found: &Verification,
) -> Result<Result<Record, String>, Failure> {
    let before = found.problems.iter().map(|problem| problem.seq).min().unwrap_or(u64::MAX);
    match read_record(&Undamaged { store, before }, id).await {
        Ok(record) => Ok(Ok(record)),
        Err(StoreError::NotFound(_)) => Ok(Err("nothing of its record can be read".to_owned())),
        Err(
            error @ (StoreError::Damaged { .. }
            | StoreError::MissingBlob(_)
            | StoreError::DamagedBlob(_)
            | StoreError::NotAJournal(_)
            | StoreError::Version { .. }),
        ) => Ok(Err(chain(&error))),
        Err(error) => Err(Failure::failed(format!("cannot read session {id}")).caused_by(&error)),
    }
}

async fn verified(
    sessions: &Sessions,
    id: &SessionId,
    found: &Verification,
    record: &Record,
) -> Result<ChainReport, Failure> {
    let checkpoints = verify::checkpoints_of(sessions, id, record).await?;
    let mut report = of_lines(found);
    report.checkpoints = checkpoints.intact as u64;
    for (id, error) in &checkpoints.problems {
        report = report.with_problem(None, format!("checkpoint {id}: {error}"));
    }
    Ok(report)
}

fn of_lines(found: &Verification) -> ChainReport {
    let mut report = ChainReport::new(found.head.seq, verify::head_text(&found.head));
    report.values = found.blobs;
    report.matches_head = found.matches_head;
    report.unfinished_bytes = found.torn.as_ref().map(|torn| torn.bytes);
    for problem in &found.problems {
        report = report.with_problem(Some(problem.seq), problem.message.as_str());
    }
    report
}

/// Store whose journals end before a line, since what follows damage cannot be trusted.
#[derive(Debug)]
struct Undamaged<'a> {
    store: &'a dyn SessionStore,
    before: u64,
}

struct ReaderBefore {
    reader: Box<dyn Reader>,
    before: u64,
}

#[async_trait]
impl Reader for ReaderBefore {
    async fn next(&mut self) -> Result<Option<Line>, StoreError> {
        let line = self.reader.next().await;
        match line {
            Ok(Some(line)) if line.seq >= self.before => Ok(None),
            // The damage is on the report.
            Err(StoreError::Damaged { seq, .. }) if seq >= self.before => Ok(None),
            line => line,
        }
    }

    async fn wait(&mut self) {
        self.reader.wait().await;
    }
}

#[async_trait]
impl SessionStore for Undamaged<'_> {
    async fn read(&self, id: &SessionId, from: u64) -> Result<Box<dyn Reader>, StoreError> {
        let reader = self.store.read(id, from).await?;
        Ok(Box::new(ReaderBefore { reader, before: self.before }))
    }

    async fn read_after(&self, id: &SessionId, last: LineId) -> Result<Box<dyn Reader>, StoreError> {
        let reader = self.store.read_after(id, last).await?;
        Ok(Box::new(ReaderBefore { reader, before: self.before }))
    }

    fn blobs(&self, id: &SessionId) -> Box<dyn Blobs> {
        self.store.blobs(id)
    }

    async fn create(&self, summary: Summary) -> Result<Box<dyn SessionWriter>, StoreError> {
        self.store.create(summary).await
    }

    async fn fork(
        &self,
        origin: &SessionId,
        at: u64,
        summary: Summary,
    ) -> Result<Box<dyn SessionWriter>, StoreError> {
        self.store.fork(origin, at, summary).await
    }

    async fn open(&self, id: &SessionId) -> Result<Opened, StoreError> {
        self.store.open(id).await
    }

    async fn verify(&self, id: &SessionId, head: Option<&Position>) -> Result<Verification, StoreError> {
        self.store.verify(id, head).await
    }

    async fn summary(&self, id: &SessionId) -> Result<Option<Summary>, StoreError> {
        self.store.summary(id).await
    }

    async fn list(&self, filter: &Filter, page: &Page) -> Result<Vec<Summary>, StoreError> {
        self.store.list(filter, page).await
    }

    async fn holder(&self, id: &SessionId) -> Result<Option<Holder>, StoreError> {
        self.store.holder(id).await
    }

    async fn post(&self, id: &SessionId, input_id: &str, input: &str) -> Result<Posting, StoreError> {
        self.store.post(id, input_id, input).await
    }

    async fn has_posted(&self, id: &SessionId) -> Result<bool, StoreError> {
        self.store.has_posted(id).await
    }

    async fn delete(&self, id: &SessionId) -> Result<bool, StoreError> {
        self.store.delete(id).await
    }

    async fn sweep(&self, before: Timestamp) -> Result<u64, StoreError> {
        self.store.sweep(before).await
    }
}
