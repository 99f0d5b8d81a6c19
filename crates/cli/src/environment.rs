//! Where tools run: this machine, a container, or a host behind `ssh`.

mod confinement;
mod place;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use pintle_env::{
    DockerEnvironment, EnvError, ExecutionEnvironment, OutputLimits, SshEnvironment, SshError, SshErrorKind,
};
use tempfile::TempDir;

use self::confinement::ConfinedLocal;
pub(crate) use self::place::Place;
use self::place::SshHost;
use crate::args::{ConfinementArgs, PlaceArgs};
use crate::failure::Failure;
use crate::host::Host;
use crate::interrupt::Interrupts;

/// Where tools will run. Nothing is reached yet; what the command line says of this machine has been looked at.
#[derive(Debug)]
pub(crate) struct Site<'a> {
    place: &'a Place,
    /// As it was given: elsewhere than on this machine it may begin where a login does.
    directory: Option<&'a Path>,
    confinement: ConfinementArgs,
    host: &'a Host,
}

/// Where tools run: reached, with a directory to work in.
pub(crate) struct Workplace {
    environment: Arc<dyn ExecutionEnvironment>,
    /// Kills all commands at once, if they run on this machine.
    kill_all: Option<Arc<dyn Fn() + Send + Sync>>,
    /// The directory for temporary files of sandboxed commands.
    temporary: Option<TempDir>,
}

impl<'a> Site<'a> {
    /// What `--env` and `--dir` say, within the limits of `confinement`.
    ///
    /// # Errors
    ///
    /// A usage failure for a directory of this machine that is none, and for limits that cannot hold there.
    pub(crate) fn of(
        args: &'a PlaceArgs,
        confinement: ConfinementArgs,
        host: &'a Host,
    ) -> Result<Self, Failure> {
        let (place, directory) = (&args.env, args.dir.as_deref());
        confinement::check(&confinement, place)?;
        if *place == Place::Local {
            host.directory(directory)?;
        }
        Ok(Self { place, directory, confinement, host })
    }

    /// Goes there. A place that cannot be reached is a failure: no other one is taken instead.
    ///
    /// # Errors
    ///
    /// A usage failure for a directory that is not there, else one that says why there is no way.
    pub(crate) async fn reach(&self) -> Result<Workplace, Failure> {
        let limits = OutputLimits::default();
        let limits = match self.host.variable("TMPDIR") {
            Some(directory) => limits.with_spool_dir(directory),
            None => limits,
        };
        let environment = match self.place {
            Place::Local => {
                let builder = self.host.environment_builder(&self.host.directory(self.directory)?);
                let local = confinement::local(&self.confinement, builder).await?;
                let ConfinedLocal { environment, kill_all, temporary } = local;
                let environment = self.prepared(environment).await?;
                return Ok(Workplace { environment, kill_all: Some(kill_all), temporary });
            }
            Place::Docker(name) => self.reach_far(|directory| container(name, directory, &limits)).await?,
            Place::Ssh(name) => self.reach_far(|directory| far_host(name, directory, &limits)).await?,
        };
        let environment = confinement::confined(&self.confinement, environment, []);
        Ok(Workplace { environment, kill_all: None, temporary: None })
    }

    /// Goes to what `build` makes for a directory, absolute, or for the one where a login begins.
    async fn reach_far(
        &self,
        build: impl Fn(Option<&Path>) -> Result<Arc<dyn ExecutionEnvironment>, EnvError>,
    ) -> Result<Arc<dyn ExecutionEnvironment>, Failure> {
        let go = async |directory: Option<&Path>| {
            let environment = build(directory).map_err(|error| self.unusable(&error))?;
            self.prepared(environment).await
        };
        let Some(relative) = self.directory.filter(|directory| directory.is_relative()) else {
            return go(self.directory).await;
        };
        // Where a login begins is known after one.
        let login = go(None).await?;
        let absolute = login.resolve(relative);
        login.cleanup().await.map_err(|error| self.unusable(&error))?;
        go(Some(&absolute)).await
    }

    async fn prepared(
        &self,
        environment: Arc<dyn ExecutionEnvironment>,
    ) -> Result<Arc<dyn ExecutionEnvironment>, Failure> {
        match environment.initialize().await {
            Ok(()) => Ok(environment),
            Err(error) => {
                // What went wrong first is what there is to tell.
                let _ = environment.cleanup().await;
                Err(self.unusable(&error))
            }
        }
    }

