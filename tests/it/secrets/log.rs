//! A `tracing` subscriber that records everything at every level.

use std::cell::RefCell;
use std::fmt::{self, Write as _};
use std::sync::Once;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

thread_local! {
    /// Lines of the log of this thread; `None` without a log.
    static LINES: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Log with every span, field and event of this thread since its begin.
#[must_use]
pub(crate) struct Log(());

/// Subscriber of the whole process.
///
/// A subscriber per test would miss spans: one that another thread uses for the first time while the subscriber is set can stay
/// disabled.
struct ThreadLogs;

/// Records the spans and events of each thread that has a log. Each test calls this before it causes any.
pub(crate) fn record_logs() {
    static RECORDED: Once = Once::new();
    RECORDED.call_once(|| {
        tracing::subscriber::set_global_default(ThreadLogs).expect("it is the only subscriber")
    });
}

impl Log {
    /// Starts the log of this thread.
    pub(crate) fn begin() -> Self {
        record_logs();
        LINES.set(Some(String::new()));
        Self(())
    }

    pub(crate) fn text(&self) -> String {
        LINES.with_borrow(|lines| lines.clone().unwrap_or_default())
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        LINES.set(None);
    }
}

impl ThreadLogs {
    fn line(metadata: Option<&Metadata<'_>>, fields: impl FnOnce(&mut Line)) {
        // Values are formatted while the log is not borrowed: they can cause events themselves.
        if !LINES.try_with(|lines| lines.borrow().is_some()).unwrap_or(false) {
            return;
        }
        let head = metadata
            .map(|metadata| format!("{} {} {}", metadata.level(), metadata.target(), metadata.name()));
        let mut line = Line(head.unwrap_or_default());
        fields(&mut line);
        LINES.with_borrow_mut(|lines| {
            if let Some(lines) = lines {
                lines.push_str(&format!("{}\n", line.0));
            }
        });
    }
}

impl Subscriber for ThreadLogs {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        Self::line(Some(span.metadata()), |line| span.record(line));
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        Self::line(None, |line| values.record(line));
    }

    fn event(&self, event: &Event<'_>) {
        Self::line(Some(event.metadata()), |line| event.record(line));
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
