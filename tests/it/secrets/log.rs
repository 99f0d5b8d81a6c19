//! A `tracing` subscriber that records everything at every level.

use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex, PoisonError};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Metadata, Subscriber};

/// Records every span, field and event of this thread.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<String>>);

impl Log {
    /// Starts a log that records until the guard is dropped.
    pub(crate) fn begin() -> (Self, DefaultGuard) {
        let log = Self::default();
        let guard = tracing::subscriber::set_default(log.clone());
        (log, guard)
    }

    pub(crate) fn text(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn line(&self, metadata: Option<&Metadata<'_>>, fields: impl FnOnce(&mut Line)) {
        let head = metadata
            .map(|metadata| format!("{} {} {}", metadata.level(), metadata.target(), metadata.name()));
        let mut line = Line(head.unwrap_or_default());
        fields(&mut line);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_str(&format!("{}\n", line.0));
    }
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.line(Some(span.metadata()), |line| span.record(line));
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        self.line(None, |line| values.record(line));
    }

    fn event(&self, event: &Event<'_>) {
        self.line(Some(event.metadata()), |line| event.record(line));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        write!(self.0, " {}={value:?}", field.name()).unwrap();
    }
}
