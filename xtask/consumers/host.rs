//! Merges the settings of a user and of a project that the user does not trust.

use pintle_host::{FieldRow, Layer, LayerSpec, PartialSpec, SandboxLevel, ValueOrigin, merge};

fn main() {
    let mut user = PartialSpec::default();
    user.environment.sandbox = Some(SandboxLevel::Writes);
    let mut project = PartialSpec::default();
    project.environment.sandbox = Some(SandboxLevel::Off);
    project.policy.deny = vec!["shell".to_owned()];
    let layers = [
        LayerSpec::new(Layer::User, user, ValueOrigin::Flag("--sandbox".to_owned())),
        LayerSpec::new(Layer::Project { trusted: false }, project, ValueOrigin::Default),
    ];
    let resolved = merge(layers).unwrap();
    assert_eq!(resolved.spec.environment.sandbox, SandboxLevel::Writes);
    assert_eq!((resolved.spec.policy.deny.len(), resolved.left_out.len()), (1, 1));
    assert!(FieldRow::find("environment.sandbox").is_some());
}
