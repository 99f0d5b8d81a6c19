//! The lease of a writer: on the clock of the database, and as this process knows it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use pintle_store::{Fence, SessionId, StoreError};
use tokio::time::{sleep, timeout};

use crate::clock;
use crate::database::Database;
use crate::reconnecting_client::parameters;

const RENEW: &str = "UPDATE sessions SET lease_until = clock_timestamp() + $3 * interval '1 millisecond' \
                     WHERE key = $1 AND epoch = $2 AND lease_until > clock_timestamp() RETURNING key";

/// Lease of one writer. A lease that has ended never becomes valid again.
#[derive(Debug)]
pub(crate) struct WriterLease {
    session: SessionId,
    pub(crate) key: i64,
    pub(crate) epoch: i64,
    /// Time on the clock of this process, in milliseconds, until which no other writer can own the session.
    deadline: AtomicU64,
    ended: AtomicBool,
}

impl WriterLease {
    /// Creates a lease of `length` that was requested at `asked` on the clock of this process.
    pub(crate) fn new(session: SessionId, key: i64, epoch: i64, asked: Duration, length: Duration) -> Self {
        let lease = Self { session, key, epoch, deadline: AtomicU64::new(0), ended: AtomicBool::new(false) };
        lease.extend(asked, length);
        lease
    }

    /// Moves the deadline. The lease starts when the statement is executed, which is later than `asked`. A tenth of it is a
    /// margin for clocks of different rates, and for effects that are still running at the deadline.
    fn extend(&self, asked: Duration, length: Duration) {
        let deadline = millis(asked.saturating_add(length) - length / 10);
        self.deadline.fetch_max(deadline, Ordering::AcqRel);
    }

    /// Ends the lease for this process. In the database it lasts until it is released or expires.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Release);
    }

    pub(crate) fn is_alive(&self) -> bool {
        !self.ended.load(Ordering::Acquire) && millis(clock::now()) < self.deadline.load(Ordering::Acquire)
    }

    pub(crate) fn check(&self) -> Result<(), StoreError> {
        if self.is_alive() { Ok(()) } else { Err(self.lost()) }
    }

    /// Returns the error of a writer whose lease has ended.
    pub(crate) fn lost(&self) -> StoreError {
        StoreError::Lost(self.session.clone())
    }

    pub(crate) fn fence(self: &Arc<Self>) -> Fence {
        let lease = Arc::clone(self);
        Fence::new(move || lease.check().map_err(io::Error::from))
    }

    /// Renews the lease until it ends.
    pub(crate) async fn renew_until_ended(self: Arc<Self>, database: Arc<Database>) {
        const ACTION: &str = "renew the lease of a session";
        let length = database.lease;
        let mut pause = length / 3;
        loop {
            sleep(pause).await;
            if !self.is_alive() {
                break;
            }
            let asked = clock::now();
            match timeout(
                length / 4,
                database.side.query(
                    ACTION,
                    RENEW,
                    parameters![self.key, self.epoch, database.lease_millis()],
                ),
            )
            .await
            {
                Ok(Ok(rows)) if rows.is_empty() => break,
                Ok(Ok(_)) => {
                    self.extend(asked, length);
                    pause = length / 3;
                }
                // Retries often before the lease expires.
                Ok(Err(failure)) => {
                    tracing::debug!(session = %self.session, ?failure, "a lease was not renewed");
                    pause = length / 20;
                }
                Err(_) => {
                    database.side.forget();
                    pause = Duration::ZERO;
                }
            }
        }
        // A writer that was closed, or that failed, has already ended it.
        if !self.ended.swap(true, Ordering::AcqRel) {
            tracing::warn!(session = %self.session, "the lease of a session was lost");
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
