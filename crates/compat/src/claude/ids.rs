//! Ids of lines and messages.

use pintle_agent::SessionId;
use pintle_llm::Fingerprint;

/// Ids that are unique within a session, and the same whenever the same lines are written.
#[derive(Clone, Debug)]
pub(super) struct LineIds {
    session: SessionId,
    epoch: u64,
    next: u64,
}

impl LineIds {
    /// `epoch` differs between the processes that write lines of one session.
    pub(super) fn new(session: SessionId, epoch: u64) -> Self {
        Self { session, epoch, next: 0 }
    }

    /// Returns the next UUID. It has version 8 and comes from a hash.
    pub(super) fn uuid(&mut self) -> String {
        let hash = self.hash("line");
        let part = |from: usize, to: usize| hash.get(from..to).unwrap_or_default();
        format!("{}-{}-8{}-a{}-{}", part(0, 8), part(8, 12), part(13, 16), part(17, 20), part(20, 32))
    }

    /// Returns the next id of a message.
    pub(super) fn message(&mut self) -> String {
        format!("msg_{}", self.hash("message"))
    }

    fn hash(&mut self, kind: &str) -> String {
        let text = format!("{}/{}/{kind}/{}", self.session, self.epoch, self.next);
        self.next = self.next.saturating_add(1);
        Fingerprint::from_bytes(text.as_bytes()).to_string()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn uuids_are_well_formed_and_differ() {
        let mut ids = LineIds::new(SessionId::new("s"), 0);
        let mut later = LineIds::new(SessionId::new("s"), 7);
        let all: HashSet<String> = (0..1_000).flat_map(|_| [ids.uuid(), later.uuid()]).collect();
        assert_eq!(all.len(), 2_000);
        for id in &all {
            let lengths: Vec<usize> = id.split('-').map(str::len).collect();
            assert_eq!(lengths, [8, 4, 4, 4, 12], "{id}");
            assert!(id.chars().nth(14) == Some('8') && id.chars().nth(19) == Some('a'), "{id}");
        }
    }
}
