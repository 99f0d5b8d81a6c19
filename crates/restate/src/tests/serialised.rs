//! Names in the messages between an engine and its workers.

use pintle_test_conditions::SerialisedValues;

use crate::{Begin, Said, Status, Steer};

#[test]
fn serialised_names_are_those_of_the_fixture() {
    let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/serialised/messages.json"));
    let mut values = SerialisedValues::parse(text);
    values.check::<Begin>("inputs of run");
    values.check::<Steer>("inputs of steer");
    values.check::<Said>("inputs of cancel");
    values.check::<Status>("answers of status");
    values.finish();
}
