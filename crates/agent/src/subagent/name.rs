//! What the subagents of a session are called: `agent_1`, `agent_2`, …

const PREFIX: &str = "agent_";

/// The name with this number.
pub(super) fn of(number: u64) -> String {
    format!("{PREFIX}{number}")
}

/// The number of a name that [`of`] gave.
pub(crate) fn number(name: &str) -> Option<u64> {
    name.trim().strip_prefix(PREFIX)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_its_number() {
        assert_eq!(number(&of(12)), Some(12));
        assert_eq!(number(" agent_3 "), Some(3));
        for other in ["agent_", "agent_x", "Agent_1", "1", "agent_-1", ""] {
            assert_eq!(number(other), None, "{other}");
        }
    }
}
