//! The client program of a container engine.
#![expect(
    clippy::disallowed_methods,
    reason = "it describes the local client; each call of it is awaited or ended"
)]

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Output, Stdio},
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use tokio::time::{Instant, sleep, timeout};

use super::image::ContainerImage;
use crate::{
    error::{BoxError, EnvError},
    remote::transport::Transport,
};

/// The programs that are looked for, the first one found is taken.
const PROGRAMS: [&str; 2] = ["docker", "podman"];

/// How many commands run at the same time: each is a client process of some size, and work for the engine.
const CONCURRENCY: usize = 16;

/// How long the engine may take to answer a question.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// How long it may take to start a container, whose image it may have to fetch.
const START_LIMIT: Duration = Duration::from_secs(600);

/// How long it may take until a container is gone.
const REMOVAL_LIMIT: Duration = Duration::from_secs(30);

/// How often it is looked.
const POLL: Duration = Duration::from_millis(50);

/// The first process of a container that is started here: it does nothing but wait for those that lost their parent,
/// and goes when it is told to.
const FIRST_PROCESS: &str = "trap 'exit 0' TERM INT; while :; do sleep 86400 & wait $!; done";

/// Which container.
#[derive(Clone, Debug)]
pub(super) enum Target {
    /// One that runs already.
    Container(String),
    /// One that is to be started.
    Image(Box<ContainerImage>),
}

/// Runs lines in a container.
#[derive(Debug)]
pub(super) struct Engine {
    target: Target,
    name: String,
    program: OnceLock<PathBuf>,
    user: Option<String>,
    /// The container that was started.
    started: Mutex<Option<String>>,
    /// Held by who starts or removes it.
    alone: tokio::sync::Mutex<()>,
}

impl Engine {
    pub(super) fn new(
        target: Target,
        program: Option<PathBuf>,
        user: Option<String>,
    ) -> Result<Self, EnvError> {
        let word = match &target {
            Target::Container(name) => name,
            Target::Image(image) => &image.name,
        };
        let name = format!("docker:{word}");
        if word.is_empty() || word.starts_with('-') || word.contains('\0') {
            let found = format!("found {word:?}, expected the name of a container or an image");
            return Err(EnvError::Unreachable { environment: name, source: Some(found.into()) });
        }
        let known = OnceLock::new();
        if let Some(program) = program {
            known.get_or_init(|| program);
        }
        Ok(Self { target, name, program: known, user, started: Mutex::new(None), alone: Default::default() })
    }

