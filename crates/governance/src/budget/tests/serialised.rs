//! Names in the ledger of a day.

use pintle_test_conditions::SerialisedValues;

use crate::budget::ledger::DayLedger;

#[test]
fn serialised_names_are_those_of_the_fixture() {
    let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/serialised/ledger.json"));
    let mut values = SerialisedValues::parse(text);
    values.check::<DayLedger>("ledgers of days");
    values.finish();
}
