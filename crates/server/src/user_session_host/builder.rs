//! Builds the host of a user's sessions.

use std::path::PathBuf;

use pintle_host::env_spec::EnvironmentChoice;
use pintle_host::failure::Failure;
use pintle_host::{GivenSettings, Host, ProfileRef, SessionSpec, SettingSources};

use super::roots::{WorkspaceRoot, WorkspaceRoots};
use super::{UserSessionHost, defaults};
use crate::host::ModelSummary;

/// Builder of a [`UserSessionHost`].
#[derive(Clone, Debug)]
#[must_use]
pub struct UserSessionHostBuilder {
    host: Host,
    given: GivenSettings,
    roots: Vec<WorkspaceRoot>,
    files: Vec<PathBuf>,
}

impl UserSessionHostBuilder {
    pub(super) fn new(host: Host) -> Self {
        Self { host, given: GivenSettings::default(), roots: Vec::new(), files: Vec::new() }
    }

    /// Sets the settings of all sessions, which precede the configuration of the user. Default: only the configuration applies.
    pub fn with_settings(mut self, given: impl Into<GivenSettings>) -> Self {
        self.given = given.into();
        self
    }

    /// Adds a root of the sessions of this machine. Default: the directory of the settings, or else the current directory.
    pub fn with_root(mut self, root: WorkspaceRoot) -> Self {
        self.roots.push(root);
        self
    }

    /// Adds files of the application, such as keys and tokens, which are hidden from the sessions.
    pub fn with_server_files(mut self, files: impl IntoIterator<Item = PathBuf>) -> Self {
        self.files.extend(files);
        self
    }

    /// Creates the host, and selects the model of its sessions.
    ///
    /// Dropping the future ends the program that prints a key.
    ///
    /// # Errors
    ///
    /// Mistakes in the configuration, a root that is not a directory, and a missing model or key.
    pub async fn build(self) -> Result<UserSessionHost, Failure> {
        let Self { host, given, roots, files } = self;
        let sources = SettingSources { defaults: defaults(), ..SettingSources::from(given.clone()) };
        let spec = host.resolve(sources).await?.spec;
        let files = files.into_iter().chain(server_files(&given, &spec));
        let host = Host::new(host.process_env().clone().with_server_files(files));
        let roots = WorkspaceRoots::new(&roots, spec.environment.dir.as_deref(), host.process_env())?;
        let model = host.choose_model(&spec).await?;
        let provider = model.route.provider.name();
        let models = model.catalog().list(Some(provider));
        let models = models.map(|known| ModelSummary::new(&known.id, known.context_window)).collect();
        Ok(UserSessionHost {
            environment: EnvironmentChoice::try_from(&spec)?.spec,
            model: model.route.model.clone(),
            catalog: model.catalog().clone(),
            is_scripted: model.is_scripted(),
            host,
            given,
            spec,
            roots,
            models,
        })
    }
}

/// Returns the files of the settings that control the permissions of sessions.
fn server_files(given: &GivenSettings, spec: &SessionSpec) -> Vec<PathBuf> {
    let profile = match &spec.model.profile {
        Some(ProfileRef::File(file)) => Some(file),
        Some(ProfileRef::Name(_)) | None => None,
    };
    given.grant.iter().chain(profile).chain(&spec.tools.server_files).cloned().collect()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::path::Path;

    use pintle_governance::Mode;
    use pintle_host::PartialSpec;
    use pintle_host::process_env::ProcessEnv;

    use super::*;
    use crate::host::{HostError, SessionHost as _};

    #[tokio::test]
    async fn a_host_has_the_settings_and_the_roots_of_its_builder() {
        let home = tempfile::tempdir().unwrap();
        let base = home.path().canonicalize().unwrap();
        let project = base.join("project");
        let variables = [("HOME", base.as_os_str()), ("OPENAI_API_KEY", OsStr::new("key"))];
        let process_env = ProcessEnv::from_variables(variables);
        process_env.create_directory(&project).unwrap();
        let mut given = PartialSpec::default();
        given.model.provider = Some("openai".to_owned());
        given.model.name = Some("gpt-5.2".to_owned());
        given.environment.dir = Some(project.clone());
        let builder = UserSessionHost::builder(Host::new(process_env));
        let host = builder.clone().with_settings(given.clone()).build().await.unwrap();
        assert_eq!(host.default_spec().policy.mode, Mode::Edit, "the default of a server");
        given.policy.mode = Some(Mode::Ask);
        let mut given = GivenSettings::from(given);
        given.spec.tools.server_files = vec![base.join("servers.json")];
        let builder = builder.with_settings(given);
        let missing = builder.clone().with_root(WorkspaceRoot::new(base.join("missing"))).build().await;
        let failure = missing.unwrap_err();
        let shown = base.join("missing").display().to_string();
        assert_eq!(failure.message(), format!("root {shown}: expected an existing directory"));
        assert_eq!(failure.setting(), Some("environment.roots"));

        let key = base.join("key.pem");
        let builder = builder.with_root(WorkspaceRoot::new(&base)).with_server_files([key.clone()]);
        let host = builder.build().await.unwrap();
        assert_eq!(host.default_spec().policy.mode, Mode::Ask);
        assert!(host.models().iter().any(|model| model.id == "gpt-5.2"), "{:?}", host.models());
        let resolve = |path: &Path| host.roots.resolve(None, path, host.process_env());
        assert_eq!(resolve(&project).unwrap(), project);
        for hidden in [key, base.join("servers.json"), base.join(".config/pintle")] {
            let resolved = resolve(&hidden);
            assert!(matches!(resolved, Err(HostError::Forbidden(_))), "{resolved:?}");
        }
    }
}
