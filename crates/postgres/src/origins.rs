//! Sessions that a fork has lines of.

use pintle_store::SessionId;

/// Sessions that a fork has its first lines of, each with its last line, in the order of the lines. Empty for other
/// sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Origins(Vec<(SessionId, u64)>);

impl Origins {
    /// Parses the text of a row. A wrong one fails the verification of the lines.
    pub(crate) fn parse(text: &str) -> Self {
        Self(serde_json::from_str(text).unwrap_or_default())
    }

    pub(crate) fn text(&self) -> String {
        serde_json::to_string(&self.0).unwrap_or_default()
    }

    /// Returns the session whose writer wrote a line of session `own`.
    pub(crate) fn session_of<'a>(&'a self, seq: u64, own: &'a SessionId) -> &'a SessionId {
        self.0.iter().find(|(_, until)| seq <= *until).map_or(own, |(session, _)| session)
    }

    /// Returns the origins of a fork of `session`, which has these, after line `at`.
    pub(crate) fn then(&self, session: &SessionId, at: u64) -> Self {
        let before = self.0.iter().filter(|(_, until)| *until < at).cloned();
        let last = (self.session_of(at, session).clone(), at);
        Self(before.chain([last]).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_fork_belong_to_those_who_wrote_them() {
        let [a, b, c] = ["a", "b", "c"].map(SessionId::new);
        let of_b = Origins::default().then(&a, 4);
        let of_c = of_b.then(&b, 7);
        let early = of_b.then(&b, 2);
        let sessions = |origins: &Origins, own: &SessionId| {
            let names = (1..=8).map(|seq| origins.session_of(seq, own).as_str().to_owned());
            names.collect::<String>()
        };
        assert_eq!(sessions(&Origins::default(), &a), "aaaaaaaa");
        assert_eq!(sessions(&of_b, &b), "aaaabbbb");
        assert_eq!(sessions(&of_c, &c), "aaaabbbc");
        assert_eq!(sessions(&early, &c), "aacccccc");
        assert_eq!(Origins::parse(&of_c.text()), of_c);
    }
}
