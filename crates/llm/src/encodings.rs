//! What adapters made of something immutable, kept with it.

use std::any::Any;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// One value per dialect, for the target that was asked for last; the very first stays as well.
///
/// Nearly everything is only ever encoded for one dialect and target. That one is read without a lock, and takes no
/// memory of its own.
#[derive(Default)]
pub(crate) struct Encodings {
    first: OnceLock<Slot>,
    // One slot per dialect; a slot that was made for another target is replaced.
    others: Mutex<Vec<Slot>>,
}

struct Slot {
    dialect: &'static str,
    target: Box<str>,
    value: Arc<dyn Any + Send + Sync>,
}

impl Encodings {
    /// The value for this dialect and target; `encode` runs if it is not there.
    pub(crate) fn get_or_make<T: Any + Send + Sync>(
        &self,
        dialect: &'static str,
        target: &str,
        encode: impl FnOnce() -> T,
    ) -> Arc<T> {
        if let Some(found) = self.kept(dialect, target) {
            return found;
        }
        let value = Arc::new(encode());
        let slot =
            Slot { dialect, target: target.into(), value: Arc::clone(&value) as Arc<dyn Any + Send + Sync> };
        if let Err(slot) = self.first.set(slot) {
            let mut slots = self.others.lock().unwrap_or_else(PoisonError::into_inner);
            slots.retain(|kept| kept.dialect != dialect);
            slots.push(slot);
        }
        value
    }

    fn kept<T: Any + Send + Sync>(&self, dialect: &str, target: &str) -> Option<Arc<T>> {
        let first = self.first.get()?;
        if first.is_for(dialect, target) {
            return first.value();
        }
        let slots = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        slots.iter().find(|slot| slot.is_for(dialect, target))?.value()
    }
}

impl Slot {
    fn is_for(&self, dialect: &str, target: &str) -> bool {
        self.dialect == dialect && *self.target == *target
    }

    fn value<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        Arc::clone(&self.value).downcast().ok()
    }
}
