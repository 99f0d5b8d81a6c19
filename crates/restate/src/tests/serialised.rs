//! Names in the messages between an engine and its workers.

use pintle_test_conditions::SerialisedValues;

use crate::{CancelRequest, RunRequest, StatusResponse, SteerRequest};

#[test]
fn serialised_names_are_those_of_the_fixture() {
    let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/serialised/messages.json"));
    let mut values = SerialisedValues::parse(text);
    values.check::<RunRequest>("inputs of run");
    values.check::<SteerRequest>("inputs of steer");
    values.check::<CancelRequest>("inputs of cancel");
    values.check::<StatusResponse>("answers of status");
    values.finish();
}