    pub(super) fn container(&self) -> Option<String> {
        match &self.target {
            Target::Container(name) => Some(name.clone()),
            Target::Image(_) => self.lock().clone(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<String>> {
        self.started.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn program(&self) -> &Path {
        self.program.get().map_or(Path::new("docker"), PathBuf::as_path)
    }

    fn unreachable(&self, source: impl Into<BoxError>) -> EnvError {
        EnvError::Unreachable { environment: self.name.clone(), source: Some(source.into()) }
    }

    /// Finds the client program, unless the host has named it.
    async fn find_program(&self) -> Result<(), EnvError> {
        if self.program.get().is_some() {
            return Ok(());
        }
        for program in PROGRAMS {
            let mut command = Command::new(program);
            command.arg("--version");
            match output(command, ANSWER_LIMIT).await {
                Ok(_) => {
                    self.program.get_or_init(|| PathBuf::from(program));
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(self.unreachable(error)),
            }
        }
        Err(self.unreachable("neither docker nor podman was found"))
    }

    /// What the engine answers on its standard output, or what it complains about.
    async fn ask(&self, words: Vec<OsString>, limit: Duration) -> Result<String, BoxError> {
        let mut command = Command::new(self.program());
        command.args(words);
        let answer = output(command, limit).await?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        if answer.status.success() {
            return Ok(text(&answer.stdout));
        }
        let complaint = text(&answer.stderr);
        Err(if complaint.is_empty() { answer.status.to_string() } else { complaint }.into())
    }

    async fn state(&self, container: &str) -> Result<String, BoxError> {
        let words = ["container", "inspect", "--format", "{{.State.Status}}", container];
        self.ask(words.map(OsString::from).to_vec(), ANSWER_LIMIT).await
    }

    /// Starts the container unless it runs.
    async fn start(&self, image: &ContainerImage) -> Result<(), EnvError> {
        let known = self.lock().clone();
        if let Some(container) = known
            && self.state(&container).await.is_ok_and(|state| state == "running")
        {
            return Ok(());
        }
        let mut words: Vec<OsString> =
            ["run", "--detach", "--rm", "--entrypoint", "/bin/sh"].map(Into::into).into();
        words.extend(image.options());
        words.extend([image.name.as_str(), "-c", FIRST_PROCESS].map(Into::into));
        let answer = self.ask(words, START_LIMIT).await.map_err(|error| self.unreachable(error))?;
        // What it says while it fetches the image comes before.
        let container = answer.lines().last().unwrap_or_default().to_owned();
        if container.is_empty() {
            return Err(self.unreachable("the engine has not told the id of the container"));
        }
        tracing::debug!(container, image = image.name, "container started");
        *self.lock() = Some(container);
        Ok(())
    }
}

#[async_trait]
impl Transport for Engine {
    async fn open(&self) -> Result<(), EnvError> {
        let _alone = self.alone.lock().await;
        self.find_program().await?;
        match &self.target {
            Target::Image(image) => self.start(image).await,
            Target::Container(name) => match self.state(name).await {
                Ok(state) if state == "running" => Ok(()),
                Ok(state) => {
                    Err(self.unreachable(format!("the container is {state}, expected a running one")))
                }
                Err(error) => Err(self.unreachable(error)),
            },
        }
    }

    /// Removes the container if it was started here, and waits until it is gone.
    async fn close(&self) -> Result<(), EnvError> {
        let _alone = self.alone.lock().await;
        let started = self.lock().clone();
        let Some(container) = started else {
            return Ok(());
        };
        let removal = ["rm", "--force", "--volumes", container.as_str()].map(OsString::from).to_vec();
        let removed = self.ask(removal, REMOVAL_LIMIT).await;
        let deadline = Instant::now() + REMOVAL_LIMIT;
        // It may be on its way out by itself.
        while self.state(&container).await.is_ok() {
            if Instant::now() > deadline {
                let source = removed.err().or_else(|| Some("the container does not go".into()));
                return Err(EnvError::EnvironmentLost { environment: self.name.clone(), source });
            }
            sleep(POLL).await;
        }
        *self.lock() = None;
        Ok(())
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(self.program());
        command.args(["exec", "--interactive"]);
        if let Some(user) = &self.user {
            command.arg("--user").arg(user);
        }
        command.arg(self.container().unwrap_or_default()).args(["/bin/sh", "-c", line]);
        command
    }

    fn lost(&self, status: ExitStatus, stderr_tail: &str) -> EnvError {
        let said = if stderr_tail.is_empty() {
            format!("the client ended with {status}")
        } else {
            stderr_tail.to_owned()
        };
        EnvError::EnvironmentLost { environment: self.name.clone(), source: Some(said.into()) }
    }

    fn concurrency(&self) -> usize {
        CONCURRENCY
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn last_words(&self) -> &str {
        match self.target {
            Target::Container(_) => ":",
            // Its own container goes with the host.
            Target::Image(_) => "kill -TERM 1",
        }
    }
}

/// Runs a client to its end; it is killed if it takes too long.
async fn output(command: Command, limit: Duration) -> io::Result<Output> {
    let mut command = tokio::process::Command::from(command);
    command.stdin(Stdio::null()).process_group(0).kill_on_drop(true);
    timeout(limit, command.output()).await?
}
