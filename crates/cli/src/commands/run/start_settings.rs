//! Settings of a session that starts. They are resolved again once the user trusts its project.

use std::path::Path;
use std::sync::Arc;

use pintle_governance::Mode;
use pintle_host::boxed_future::box_future;
use pintle_host::notice::{Notice, Notices};
use pintle_host::{Host, ResolvedSession, SessionSpec, SettingSources};

use super::trust_prompt::{self, TrustDecision};
use super::{RunSurface, SurfaceStart};
use crate::arguments::RunArgs;
use pintle_host::env_spec::EnvironmentChoice;
use pintle_host::failure::Failure;
use pintle_host::model::Model;
use pintle_host::process_env::ProcessEnv;
use pintle_host::sessions::SelectedSession;

/// Sources of the settings of a session, besides the configuration.
pub(super) struct StartSettings<'a> {
    pub(super) surface: RunSurface,
    pub(super) args: &'a RunArgs,
    pub(super) start: &'a SurfaceStart,
    pub(super) selected: Option<&'a SelectedSession>,
    /// Whether the mode is set now.
    pub(super) is_mode_given: bool,
}

/// Result of the question whether the project of a session is trusted.
pub(super) enum StartDecision {
    /// The session starts with the settings that were resolved before.
    Unchanged,
    /// The session starts with these settings and this model.
    Changed(Box<ResolvedSession>, Arc<Model>),
    /// The session does not start.
    Quit,
}

impl StartSettings<'_> {
    /// Returns the settings, and the notices about them. In a conversation, the command line is about the first session only.
    ///
    /// `directory` replaces the directory of the command line. Notices in `reported` are not reported again.
    pub(super) async fn resolve(
        &self,
        directory: Option<&Path>,
        reported: &[Notice],
        process_env: &ProcessEnv,
    ) -> Result<(ResolvedSession, Vec<Notice>), Failure> {
        let host = Host::new(process_env.clone().with_notices(Notices::default()));
        let resolved = match self.sources(directory) {
            Ok(sources) => box_future(|| host.resolve(sources)).await,
            Err(failure) => Err(failure),
        };
        let notices = host.process_env().notices().take();
        let new = notices.iter().filter(|notice| !reported.contains(notice));
        process_env.notices().report_all(new.cloned());
        let mut resolved = resolved?;
        self.start.apply(&mut resolved);
        if let Some(selected) = self.selected.filter(|_| !self.start.is_first()) {
            // The command line sets the environment of the first session, which may be a different one.
            let EnvironmentChoice { spec, directory } = selected.environment()?;
            let environment = &mut resolved.spec.environment;
            (environment.kind, environment.dir) = (spec.to_string(), directory);
        }
        Ok((resolved, notices))
    }

    fn sources(&self, directory: Option<&Path>) -> Result<SettingSources, Failure> {
        let mut sources = SettingSources::from_selected(self.args.given()?, self.selected)?;
        if self.is_mode_given {
            sources.remembered.recorded_mode = None;
        }
        if self.surface == RunSurface::Conversation {
            // The user can be asked.
            sources.defaults.policy.mode = Some(Mode::Edit);
        }
        if let Some(directory) = directory {
            sources.given.spec.environment.dir = Some(directory.to_path_buf());
        }
        Ok(sources)
    }

    /// Asks whether the project of a session is trusted, and stores the answer. If the project is trusted from now on, resolves
    /// the settings again, since more of its configuration applies, and selects their model.
    ///
    /// `spec` has the settings that were resolved before, with the directory of the session, and `reported` their notices.
    pub(super) async fn ask_about_trust(
        &self,
        spec: &SessionSpec,
        reported: &[Notice],
        process_env: &ProcessEnv,
    ) -> Result<StartDecision, Failure> {
        let environment = EnvironmentChoice::try_from(spec)?;
        match box_future(|| trust_prompt::decide_trust(&environment, process_env)).await? {
            TrustDecision::Unchanged => return Ok(StartDecision::Unchanged),
            TrustDecision::Quit => return Ok(StartDecision::Quit),
            TrustDecision::Trusted => {}
        }
        // The directory may be in a worktree.
        let directory = spec.environment.dir.as_deref();
        let (resolved, _) = box_future(|| self.resolve(directory, reported, process_env)).await?;
        let host = Host::new(process_env.clone());
        let model = box_future(|| host.choose_model(&resolved.spec)).await?;
        Ok(StartDecision::Changed(Box::new(resolved), model))
    }
}
