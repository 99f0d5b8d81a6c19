//! The client program of a container engine.
#![expect(
    clippy::disallowed_methods,
    reason = "this module describes the local client; each call is awaited or terminated"
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
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader},
    process::Child,
    time::{Instant, sleep, timeout},
};

use super::image::ContainerImage;
use crate::{
    error::{BoxError, EnvError},
    remote::{client::Tail, nonce::nonce, transport::Transport},
};

/// Candidate programs; the first one found is used.
const PROGRAMS: [&str; 2] = ["docker", "podman"];

/// Maximum number of concurrent commands: each is a client process of considerable size, and load
/// on the engine.
const CONCURRENCY: usize = 16;

/// Time-out for a query to the engine.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// Time-out for starting a container, whose image may have to be fetched.
const START_LIMIT: Duration = Duration::from_secs(600);

/// Time-out for removing a container.
const REMOVAL_LIMIT: Duration = Duration::from_secs(30);

/// Maximum size of the error output read after a client failed.
const REST: u64 = 4 << 10;

/// Poll interval.
const POLL: Duration = Duration::from_millis(50);

/// First process of a container started here. It reaps orphans, and exits on a signal or at the end
/// of its input. The client holds that input open for us: it ends when this process dies.
const FIRST_PROCESS: &str = "trap 'exit 0' TERM INT; exec 3<&0; (while read -r _; do :; done) <&3 & exec 3<&-; \
                             echo pintle-ready; wait $!";

/// Line that the first process prints at start.
const READY: &str = "pintle-ready";

/// The container to use.
#[derive(Clone, Debug)]
pub(super) enum Target {
    /// A running container.
    Container(String),
    /// A container to start.
    Image(Box<ContainerImage>),
}

/// Transport that runs lines in a container.
#[derive(Debug)]
pub(super) struct Engine {
    target: Target,
    name: String,
    program: OnceLock<PathBuf>,
    user: Option<String>,
    started: Mutex<Option<StartedContainer>>,
    /// Held while the container is started or removed.
    exclusive: tokio::sync::Mutex<()>,
}

/// A container that was started here.
#[derive(Debug)]
struct StartedContainer {
    container: String,
    /// Holds the input of the first process; dropping it stops the container.
    client: Child,
}

impl Engine {
    pub(super) fn new(
        target: Target,
        program: Option<PathBuf>,
        user: Option<String>,
    ) -> Result<Self, EnvError> {
        let target_name = match &target {
            Target::Container(name) => name,
            Target::Image(image) => &image.name,
        };
        let name = format!("docker:{target_name}");
        if target_name.is_empty() || target_name.starts_with('-') || target_name.contains('\0') {
            let found = format!("{target_name:?} is not the name of a container or an image");
            return Err(EnvError::Unreachable { environment: name, source: Some(found.into()) });
        }
        let found_program = OnceLock::new();
        if let Some(program) = program {
            found_program.get_or_init(|| program);
        }
        Ok(Self {
            target,
            name,
            program: found_program,
            user,
            started: Mutex::new(None),
            exclusive: Default::default(),
        })
    }

