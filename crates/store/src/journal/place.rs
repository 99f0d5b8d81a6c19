//! The place where a session's tools work.

use pintle_env::ExecutionEnvironment;

use super::StoredJournal;
use crate::store::Summary;

/// Whether an environment reaches the files that a session has worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reached {
    /// It is proved that it does.
    Same,
    /// The session does not say where it worked.
    Unknown,
    /// It reaches another place, or cannot prove that it is the same. A session whose work is under way is *stranded* then:
    /// it can be read, decided on, and forked.
    Other,
}

/// Compares the place of a session with that of an environment.
pub async fn reached(summary: &Summary, env: &dyn ExecutionEnvironment) -> Reached {
    let Some(known) = summary.properties.get(StoredJournal::PLACE) else { return Reached::Unknown };
    match env.place().await {
        Ok(Some(place)) if place == *known => Reached::Same,
        Ok(_) | Err(_) => Reached::Other,
    }
}

impl StoredJournal {
    /// Notes where the tools of the session work from now on, if the environment can tell.
    pub async fn set_place(&mut self, env: &dyn ExecutionEnvironment) {
        match env.place().await {
            Ok(Some(place)) => self.summary.properties.insert(Self::PLACE.to_owned(), place),
            Ok(None) | Err(_) => self.summary.properties.remove(Self::PLACE),
        };
    }

    /// Returns the summary of the session.
    #[must_use]
    pub fn summary(&self) -> &Summary {
        &self.summary
    }
}
