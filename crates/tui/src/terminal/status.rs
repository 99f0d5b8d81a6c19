//! The status line: model, effort, mode, environment, context, cost and queue.

use pintle_agent::Money;

use crate::render::{Face, StyledLine};

/// Separator between two parts.
const SEPARATOR: &str = " · ";

/// State that is always visible.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct StatusLine {
    pub(crate) model: String,
    pub(crate) effort: Option<String>,
    pub(crate) mode: String,
    /// Environment and sandbox of the tools.
    pub(crate) environment: String,
    /// Tokens of the newest request, 0 before the first, and size of the context window.
    pub(crate) context: Option<(u64, u64)>,
    /// Cost, if known.
    pub(crate) cost: Option<Money>,
    /// Number of queued messages.
    pub(crate) queued: usize,
}

impl StatusLine {
    /// Returns the line in at most this many columns. Parts that do not fit are omitted, the least important first.
    pub(crate) fn line(&self, columns: usize) -> StyledLine {
        let context = self.context.filter(|(used, window)| *used > 0 && *window > 0).map(|(used, window)| {
            let left = 100 - (used.min(window) * 100).div_ceil(window);
            format!("{left}% context left")
        });
        let cost = self.cost.filter(|cost| *cost > Money::ZERO).map(|cost| format!("{cost:.2}"));
        let queued = (self.queued > 0).then(|| format!("{} queued", self.queued));
        let named = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        // In the order of the line, with the rank of each part. The highest rank is omitted first.
        let mut parts: Vec<(u8, String)> = [
            (2, named(&self.model)),
            (6, self.effort.clone()),
            (1, named(&self.mode)),
            (5, named(&self.environment)),
            (3, context),
            (4, cost),
            (0, queued),
        ]
        .into_iter()
        .filter_map(|(rank, part)| Some((rank, part?)))
        .collect();
        loop {
            let texts: Vec<&str> = parts.iter().map(|(_, part)| part.as_str()).collect();
            let line = StyledLine::new(texts.join(SEPARATOR), Face::DIM);
            if line.columns() <= columns || parts.len() <= 1 {
                return line.truncated(columns);
            }
            let least = parts.iter().map(|(rank, _)| *rank).max();
            parts.retain(|(rank, _)| Some(*rank) != least);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_matters_most_is_kept_in_a_narrow_window() {
        let status = StatusLine {
            model: "claude-opus".into(),
            effort: Some("high".into()),
            mode: "auto".into(),
            environment: "local, sandbox full".into(),
            context: Some((66_000, 200_000)),
            cost: Some(Money::from_micros(123_000)),
            queued: 2,
        };
        let shown = [100, 70, 50, 20, 6].map(|columns| status.line(columns).text());
        let expected = [
            "claude-opus · high · auto · local, sandbox full · 67% context left · $0.12 · 2 queued",
            "claude-opus · auto · 67% context left · $0.12 · 2 queued",
            "claude-opus · auto · 67% context left · 2 queued",
            "auto · 2 queued",
            "2 que…",
        ];
        assert_eq!(shown, expected);
        let empty = StatusLine { mode: "ask".into(), cost: Some(Money::ZERO), ..StatusLine::default() };
        assert_eq!(empty.line(80).text(), "ask");
    }
}