    pub(super) fn container(&self) -> Option<String> {
        match &self.target {
            Target::Container(name) => Some(name.clone()),
            Target::Image(_) => self.lock().as_ref().map(|started| started.container.clone()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<StartedContainer>> {
        self.started.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn program(&self) -> &Path {
        self.program.get().map_or(Path::new("docker"), PathBuf::as_path)
    }

    fn unreachable(&self, source: impl Into<BoxError>) -> EnvError {
        EnvError::Unreachable { environment: self.name.clone(), source: Some(source.into()) }
    }

    /// Finds the client program, unless it was set explicitly.
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

    /// Returns the engine's standard output, or its error output as an error.
    async fn query(&self, arguments: Vec<OsString>, limit: Duration) -> Result<String, BoxError> {
        let mut command = Command::new(self.program());
        command.args(arguments);
        let answer = output(command, limit).await?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        if answer.status.success() {
            return Ok(text(&answer.stdout));
        }
        let message = text(&answer.stderr);
        Err(if message.is_empty() { answer.status.to_string() } else { message }.into())
    }

    async fn state(&self, container: &str) -> Result<String, BoxError> {
        let arguments = ["container", "inspect", "--format", "{{.State.Status}}", container];
        self.query(arguments.map(OsString::from).to_vec(), ANSWER_LIMIT).await
    }

    /// Checks that a container is running. Never restarts it: its state would be lost.
    async fn expect_running(&self, container: &str) -> Result<(), EnvError> {
        match self.state(container).await {
            Ok(state) if state == "running" => Ok(()),
            Ok(state) => Err(self.unreachable(format!("the container is {state}, expected a running one"))),
            Err(error) => Err(self.unreachable(error)),
        }
    }

    /// Returns the user in containers whose files belong to the user of this process.
    pub(super) async fn local_user(&self) -> Result<String, EnvError> {
        self.find_program().await?;
        let info = self.query(vec!["info".into()], ANSWER_LIMIT).await;
        let info = info.map_err(|error| self.unreachable(error))?;
        let is_rootless = info.lines().any(|line| matches!(line.trim(), "rootless" | "rootless: true"));
        // An engine without superuser rights maps the superuser of containers to its own user.
        let (user, group) = match is_rootless {
            true => (0, 0),
            false => (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw()),
        };
        Ok(format!("{user}:{group}"))
    }

    /// Starts the container, at most once: a replacement would lack the state of the first one.
    async fn start(&self, image: &ContainerImage) -> Result<(), EnvError> {
        if let Some(container) = self.container() {
            return self.expect_running(&container).await;
        }
        let container = match &image.container {
            Some(name) => {
                let removal = ["rm", "--force", "--volumes", name.as_str()].map(OsString::from).to_vec();
                // Usually there is none. A container that stays makes the start fail.
                let _ = self.query(removal, REMOVAL_LIMIT).await;
                name.clone()
            }
            None => format!("pintle-{}", nonce()),
        };
        let mut command = Command::new(self.program());
        command.args(["run", "--interactive", "--rm", "--entrypoint", "/bin/sh", "--name", &container]);
        command.args(image.options()).args([image.name.as_str(), "-c", FIRST_PROCESS]);
        let mut command = tokio::process::Command::from(command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        // Not killed when dropped: that could leave a container that is created but never started.
        // Without its input, the container exits at once.
        let mut client = command.spawn().map_err(|error| self.unreachable(error))?;
        match timeout(START_LIMIT, wait_until_ready(&mut client)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(self.unreachable(error)),
            Err(elapsed) => return Err(self.unreachable(elapsed)),
        }
        tracing::debug!(container, image = image.name, "container started");
        *self.lock() = Some(StartedContainer { container, client });
        Ok(())
    }
}

#[async_trait]
impl Transport for Engine {
    async fn open(&self) -> Result<(), EnvError> {
        let _guard = self.exclusive.lock().await;
        self.find_program().await?;
        match &self.target {
            Target::Image(image) => self.start(image).await,
            Target::Container(name) => self.expect_running(name).await,
        }
    }

    /// Removes the container if it was started here, and waits until it is gone.
    async fn close(&self) -> Result<(), EnvError> {
        let _guard = self.exclusive.lock().await;
        let Some(container) = self.container().filter(|_| matches!(self.target, Target::Image(_))) else {
            return Ok(());
        };
        let removal = ["rm", "--force", "--volumes", container.as_str()].map(OsString::from).to_vec();
        let removed = self.query(removal, REMOVAL_LIMIT).await;
        let deadline = Instant::now() + REMOVAL_LIMIT;
        // It may be exiting already.
        while self.state(&container).await.is_ok() {
            if Instant::now() > deadline {
                let source = removed.err().or_else(|| Some("the container cannot be removed".into()));
                return Err(EnvError::EnvironmentLost { environment: self.name.clone(), source });
            }
            sleep(POLL).await;
        }
        let started = self.lock().take();
        if let Some(StartedContainer { mut client, .. }) = started {
            drop(client.stdin.take());
            // It has nothing left to wait for. An error means that it was reaped elsewhere.
            while matches!(client.try_wait(), Ok(None)) && Instant::now() < deadline {
                sleep(POLL).await;
            }
        }
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

    fn exit_error(&self, status: ExitStatus, stderr_tail: &str) -> EnvError {
        let tail = if stderr_tail.is_empty() {
            format!("the client exited with {status}")
        } else {
            stderr_tail.to_owned()
        };
        EnvError::EnvironmentLost { environment: self.name.clone(), source: Some(tail.into()) }
    }

    fn concurrency(&self) -> usize {
        CONCURRENCY
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn exit_command(&self) -> &str {
        match self.target {
            Target::Container(_) => ":",
            // A container started here stops with the application.
            Target::Image(_) => "kill -TERM 1",
        }
    }
}

/// Waits until the first process is running; the error is the client's error output.
async fn wait_until_ready(client: &mut Child) -> Result<(), BoxError> {
    let (Some(stdout), Some(stderr)) = (&mut client.stdout, &mut client.stderr) else {
        return Err("the client has no streams".into());
    };
    let mut lines = BufReader::new(stdout).lines();
    let (mut tail, mut block, mut is_open) = (Tail::default(), [0; 1024], true);
    loop {
        tokio::select! {
            line = lines.next_line() => match line? {
                Some(line) if line == READY => return Ok(()),
                Some(_) => {}
                None => break,
            },
            read = stderr.read(&mut block), if is_open => match block.get(..read?) {
                Some([]) | None => is_open = false,
                Some(bytes) => tail.push(bytes),
            },
        }
    }
    let mut rest = Vec::new();
    stderr.take(REST).read_to_end(&mut rest).await?;
    tail.push(&rest);
    let message = tail.text();
    Err(if message.is_empty() { client.wait().await?.to_string() } else { message }.into())
}

/// Runs a client to completion, killing it after `limit`.
async fn output(command: Command, limit: Duration) -> io::Result<Output> {
    let mut command = tokio::process::Command::from(command);
    command.stdin(Stdio::null()).process_group(0).kill_on_drop(true);
    timeout(limit, command.output()).await?
}
