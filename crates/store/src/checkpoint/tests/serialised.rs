//! Names in the manifests of checkpoints.

use pintle_test_conditions::SerialisedValues;

use crate::checkpoint::manifest::{Gap, Header, Kind, Line, Unlisted};

#[test]
fn serialised_names_are_those_of_the_fixture() {
    let text =
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/serialised/checkpoint.json"));
    let mut values = SerialisedValues::parse(text);
    values.check::<Header>("headers");
    values.check::<Line>("entries");
    values.check_variants::<Kind>("kinds of entries", None);
    values.check_variants::<Gap>("reasons of gaps", None);
    values.check_variants::<Unlisted>("limits of lists", None);
    values.finish();
}
