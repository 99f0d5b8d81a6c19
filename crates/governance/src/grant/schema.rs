//! JSON Schema of grants, for programs in other languages.

use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::Grant;

impl Grant {
    /// Returns the JSON Schema (draft 2020-12) of a grant. The package contains it as `schema/grant.json`.
    ///
    /// It describes the form. Parsing a grant checks other conditions, such as canonical paths.
    #[must_use]
    pub fn schema() -> Value {
        let settings = SchemaSettings::draft2020_12().for_deserialize();
        settings.into_generator().into_root_schema_for::<Self>().to_value()
    }
}

#[cfg(test)]
mod tests {
    #![expect(
        clippy::disallowed_methods,
        reason = "the checked-in schema is compared, and written when asked for"
    )]

    use serde_json::json;

    use super::*;
    use crate::grant::GrantId;

    const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/schema/grant.json");

    #[test]
    fn the_checked_in_schema_matches_the_type() {
        let now = Grant::schema();
        if std::env::var_os("WRITE_GRANT_SCHEMA").is_some() {
            std::fs::write(PATH, format!("{now:#}\n")).unwrap();
        }
        let checked_in = std::fs::read_to_string(PATH).unwrap_or_default();
        let checked_in: Value = serde_json::from_str(&checked_in).unwrap_or_default();
        assert!(
            checked_in == now,
            "crates/governance/schema/grant.json does not match the type; regenerate it with\n    \
             cargo xtask generate"
        );
    }

    #[test]
    fn the_schema_has_all_grants_and_no_unknown_field() {
        let schema = jsonschema::validator_for(&Grant::schema()).unwrap();
        for grant in [Grant::none(GrantId::new("g")), Grant::all(GrantId::new("g"))] {
            let json = serde_json::to_value(&grant).unwrap();
            assert!(schema.is_valid(&json), "{json}");
            for field in ["", "/budget", "/window", "/delegation"] {
                let mut unknown = json.clone();
                unknown.pointer_mut(field).unwrap()["unknown"] = json!(1);
                assert!(!schema.is_valid(&unknown), "{field}");
                assert!(serde_json::from_value::<Grant>(unknown).is_err(), "{field}");
            }
        }
    }
}
