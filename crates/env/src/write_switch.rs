//! A switch for changes of an environment.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// Whether an environment may be changed now. Clones share the state.
///
/// [`ReadOnlyEnvironment::with_write_switch`](crate::ReadOnlyEnvironment::with_write_switch) and `SandboxedEnvironment::with_writable_while`
/// read it before each operation and at the start of each command. A running command keeps the permissions it had at its start.
#[derive(Clone, Debug)]
pub struct WriteSwitch(Arc<AtomicBool>);

impl WriteSwitch {
    /// Creates a switch.
    #[must_use]
    pub fn new(is_on: bool) -> Self {
        Self(Arc::new(AtomicBool::new(is_on)))
    }

    /// Returns whether changes are allowed.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// Allows changes, or refuses them from now on.
    pub fn set(&self, is_on: bool) {
        self.0.store(is_on, Ordering::Release);
    }
}
