//! Random grants and calls in a real directory with links, judged by the gate and by a separate oracle.
#![expect(clippy::disallowed_methods, reason = "fixtures and the oracle read the directory themselves")]

mod calls;

use std::process::Command;

use pintle_env::LocalEnvironment;
use pintle_llm::ToolCall;
use pintle_tools::pipeline::{JudgedCall, prepare};
use pintle_tools::{ToolRegistry, builtin};
use proptest::prelude::*;
use proptest::sample::select;

use self::calls::{MOUNTED, Tree, Use, WAYS, grants, paths};
use super::*;
use crate::grant::{EffectCeiling, GrantId};
use crate::pattern::Pattern;

fn registry() -> ToolRegistry {
    let mut registry = ToolRegistry::new();
    builtin::register_core(&mut registry).unwrap();
    registry.register(builtin::ReadManyFiles::new()).unwrap();
    registry.register(builtin::ListDir::new()).unwrap();
    registry.register(builtin::ApplyPatch::new()).unwrap();
    registry
}

/// Returns whether a grant allows a call; `None` if the tool itself refuses it, such as for an empty path.
fn is_allowed(tree: &Tree, registry: &ToolRegistry, grant: &Grant, used: &Use) -> Option<bool> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let prepared = runtime.block_on(async {
        let env: Arc<dyn ExecutionEnvironment> =
            Arc::new(LocalEnvironment::with_host_env(tree.root.join("w"), []).unwrap());
        let grant = Arc::new(grant.clone());
        let gate = GrantGate::new(grant, SessionId::new("s"), Arc::clone(&env), "local");
        let call = ToolCall::new("c", used.tool, used.arguments.as_object().unwrap().clone());
        prepare(registry, &[Arc::new(gate) as Arc<dyn Gate>], env.as_ref(), &call).await
    });
    match prepared {
        JudgedCall::Ready { .. } => Some(true),
        JudgedCall::Refused { judgement, .. } => (!judgement.is_empty()).then_some(false),
        JudgedCall::Ask { .. } => panic!("a grant does not ask"),
    }
}

/// A directory that is mounted elsewhere is another one there: paths are what a grant is about.
#[test]
fn no_call_gets_round_a_grant_by_mounts() {
    if !pintle_test_conditions::MOUNTS.is_present() {
        return;
    }
    let name = "gate::tests::random::no_call_gets_round_a_grant";
    let mut test = Command::new("unshare");
    test.args(["--map-root-user", "--mount", "--propagation", "private"])
        .arg(std::env::current_exe().unwrap());
    let output = test.args(["--exact", name]).env(MOUNTED, "1").output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && stdout.contains("1 passed"), "{output:?}");
}

/// Mounts take longer than the rest.
fn cases() -> u32 {
    if std::env::var_os(MOUNTED).is_some() { 150 } else { 600 }
}

/// The gate allows the calls that the oracle finds within the grant. It denies those that are outside, or that cannot be
/// resolved. No call is made, so all cases share one tree.
#[test]
fn no_call_gets_round_a_grant() {
    let tree = Tree::new(tempfile::tempdir().unwrap());
    let registry = registry();
    proptest!(ProptestConfig::with_cases(cases()), |(
        case in grants(),
        pair in paths(),
        way in select(WAYS.to_vec()),
    )| {
        let used = Use::new(way, &pair, &tree);
        let grant = case.grant(&tree);
        let Some(is_allowed) = is_allowed(&tree, &registry, &grant, &used) else { return Ok(()) };
        prop_assert_eq!(is_allowed, case.allows(&tree, &used), "{:?}", used);
    });
}
