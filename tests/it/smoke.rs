//! Both smoke tests offline, in each dialect: the same steps and checks that `cargo xtask smoke` runs against the
//! providers.

use std::process::Command;

use pintle_testkit::Dialect;

#[test]
fn both_smoke_tests_pass_offline_in_each_dialect() {
    let smoke = Command::new(env!("CARGO_BIN_EXE_smoke")).arg("--offline").output().expect("it runs");
    let (out, err) = (String::from_utf8_lossy(&smoke.stdout), String::from_utf8_lossy(&smoke.stderr));
    assert!(smoke.status.success(), "{out}\n{err}");
    for dialect in Dialect::ALL {
        for what in ["client", "session"] {
            let line = out.lines().find(|line| line.starts_with(dialect.name()) && line.contains(what));
            assert!(line.is_some_and(|line| line.contains(" ok: ")), "{dialect}, {what}: {out}");
        }
    }
}

#[test]
fn a_provider_without_a_key_is_skipped() {
    let smoke = Command::new(env!("CARGO_BIN_EXE_smoke")).env_clear().output().expect("it runs");
    let out = String::from_utf8_lossy(&smoke.stdout);
    assert!(smoke.status.success(), "{out}");
    assert_eq!(out.lines().filter(|line| line.contains("SKIPPED")).count(), 3, "{out}");
}
