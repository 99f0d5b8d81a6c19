//! Names in the manifests of checkpoints.

use pintle_test_conditions::SerialisedValues;

use crate::checkpoint::manifest::{ContentGap, ListingLimit, ManifestHeader, ManifestLine, ManifestLineKind};

#[test]
fn serialised_names_are_those_of_the_fixture() {
    let text =
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/serialised/checkpoint.json"));
    let mut values = SerialisedValues::parse(text);
    values.check::<ManifestHeader>("headers");
    values.check::<ManifestLine>("entries");
    values.check_variants::<ManifestLineKind>("kinds of entries", None);
    values.check_variants::<ContentGap>("reasons of gaps", None);
    values.check_variants::<ListingLimit>("limits of lists", None);
    values.finish();
}
