//! Sessions whose lines a fork contains.

use pintle_store::SessionId;

/// Sessions from which a fork has its first lines, each with the number of its last line, in the order of the lines. Empty
/// for a session that is not a fork.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ForkOrigins(Vec<(SessionId, u64)>);

impl ForkOrigins {
    /// Parses the text of a row. If it is invalid, the verification of the lines fails.
    pub(crate) fn parse(text: &str) -> Self {
        Self(serde_json::from_str(text).unwrap_or_default())
    }

    pub(crate) fn to_json(&self) -> String {
        serde_json::to_string(&self.0).unwrap_or_default()
    }

    /// Returns the session whose writer wrote line `seq` of session `own`.
    pub(crate) fn session_of<'a>(&'a self, seq: u64, own: &'a SessionId) -> &'a SessionId {
        self.0.iter().find(|(_, until)| seq <= *until).map_or(own, |(session, _)| session)
    }

    /// Returns the origins of a fork of `session` after line `at`. `self` are the origins of `session`.
    pub(crate) fn fork_after(&self, session: &SessionId, at: u64) -> Self {
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
        let of_b = ForkOrigins::default().fork_after(&a, 4);
        let of_c = of_b.fork_after(&b, 7);
        let early = of_b.fork_after(&b, 2);
        let sessions = |origins: &ForkOrigins, own: &SessionId| {
            let names = (1..=8).map(|seq| origins.session_of(seq, own).as_str().to_owned());
            names.collect::<String>()
        };
        assert_eq!(sessions(&ForkOrigins::default(), &a), "aaaaaaaa");
        assert_eq!(sessions(&of_b, &b), "aaaabbbb");
        assert_eq!(sessions(&of_c, &c), "aaaabbbc");
        assert_eq!(sessions(&early, &c), "aacccccc");
        assert_eq!(ForkOrigins::parse(&of_c.to_json()), of_c);
    }
}
