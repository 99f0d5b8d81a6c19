use std::ffi::OsStr;

use pintle_host::PartialSpec;
use pintle_host::process_env::ProcessEnv;

use super::*;
use crate::contract::{BaseCommit, CandidatePlan, ModelPlan, ModelPlans, SessionRole};
use crate::local::LocalTaskHost;
use crate::session_runner::Workspace;
use crate::testing::contract;

/// Returns the host of a user with this home directory, who has a key of one provider.
fn host(home: &Path) -> Host {
    Host::new(ProcessEnv::from_variables([
        ("HOME", home.as_os_str()),
        ("ANTHROPIC_API_KEY", OsStr::new("key-1")),
    ]))
}

/// Returns settings with this directory.
fn settings(directory: &Path) -> PartialSpec {
    let mut spec = PartialSpec::default();
    spec.environment.dir = Some(directory.to_path_buf());
    spec
}

async fn open(home: &Path) -> HostPerformerFactory {
    HostPerformerFactory::open(host(home), settings(home).into()).await.unwrap()
}

#[tokio::test]
async fn tasks_need_this_machine_and_a_key() {
    let home = tempfile::tempdir().unwrap();
    let mut elsewhere = settings(home.path());
    elsewhere.environment.kind = Some("ssh:build.example".to_owned());
    let failure = HostPerformerFactory::open(host(home.path()), elsewhere.into()).await.unwrap_err();
    assert!(failure.message().starts_with("a task works only with --env local or"), "{failure:?}");
    let mut without_key = settings(home.path());
    without_key.model.provider = Some("openai".to_owned());
    let failure = HostPerformerFactory::open(host(home.path()), without_key.into()).await.unwrap_err();
    assert!(failure.message().starts_with("no API key for openai"), "{failure:?}");
    let performers = open(home.path()).await;
    assert_eq!(performers.directory().path, home.path());
    assert_eq!(performers.spec().environment.dir.as_deref(), Some(home.path()));
}

#[tokio::test]
async fn each_model_of_a_contract_needs_a_key() {
    let home = tempfile::tempdir().unwrap();
    let performers = open(home.path()).await;
    performers.check_models(&contract()).await.unwrap();
    let plan = CandidatePlan { model: Some("gpt-6.2-sol".to_owned()), ..CandidatePlan::default() };
    let failure = performers.check_models(&contract().with_candidates([plan])).await.unwrap_err();
    assert!(failure.message().contains("there is no API key for openai"), "{failure:?}");
}

#[tokio::test]
async fn the_model_of_each_role_needs_a_key() {
    let home = tempfile::tempdir().unwrap();
    let performers = open(home.path()).await;
    for role in SessionRole::ALL {
        let models = ModelPlans::default().with_plan(role, ModelPlan::default().with_model("gpt-6.2-sol"));
        let failure = performers.check_models(&contract().with_models(models)).await.unwrap_err();
        assert!(failure.message().contains("there is no API key for openai"), "{role:?}: {failure:?}");
    }
}

#[test]
fn the_catalog_decides_the_provider_of_a_named_model() {
    let spec = |provider: &str, base_url: Option<&str>| {
        let mut spec = pintle_host::SessionSpec::default();
        spec.model.provider = Some(provider.to_owned());
        spec.model.base_url = base_url.map(pintle_host::BaseUrl::new);
        spec
    };
    for (provider, base_url, model, expected) in [
        ("anthropic", None, "gpt-6.2-sol", None),
        ("anthropic", None, "own-model", Some("anthropic")),
        ("openai-compatible", Some("http://127.0.0.1:9/v1"), "gpt-6.2-sol", Some("openai-compatible")),
    ] {
        let mut spec = spec(provider, base_url);
        super::session_runner::set_model(&mut spec, model.to_owned());
        assert_eq!((spec.model.provider.as_deref(), spec.model.name.as_deref()), (expected, Some(model)));
    }
}

#[tokio::test]
async fn a_task_has_a_performer_where_its_repository_is() {
    let home = tempfile::tempdir().unwrap();
    let performers = open(home.path()).await;
    for (name, expected) in [("here", None), ("missing", Some("is not on this machine"))] {
        let repository = home.path().join(name);
        if expected.is_none() {
            performers.directory().environment.create_directory(&repository).await.unwrap();
        }
        let id = SessionId::new(name);
        let contract =
            contract().with_base(BaseCommit::new(repository.display().to_string(), "1a".repeat(20)));
        let task = LocalTaskHost::create(performers.sessions().store(), id.clone(), contract).await.unwrap();
        task.close().await.unwrap();
        let problem = performers.performer(&id).await.err();
        match expected {
            None => assert_eq!(problem, None),
            Some(expected) => assert!(problem.as_ref().unwrap().contains(expected), "{problem:?}"),
        }
    }
    let directory = task_directory(&SessionId::new("here"), &host(home.path())).unwrap();
    assert_eq!(directory, home.path().join(".local/state/pintle/worktrees/task-here"));
}

#[tokio::test]
async fn a_workspace_has_its_own_directory_and_variables() {
    let home = tempfile::tempdir().unwrap();
    let mut given = GivenSettings::from(settings(home.path()));
    given.grant = Some(home.path().join("grant.json"));
    // The file is read when a session is opened.
    let performers = HostPerformerFactory::open(host(home.path()), given).await.unwrap();
    let workspace = Workspace::new("/w/tree", [("PORT".to_owned(), "1234".to_owned())].into());
    let (mut spec, host) = performers.workspace_factory.settings_for(&workspace);
    assert_eq!(spec.environment.dir.as_deref(), Some(Path::new("/w/tree")));
    assert_eq!(host.process_env().variable("PORT").as_deref(), Some("1234"));
    assert_eq!(host.process_env().variable("ANTHROPIC_API_KEY").as_deref(), Some("key-1"));
    assert!(workspace.readable_directories().is_empty());
    let workspace = workspace.in_directory("apps/a");
    assert_eq!(workspace.readable_directories(), [Path::new("/w/tree")], "the clone around the directory");
    let (below, _) = performers.workspace_factory.settings_for(&workspace);
    assert_eq!(below.environment.dir.as_deref(), Some(Path::new("/w/tree/apps/a")));
    let failure = performers.workspace_factory.add_grant(&mut spec).unwrap_err();
    assert!(failure.message().contains("grant.json"), "{failure:?}");
}
