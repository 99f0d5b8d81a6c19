//! Random days: whatever sessions draw, spend and lose, a day is never exceeded.

use pintle_test_conditions::cases;
use proptest::prelude::*;

use super::super::ledger::{Amounts, DayLedger};
use super::*;

const LIMIT: u64 = 1_000;

/// One step of a session.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// It needs this much more.
    Draw(u64),
    /// It spends this part of what it has, in percent.
    Spend(u64),
    /// It rests.
    Settle,
    /// Its process dies, and nothing of what it had is spent any more, until it goes on.
    Die,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0_u64..400).prop_map(Step::Draw),
        (0_u64..=100).prop_map(Step::Spend),
        Just(Step::Settle),
        Just(Step::Die),
    ]
}

/// What a session has spent and may spend, as totals.
#[derive(Clone, Copy, Debug, Default)]
struct Total {
    spent: u64,
    until: u64,
}

fn of_tokens(tokens: u64) -> Amounts {
    Amounts { tokens, ..Amounts::default() }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(200, 2_000)))]

    #[test]
    fn no_day_is_exceeded(steps in proptest::collection::vec((0_usize..4, step()), 1..80)) {
        let day = Limits::default().with_tokens(LIMIT);
        let mut ledger = DayLedger::default();
        let mut sessions = [Total::default(); 4];
        for (index, step) in steps {
            let session = &mut sessions[index];
            let name = index.to_string();
            match step {
                Step::Draw(more) => {
                    let (now, target) = (of_tokens(session.spent), of_tokens(session.spent + more));
                    session.until = ledger.draw(&name, now, target, &day).until.tokens.unwrap();
                }
                Step::Spend(part) => session.spent += (session.until - session.spent) * part / 100,
                Step::Settle => {
                    ledger.settle(&name, of_tokens(session.spent));
                    session.until = session.spent;
                }
                Step::Die => session.until = session.spent,
            }
            let spent: u64 = sessions.iter().map(|session| session.spent).sum();
            let may_be: u64 = sessions.iter().map(|session| session.until).sum();
            let total = ledger.total().tokens;
            prop_assert!(spent <= LIMIT && may_be <= LIMIT, "{sessions:?}");
            prop_assert!(total >= may_be && total <= LIMIT, "{total} of {sessions:?}");
            let text = serde_json::to_string(&ledger).unwrap();
            prop_assert_eq!(serde_json::from_str::<DayLedger>(&text).unwrap(), ledger.clone());
        }
    }
}