    fn unusable(&self, error: &EnvError) -> Failure {
        let place = self.place;
        match (self.directory, error) {
            (Some(named), EnvError::NotFound { .. }) => missing(named, "does not exist", place),
            (Some(named), EnvError::NotADirectory { .. }) => missing(named, "is not a directory", place),
            (Some(named), EnvError::PermissionDenied { .. }) => missing(named, "is not accessible", place),
            (_, EnvError::Unreachable { source: Some(source), .. }) => {
                let failure = Failure::failed(format!("cannot reach {place}")).because(source.as_ref());
                match source.downcast_ref::<SshError>().and_then(|error| advice(error.kind)) {
                    Some(advice) => failure.advise(advice),
                    None => failure,
                }
            }
            (_, EnvError::Unsupported { .. }) => Failure::usage("the sandbox cannot be enforced")
                .because(error)
                .advise("--sandbox off runs without one"),
            (_, error) => Failure::failed(format!("{place} cannot be used")).because(error),
        }
    }
}

impl Workplace {
    /// For a session, which leaves it when it closes, or for who reads there.
    pub(crate) fn environment(&self) -> Arc<dyn ExecutionEnvironment> {
        Arc::clone(&self.environment)
    }

    /// Has a second signal end at once what runs there. Elsewhere than on this machine that needs nothing: a supervisor
    /// beside the commands ends them as soon as this process is gone.
    pub(crate) fn guard_by(&self, interrupts: &Interrupts) {
        if let Some(kill_all) = &self.kill_all {
            let (kill_all, temporary) = (Arc::clone(kill_all), self.temporary().map(Path::to_path_buf));
            interrupts.guard(move || {
                kill_all();
                // Whatever cannot be removed is in a directory for temporary files.
                let _ = temporary.as_ref().map(std::fs::remove_dir_all);
            });
        }
    }

    /// The directory for temporary files that sandboxed commands are given.
    pub(crate) fn temporary(&self) -> Option<&Path> {
        self.temporary.as_ref().map(TempDir::path)
    }

    /// Ends what still runs there and waits for it. It may be done twice.
    ///
    /// # Errors
    ///
    /// A failure if something is left.
    pub(crate) async fn leave(&self) -> Result<(), Failure> {
        let left = self.environment.cleanup().await;
        left.map_err(|error| Failure::failed("what was started may be left running").because(&error))
    }
}

impl fmt::Debug for Workplace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workplace").field("environment", &self.environment).finish_non_exhaustive()
    }
}

fn container(
    name: &str,
    directory: Option<&Path>,
    limits: &OutputLimits,
) -> Result<Arc<dyn ExecutionEnvironment>, EnvError> {
    let builder = DockerEnvironment::attach(name).output_limits(limits.clone());
    let builder = match directory {
        Some(directory) => builder.working_directory(directory),
        None => builder,
    };
    Ok(Arc::new(builder.build()?))
}

fn far_host(
    name: &SshHost,
    directory: Option<&Path>,
    limits: &OutputLimits,
) -> Result<Arc<dyn ExecutionEnvironment>, EnvError> {
    let builder = SshEnvironment::builder(name.destination()).output_limits(limits.clone());
    let builder = match name.port() {
        Some(port) => builder.port(port),
        None => builder,
    };
    let builder = match directory {
        Some(directory) => builder.working_directory(directory),
        None => builder,
    };
    Ok(Arc::new(builder.build()?))
}

fn missing(named: &Path, why: &str, place: &Place) -> Failure {
    Failure::usage(format!(
        "--dir {}: {why} at {place}; expected an existing directory there",
        named.display()
    ))
}

/// What a person can do about it. Nobody is asked on the way, so some things are done before, by hand.
#[expect(clippy::wildcard_enum_match_arm, reason = "the kinds grow, and few have an advice")]
fn advice(kind: SshErrorKind) -> Option<&'static str> {
    match kind {
        SshErrorKind::HostKeyUnknown => Some("connect once with `ssh` to check and accept the key"),
        SshErrorKind::AuthenticationFailed => Some(
            "only keys work, from files without a passphrase or from an agent; try with `ssh -o BatchMode=yes`",
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
