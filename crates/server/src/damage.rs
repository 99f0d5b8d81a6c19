//! Errors about sessions with a damaged record.

use pintle_agent::SessionId;
use pintle_store::{IntactRecord, SessionStore, read_intact};

use crate::host::HostError;

/// Returns the damage of a session's record, if an operation failed with `error` because of it, and otherwise `error`.
pub(crate) async fn damage_or(store: &dyn SessionStore, id: &SessionId, error: HostError) -> HostError {
    if !matches!(error, HostError::Failed { .. }) {
        return error;
    }
    let (damage, entries) = match read_intact(store, id).await {
        Ok(IntactRecord { record, damage: Some(damage), .. }) => {
            (damage, record.replay().map_or(0, |replay| replay.history.len()))
        }
        Err(damage) if damage.is_damage() => (damage, 0),
        Ok(_) | Err(_) => return error,
    };
    HostError::Damaged { id: id.clone(), damage: damage.to_string(), entries }
}
