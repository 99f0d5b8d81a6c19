//! The hosts to which settings and rules limit a session.

use pintle_env::ExecutionEnvironment;
use pintle_governance::HostScope;

use super::EnvTarget;
use crate::env_spec::unsupported_hosts;
use crate::failure::Failure;
use crate::policy::{self, ProjectFiles};

/// The hosts that commands of a session may reach.
pub(super) struct HostLimits {
    /// The hosts; `None` without such a limit, and without network.
    pub(super) hosts: Option<HostScope>,
    /// Whether rules limit the hosts, so that commands need a sandbox.
    pub(super) are_of_rules: bool,
}

impl EnvTarget<'_> {
    /// Returns the hosts that the settings and the rules allow.
    pub(super) async fn host_limits(
        &self,
        environment: &dyn ExecutionEnvironment,
        projects: &ProjectFiles,
    ) -> Result<HostLimits, Failure> {
        let of_rules = self.hosts_of_rules(environment, projects).await?;
        let hosts = match (self.hosts, &of_rules) {
            (Some(hosts), Some(of_rules)) => Some(hosts.narrowed_by(of_rules)),
            (None, Some(of_rules)) if self.confinement.has_network() => Some(of_rules.clone()),
            (hosts, _) => hosts.cloned(),
        };
        Ok(HostLimits { hosts, are_of_rules: of_rules.is_some() })
    }

    /// Fails if settings or rules limit the hosts: no environment but the sandbox of this machine enforces it.
    pub(super) async fn refuse_hosts(
        &self,
        environment: &dyn ExecutionEnvironment,
        projects: &ProjectFiles,
    ) -> Result<(), Failure> {
        if self.hosts.is_none() && self.hosts_of_rules(environment, projects).await?.is_none() {
            return Ok(());
        }
        Err(unsupported_hosts(&format!("it is not supported in the environment {}", self.choice.spec)))
    }

    async fn hosts_of_rules(
        &self,
        environment: &dyn ExecutionEnvironment,
        projects: &ProjectFiles,
    ) -> Result<Option<HostScope>, Failure> {
        if !self.has_rules {
            return Ok(None);
        }
        let projects = projects.projects().await?;
        let rules = policy::load_denials(self.denials, environment, projects, self.process_env).await?;
        Ok(rules.network().cloned())
    }
}
