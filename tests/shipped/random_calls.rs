//! Random calls under random grants, in sessions that `Host::open` opens: they are judged as the oracle of the grant's gate
//! judges them.

#[path = "../../crates/governance/src/gate/tests/random/calls.rs"]
mod calls;

use pintle::host::SessionSpec;
use pintle_agent::Toolset;
use pintle_governance::audit::CallHistory;
use pintle_governance::{EffectCeiling, Grant, GrantId, Mode, PathScope, Pattern};
use pintle_llm::testing::FakeAdapter;
use pintle_llm::{ContentPart, Message, Role, ToolCall};
use pintle_tools::gate::Permission;
use proptest::sample::select;
use proptest::strategy::{Strategy, ValueTree as _};
use proptest::test_runner::TestRunner;

use self::calls::{GrantCase, Tree, Use, WAYS, grants, paths};
use super::host_home::{Home, init_repository};
use super::worktrees::is_confined;
use crate::host_sessions::refuses;

/// Number of grants for each provider.
const GRANTS: usize = 6;

/// Number of responses under each grant, and of calls in each response.
const RESPONSES: usize = 4;
const CALLS: usize = 10;

/// Returns whether the toolset of the specification has the tool of a way to touch a path.
fn has_tool(provider: &str, way: &str) -> bool {
    match way {
        "delete" | "move" => provider == "openai",
        "edit_file" | "read_many_files" | "list_dir" | "list below" => provider == "gemini",
        _ => true,
    }
}

fn random<T>(runner: &mut TestRunner, values: &impl Strategy<Value = T>) -> T {
    values.new_tree(runner).unwrap().current()
}

fn id(number: usize) -> String {
    format!("c{number}")
}

/// Returns a model that makes these calls.
fn model(provider: &str, uses: &[Use]) -> FakeAdapter {
    let parts = uses.iter().enumerate().map(|(number, used)| {
        ContentPart::from(ToolCall::from_raw(id(number), used.tool, used.arguments.to_string()))
    });
    let parts: Vec<ContentPart> = parts.collect();
    let messages = parts.chunks(CALLS).map(|parts| Message::new(Role::Assistant, parts.to_vec()));
    messages.fold(FakeAdapter::new(provider), FakeAdapter::message).answer("Done.")
}

/// Returns settings under which calls that the grant allows change nothing: reading needs no decision, and the user refuses
/// the rest.
fn settings(provider: &str, tree: &Tree, case: &GrantCase) -> SessionSpec {
    let mut spec = SessionSpec::default();
    spec.model.provider = Some(provider.to_owned());
    spec.environment.dir = Some(tree.root.join("w"));
    spec.tools.toolset = Toolset::Spec;
    spec.policy.mode = Mode::Ask;
    spec.policy.grant = Some(case.grant(tree));
    spec
}

/// Returns whether the grant allowed a call; `None` if the tool itself refused it, such as for an empty path.
fn is_allowed(call: &CallHistory) -> Option<bool> {
    let judgement = call.judgements.first()?;
    let step = judgement.decisive_step()?;
    Some(judgement.permission != Permission::Deny || step.gate != "grant")
}

#[tokio::test(flavor = "multi_thread")]
async fn default_sessions_of_the_host_judge_random_calls_like_the_oracle() {
    if !is_confined() {
        return;
    }
    let home = Home::new();
    let mut runner = TestRunner::deterministic();
    let (mut allowed, mut denied) = (0, 0);
    for provider in ["openai", "gemini"] {
        let ways: Vec<&str> = WAYS.into_iter().filter(|way| has_tool(provider, way)).collect();
        let ways = select(ways);
        for _ in 0..GRANTS {
            let tree = Tree::new(home.directory());
            init_repository(&tree.root.join("w"));
            let case = random(&mut runner, &grants());
            let mut next = || {
                let way = random(&mut runner, &ways);
                Use::new(way, &random(&mut runner, &paths()), &tree)
            };
            let uses: Vec<Use> = (0..RESPONSES * CALLS).map(|_| next()).collect();
            let spec = settings(provider, &tree, &case);
            let (outcome, audits) = home.run(spec, model(provider, &uses), refuses()).await;
            let audit = audits.first().unwrap();
            for (number, used) in uses.iter().enumerate() {
                let call = audit.call(&id(number)).unwrap_or_else(|| panic!("{used:?}: {outcome:?}"));
                let Some(is_allowed) = is_allowed(call) else { continue };
                assert_eq!(is_allowed, case.allows(&tree, used), "{case:?} {used:?}: {call:?}");
                *(if is_allowed { &mut allowed } else { &mut denied }) += 1;
            }
        }
    }
    assert!(allowed > 0 && denied > 0, "{allowed} calls were allowed, {denied} denied");
}
