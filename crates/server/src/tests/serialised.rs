//! Names in what a host keeps: tokens and audit lines. `openapi.json` has the names in requests and answers.

use std::net::{IpAddr, Ipv4Addr};

use pintle_test_conditions::SerialisedValues;
use serde_json::Value;

use crate::{AccessToken, AuditLine, TokenScope};

#[test]
fn serialised_names_of_tokens_are_those_of_the_fixture() {
    let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/serialised/server.json"));
    let mut values = SerialisedValues::parse(text);
    values.check::<AccessToken>("tokens");
    values.check_variants::<TokenScope>("scopes", None);
    values.finish();
}

#[test]
fn serialised_names_of_audit_lines_are_those_of_the_fixture() {
    let text =
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/serialised/audit_line.json"));
    let expected: Value = serde_json::from_str(text).unwrap();
    let line = AuditLine {
        at: "2026-11-23T14:00:00.000Z".parse().unwrap(),
        name: Some("jan".to_owned()),
        tenant: Some("blue".to_owned()),
        method: "POST".to_owned(),
        path: "/v1/sessions".to_owned(),
        key: Some("k".to_owned()),
        address: Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        status: 201,
    };
    assert_eq!(serde_json::to_value(line).unwrap(), expected);
}
