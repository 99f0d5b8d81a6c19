//! Ledger of the amounts that all sessions of a day have spent and reserved.

use std::collections::BTreeMap;

use pintle_agent::{Account, Limits, Money};
use serde::{Deserialize, Serialize};

/// Amounts of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Amounts {
    pub(super) tokens: u64,
    pub(super) cost_micros: u64,
    pub(super) tool_calls: u64,
}

impl Amounts {
    /// Returns the amounts that a session has spent and holds. An unknown cost counts as 0.
    pub(super) fn of_account(account: &Account) -> Self {
        let Account { spent, held, .. } = account;
        Self {
            tokens: spent.tokens().saturating_add(held.tokens()),
            cost_micros: (spent.cost.unwrap_or_default() + held.cost.unwrap_or_default()).micros(),
            tool_calls: spent.tool_calls.saturating_add(held.tool_calls),
        }
    }

    /// Combines the amounts of each kind.
    pub(super) fn zip_with(self, other: Self, combine: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            tokens: combine(self.tokens, other.tokens),
            cost_micros: combine(self.cost_micros, other.cost_micros),
            tool_calls: combine(self.tool_calls, other.tool_calls),
        }
    }

    fn plus(self, other: Self) -> Self {
        self.zip_with(other, u64::saturating_add)
    }

    fn minus(self, other: Self) -> Self {
        self.zip_with(other, u64::saturating_sub)
    }

    /// Returns these amounts where `budget` has a limit.
    pub(super) fn limited_by(self, budget: &Limits) -> AmountLimits {
        AmountLimits {
            tokens: budget.tokens.map(|_| self.tokens),
            cost_micros: budget.cost.map(|_| self.cost_micros),
            tool_calls: budget.tool_calls.map(|_| self.tool_calls),
        }
    }
}

/// Limits of each kind; `None` is unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AmountLimits {
    pub(super) tokens: Option<u64>,
    pub(super) cost_micros: Option<u64>,
    pub(super) tool_calls: Option<u64>,
}

/// The ledger of one day, as it is stored.
///
/// A session has an entry while it works: the amounts that it spent before the day, and the totals up to which it may
/// spend. When the session becomes idle, its spending of the day is added to `settled`. The entry of a process that died
/// stays until the session resumes, so that the whole reservation counts as spent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct DayLedger {
    sessions: BTreeMap<String, LedgerEntry>,
    /// Amounts spent by sessions that are idle now.
    settled: Amounts,
    /// Amounts added to the limits of this day.
    pub(super) raised: Amounts,
}

/// Share of a session in a day, as totals over the session's life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LedgerEntry {
    /// Amounts spent before this day.
    base: Amounts,
    /// Amounts that may be spent in total.
    until: Amounts,
}

/// Share of a day that a session gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    /// Totals up to which the session may spend, where the day is limited.
    pub(super) until: AmountLimits,
    /// Amounts spent and reserved by all sessions, without the unspent reservation of this session.
    pub(super) spent: Amounts,
}

/// Divisor of the remaining amounts of a day. A session reserves at least this fraction of them, if available.
const SHARE: u64 = 8;

impl DayLedger {
    /// Reserves at least the amounts from `now` to `target` for a session, as far as the day has them.
    pub(super) fn draw(&mut self, session: &str, now: Amounts, target: Amounts, day: &Limits) -> Share {
        let base = self.sessions.get(session).map_or(now, |entry| entry.base);
        let others = self.sessions.iter().filter(|(id, _)| *id != session);
        let others = others.fold(self.settled, |sum, (_, entry)| sum.plus(entry.until.minus(entry.base)));
        let raised = self.raised;
        let get = |limit: Option<u64>, raised: u64, others: u64, base: u64, now: u64, target: u64| {
            let Some(limit) = limit else { return (None, now) };
            let most = base.saturating_add(limit.saturating_add(raised).saturating_sub(others));
            let generous = now.saturating_add(most.saturating_sub(now) / SHARE).max(target);
            // Spent amounts cannot be released.
            let until = generous.min(most).max(now);
            (Some(until), until)
        };
        let tokens = get(day.tokens, raised.tokens, others.tokens, base.tokens, now.tokens, target.tokens);
        let cost = get(
            day.cost.map(Money::micros),
            raised.cost_micros,
            others.cost_micros,
            base.cost_micros,
            now.cost_micros,
            target.cost_micros,
        );
        let calls = get(
            day.tool_calls,
            raised.tool_calls,
            others.tool_calls,
            base.tool_calls,
            now.tool_calls,
            target.tool_calls,
        );
        let until = Amounts { tokens: tokens.1, cost_micros: cost.1, tool_calls: calls.1 };
        self.sessions.insert(session.to_owned(), LedgerEntry { base, until });
        Share {
            until: AmountLimits { tokens: tokens.0, cost_micros: cost.0, tool_calls: calls.0 },
            spent: others.plus(now.minus(base)),
        }
    }

    /// Adds the spending of a session that becomes idle, and releases the rest of its reservation.
    pub(super) fn settle(&mut self, session: &str, now: Amounts) {
        if let Some(entry) = self.sessions.remove(session) {
            self.settled = self.settled.plus(now.minus(entry.base));
        }
    }

    /// Returns everything that is spent and reserved.
    #[cfg(test)]
    pub(super) fn total(&self) -> Amounts {
        self.sessions.values().fold(self.settled, |sum, entry| sum.plus(entry.until.minus(entry.base)))
    }
}
