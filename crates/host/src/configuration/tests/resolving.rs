//! Settings that a host resolves from the files of a user.

use std::ffi::OsStr;
use std::path::PathBuf;

use pintle_governance::{Grant, GrantId, Mode};

use super::super::{GivenSettings, ResolvedSession, SettingSources};
use crate::failure::{Failure, FailureKind};
use crate::host::Host;
use crate::layers::{RequestClient, RequestSpec, ValueOrigin};
use crate::notice::Notice;
use crate::process_env::ProcessEnv;
use crate::spec::{PartialSpec, ProfileRef};

/// A user with a configuration, and a project with another one.
struct Scene {
    directory: tempfile::TempDir,
    host: Host,
}

impl Scene {
    fn new(user: &str, project: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let home = directory.path().join("home");
        let process_env =
            ProcessEnv::from_variables([("HOME", home.as_os_str()), ("PATH", OsStr::new("/usr/bin:/bin"))]);
        let scene = Self { host: Host::new(process_env), directory };
        scene.write("home/.config/pintle/config.toml", user);
        scene.write("project/.pintle/config.toml", project);
        scene
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    #[expect(clippy::disallowed_methods, reason = "the test is the user")]
    fn write(&self, name: &str, text: &str) {
        std::fs::create_dir_all(self.at(name).parent().unwrap()).unwrap();
        std::fs::write(self.at(name), text).unwrap();
    }

    /// Returns given settings for a session in the project.
    fn given(&self, set: impl FnOnce(&mut PartialSpec)) -> GivenSettings {
        let mut spec = PartialSpec::default();
        spec.environment.dir = Some(self.at("project"));
        set(&mut spec);
        GivenSettings::from(spec)
    }

    async fn resolve(&self, given: GivenSettings) -> Result<ResolvedSession, Failure> {
        self.host.resolve(SettingSources::from(given)).await
    }

    /// Returns the notices since the last call.
    fn notices(&self) -> Vec<String> {
        let notices = self.host.process_env().notices().take();
        notices.iter().map(Notice::text).map(str::to_owned).collect()
    }
}

const USER: &str = "model = \"m\"\nmode = \"ask\"\ntheme = \"dark\"\n[profiles.p]\nmodel = \"of-profile\"\n";

#[tokio::test]
async fn the_configuration_of_the_user_applies_and_an_untrusted_project_does_not() {
    let scene = Scene::new(USER, "model = \"n\"\ncompact_at = 70\n");
    let resolved = scene.resolve(scene.given(|_| {})).await.unwrap();
    assert_eq!(resolved.spec.model.name.as_deref(), Some("m"));
    assert_eq!((resolved.spec.policy.mode, resolved.spec.limits.compact_at), (Mode::Ask, 70));
    assert_eq!(resolved.presentation.into_iter().collect::<Vec<_>>(), [("theme", "dark".to_owned())]);
    let notices = scene.notices();
    assert!(notices.len() == 1 && notices[0].contains("leaves out `model` of"), "{notices:?}");
}

#[tokio::test]
async fn given_settings_replace_the_configuration_and_are_remembered() {
    let scene = Scene::new(USER, "");
    let mut given = scene.given(|spec| {
        spec.model.name = Some("given".to_owned());
        spec.model.catalog = Some("c.json".into());
    });
    given.flags.insert("model".to_owned(), vec!["given".to_owned()]);
    let resolved = scene.resolve(given).await.unwrap();
    assert_eq!(resolved.spec.model.name.as_deref(), Some("given"));
    assert_eq!(resolved.remembered.spec.given.model.name.as_deref(), Some("given"));
    assert_eq!(resolved.remembered.flags["model"], ["given"]);
    let catalog = resolved.remembered.spec.given.model.catalog.unwrap();
    assert!(catalog.is_absolute() && catalog.ends_with("c.json"), "{catalog:?}");
}

#[tokio::test]
async fn a_given_profile_is_a_file_or_a_profile_of_the_configuration() {
    let scene = Scene::new(USER, "");
    let given = |profile: ProfileRef| scene.given(|spec| spec.model.profile = Some(profile));
    for profile in [ProfileRef::Name("p".to_owned()), ProfileRef::File("p".into())] {
        let resolved = scene.resolve(given(profile)).await.unwrap();
        assert_eq!(resolved.spec.model.profile, Some(ProfileRef::Name("p".to_owned())));
        assert_eq!(resolved.spec.model.name.as_deref(), Some("of-profile"));
    }
    let file = ProfileRef::File("own.toml".into());
    let resolved = scene.resolve(given(file.clone())).await.unwrap();
    assert_eq!((resolved.spec.model.profile, resolved.spec.model.name), (Some(file), None));
    for unknown in [ProfileRef::Name("other".to_owned()), ProfileRef::File("other".into())] {
        let failure = scene.resolve(given(unknown)).await.unwrap_err();
        assert_eq!(failure.kind(), FailureKind::Usage);
        assert!(failure.message().starts_with("there is no profile `other`"), "{failure:?}");
    }
}

#[tokio::test]
async fn the_name_of_a_profile_is_a_flag_for_older_versions() {
    let scene = Scene::new(USER, "");
    let mut given = scene.given(|spec| spec.model.profile = Some(ProfileRef::File("p".into())));
    given.origins.insert("model.profile".to_owned(), ValueOrigin::Flag("--profile".to_owned()));
    let resolved = scene.resolve(given).await.unwrap();
    assert_eq!(resolved.remembered.flags["profile"], ["p"]);
}

#[tokio::test]
async fn the_grant_is_read_for_each_session() {
    let scene = Scene::new("", "");
    let grant = |id: &str| Grant::all(GrantId::new(id));
    scene.write("grant.json", &grant("first").to_json());
    let given = GivenSettings { grant: Some(scene.at("grant.json")), ..scene.given(|_| {}) };
    assert_eq!(scene.resolve(given.clone()).await.unwrap().spec.policy.grant, Some(grant("first")));
    scene.write("grant.json", &grant("second").to_json());
    assert_eq!(scene.resolve(given.clone()).await.unwrap().spec.policy.grant, Some(grant("second")));
    scene.write("grant.json", "{}");
    assert_eq!(scene.resolve(given).await.unwrap_err().kind(), FailureKind::Usage);
}

#[tokio::test]
async fn a_client_does_not_replace_the_grant_of_the_file() {
    let scene = Scene::new("", "");
    scene.write("grant.json", &Grant::all(GrantId::new("file")).to_json());
    let mut requested = PartialSpec::default();
    requested.policy.grant = Some(Grant::none(GrantId::new("client")));
    let request = RequestSpec { client: RequestClient::Http, can_approve: true, spec: requested };
    for (file, id) in [(None, Some("client")), (Some(scene.at("grant.json")), None)] {
        let given = GivenSettings { grant: file, ..scene.given(|_| {}) };
        let sources = SettingSources { request: Some(request.clone()), ..SettingSources::from(given) };
        match (scene.host.resolve(sources).await, id) {
            (Ok(resolved), Some(id)) => {
                assert_eq!(resolved.spec.policy.grant.map(|grant| grant.id), Some(GrantId::new(id)));
            }
            (Ok(resolved), None) => panic!("{resolved:?}"),
            (Err(failure), _) => {
                assert!(id.is_none() && failure.kind() == FailureKind::Usage, "{failure:?}");
                assert!(failure.message().starts_with("grant: expected none"), "{failure:?}");
            }
        }
    }
}

#[tokio::test]
async fn mistakes_are_a_failure_or_notices() {
    let scene = Scene::new("mode = \"aks\"\nmodel = \"m\"\n", "");
    let failure = scene.resolve(scene.given(|_| {})).await.unwrap_err();
    assert!(
        failure.message().contains("found \"aks\", expected one of plan, ask, edit, auto"),
        "{failure:?}"
    );
    let given = GivenSettings { ignore_config_errors: true, ..scene.given(|_| {}) };
    let resolved = scene.resolve(given).await.unwrap();
    assert_eq!(resolved.spec.model.name.as_deref(), Some("m"));
    let notices = scene.notices();
    assert!(notices.len() == 1 && notices[0].starts_with("ignored: "), "{notices:?}");
}

#[tokio::test]
async fn the_configuration_replaces_defaults_and_a_request_replaces_both() {
    let scene = Scene::new("mode = \"ask\"", "");
    let mut defaults = PartialSpec::default();
    defaults.policy.mode = Some(Mode::Edit);
    defaults.policy.after_plan = Some(Mode::Ask);
    let mut requested = PartialSpec::default();
    requested.policy.mode = Some(Mode::Plan);
    let request = RequestSpec { client: RequestClient::Http, can_approve: true, spec: requested };
    for (request, mode) in [(None, Mode::Ask), (Some(request), Mode::Plan)] {
        let sources = SettingSources {
            defaults: defaults.clone(),
            request,
            ..SettingSources::from(scene.given(|_| {}))
        };
        let spec = scene.host.resolve(sources).await.unwrap().spec;
        assert_eq!((spec.policy.mode, spec.policy.after_plan), (mode, Mode::Ask));
    }
}

/// Callers keep this future on their stack.
#[test]
fn the_future_that_resolves_settings_is_small() {
    let scene = Scene::new("", "");
    let size = size_of_val(&scene.host.resolve(SettingSources::default()));
    assert!(size < 32 * 1024, "{size}");
}
