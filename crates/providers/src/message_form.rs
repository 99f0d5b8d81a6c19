//! Forms of error messages.

/// Form of an error message, as one row of a table.
#[derive(Debug)]
pub(crate) struct MessageForm {
    /// Servers that send it.
    pub(crate) servers: &'static str,
    /// Texts that the message contains, in this order and in lower case.
    pub(crate) parts: &'static [&'static str],
    /// GitHub issue or recorded response that shows it.
    pub(crate) source: &'static str,
}

impl MessageForm {
    pub(crate) const fn new(
        servers: &'static str,
        parts: &'static [&'static str],
        source: &'static str,
    ) -> Self {
        Self { servers, parts, source }
    }

    /// Returns whether a message in lower case has this form.
    pub(crate) fn matches(&self, lower: &str) -> bool {
        let rest = self.parts.iter().try_fold(lower, |rest, part| Some(rest.split_once(*part)?.1));
        rest.is_some()
    }
}
