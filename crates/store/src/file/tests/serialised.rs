//! Names in journals, summaries and ledgers, which every store has.

use pintle_test_conditions::SerialisedValues;

use crate::file::ledgers::LedgerFile;
use crate::format::SegmentHeader;
use crate::{Holder, LineId, Position, Summary};

#[test]
fn serialised_names_are_those_of_the_fixture() {
    let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/serialised/store.json"));
    let mut values = SerialisedValues::parse(text);
    values.check::<SegmentHeader>("headers");
    values.check::<Position>("positions");
    values.check::<LineId>("ids of lines");
    values.check::<Summary>("summaries");
    values.check::<Holder>("holders");
    values.check::<LedgerFile>("ledgers");
    values.finish();
}
