//! Notices: messages for the user about operations that continue.

use std::collections::BTreeSet;
use std::fmt;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of notices that are buffered without a sink.
const MAX_BUFFERED: usize = 1_000;

/// Message for the user, such as a warning. It may quote a model or a server, so it may contain control characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    text: String,
}

impl Notice {
    /// Returns the message as it was reported.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl From<String> for Notice {
    fn from(text: String) -> Self {
        Self { text }
    }
}

impl From<&str> for Notice {
    fn from(text: &str) -> Self {
        Self { text: text.to_owned() }
    }
}

/// Collects notices. Clones share them.
///
/// A sink receives each notice when it is reported. Without a sink, notices are buffered in order until they are
/// [taken](Self::take).
#[derive(Clone)]
pub struct Notices(Arc<NoticeDestination>);

enum NoticeDestination {
    Sink(Box<dyn Fn(Notice) + Send + Sync>),
    Buffered(Mutex<BufferedNotices>),
}

#[derive(Default)]
struct BufferedNotices {
    /// The first notices, the oldest first.
    notices: Vec<Notice>,
    /// Number of later notices, which are discarded.
    omitted: usize,
}

impl Notices {
    /// Calls `sink` with each notice, before [`report`](Self::report) returns.
    pub fn with_sink(sink: impl Fn(Notice) + Send + Sync + 'static) -> Self {
        Self(Arc::new(NoticeDestination::Sink(Box::new(sink))))
    }

    /// Returns notices that are reported here once for each text, for operations that are repeated.
    #[must_use]
    pub fn once(&self) -> Self {
        let (target, known) = (self.clone(), Mutex::new(BTreeSet::new()));
        Self::with_sink(move |notice| {
            let is_new =
                known.lock().unwrap_or_else(PoisonError::into_inner).insert(notice.text().to_owned());
            if is_new {
                target.report(notice);
            }
        })
    }

    /// Reports a notice.
    pub fn report(&self, notice: impl Into<Notice>) {
        let notice = notice.into();
        match &*self.0 {
            NoticeDestination::Sink(sink) => sink(notice),
            NoticeDestination::Buffered(buffered) => {
                let mut buffered = buffered.lock().unwrap_or_else(PoisonError::into_inner);
                if buffered.notices.len() < MAX_BUFFERED {
                    buffered.notices.push(notice);
                } else {
                    buffered.omitted += 1;
                }
            }
        }
    }

    /// Reports notices in order.
    pub fn report_all(&self, notices: impl IntoIterator<Item = Notice>) {
        notices.into_iter().for_each(|notice| self.report(notice));
    }

    /// Removes and returns the buffered notices, the oldest first. If there were too many, the last one contains the number
    /// of omitted notices. The result is empty with a sink.
    pub fn take(&self) -> Vec<Notice> {
        let NoticeDestination::Buffered(buffered) = &*self.0 else { return Vec::new() };
        let BufferedNotices { mut notices, omitted } =
            mem::take(&mut *buffered.lock().unwrap_or_else(PoisonError::into_inner));
        if omitted > 0 {
            notices.push(Notice::from(format!("{omitted} more notices were omitted")));
        }
        notices
    }
}

impl Default for Notices {
    /// Buffers notices.
    fn default() -> Self {
        Self(Arc::new(NoticeDestination::Buffered(Mutex::default())))
    }
}

impl fmt::Debug for Notices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notices").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn texts(notices: Vec<Notice>) -> Vec<String> {
        notices.into_iter().map(|notice| notice.text().to_owned()).collect()
    }

    #[test]
    fn notices_of_all_clones_are_kept_in_order_and_taken_once() {
        let notices = Notices::default();
        let clone = notices.clone();
        notices.report("first");
        clone.report("second".to_owned());
        notices.report_all(["third", "fourth"].map(Notice::from));
        assert_eq!(texts(clone.take()), ["first", "second", "third", "fourth"]);
        assert!(notices.take().is_empty());
        notices.report("later");
        assert_eq!(texts(clone.take()), ["later"]);
    }

    #[test]
    fn a_sink_receives_each_notice_when_it_is_reported() {
        let received = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&received);
        let notices = Notices::with_sink(move |notice| sink.lock().unwrap().push(notice));
        let received = || texts(received.lock().unwrap().clone());
        notices.report("at the start");
        assert_eq!(received(), ["at the start"]);
        let clone = notices.clone();
        thread::spawn(move || clone.report("while it runs")).join().unwrap();
        assert_eq!(received(), ["at the start", "while it runs"]);
        notices.report_all(["one", "two"].map(Notice::from));
        assert_eq!(received(), ["at the start", "while it runs", "one", "two"]);
        assert!(notices.take().is_empty(), "the sink has received all of them");
    }

    #[test]
    fn a_text_is_reported_once() {
        let notices = Notices::default();
        let once = notices.once();
        once.report_all(["one", "two", "one"].map(Notice::from));
        once.clone().report("two");
        notices.report("one");
        assert_eq!(texts(notices.take()), ["one", "two", "one"]);
    }

    #[test]
    fn the_first_notices_are_kept_and_the_others_are_counted() {
        let notices = Notices::default();
        notices.report_all((0..MAX_BUFFERED + 2).map(|number| Notice::from(number.to_string())));
        let kept = texts(notices.take());
        assert_eq!(kept.len(), MAX_BUFFERED + 1);
        assert_eq!(kept[0], "0");
        assert_eq!(kept[MAX_BUFFERED - 1], (MAX_BUFFERED - 1).to_string());
        assert_eq!(kept[MAX_BUFFERED], "2 more notices were omitted");
        notices.report("later");
        assert_eq!(texts(notices.take()), ["later"]);
    }
}
