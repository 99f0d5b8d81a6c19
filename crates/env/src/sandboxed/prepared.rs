//! Sandboxes that are started before their command is known.
//!
//! Most of the time that a command at the level *full* takes to start is spent waiting for the kernel to set up namespaces.
//! After a command, bubblewrap therefore sets up the sandbox of the next one, in which a shell waits for its command. Each
//! sandbox still runs one command. It has the same namespaces, filters and mounts as a sandbox that is started for its
//! command, and is used only if all of these, and the files below the mounts, would be the same now.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fmt, io, mem,
    os::unix::ffi::OsStrExt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    runtime::Handle,
    sync::oneshot,
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{
    MAX_LAUNCHES, SandboxGateway, SandboxLevel, SandboxedEnvironment, bubblewrap,
    held_mounts::{HeldMounts, HeldProcess},
    is_launcher_error, listener,
    mounts::Mounts,
    placeholders::Placeholders,
    rules::Rules,
    sandbox_failed,
};
use crate::{
    blocking::blocking,
    command::{Command, Program, Stdin},
    environment::ExecutionEnvironment,
    error::EnvError,
    local::{Invocation, Launcher, LocalEnvironment, LocalProcess},
    process::{Process, TERMINATE_GRACE},
    variables::TAG_VARIABLE,
};

/// Time that a sandbox waits for a command before it is ended.
const MAX_WAIT: Duration = Duration::from_secs(120);

/// Executes the command in the shell that waits for it.
const RELEASE: &str = include_str!("release.sh");

/// The sandbox of the next command, if it is started ahead.
#[derive(Default)]
pub(super) struct NextSandbox(Mutex<State>);

#[derive(Default)]
struct State {
    /// Requests the sandbox that a task prepares or has prepared.
    request: Option<oneshot::Sender<Request>>,
    /// Tasks that prepare a sandbox, keep it, or end it.
    tasks: JoinSet<()>,
    /// No sandbox is started any more.
    is_closed: bool,
}

/// A sandbox in which a shell waits for a command.
struct PreparedSandbox {
    process: LocalProcess,
    /// Variables of the command, without the variables of the gateway.
    variables: BTreeMap<OsString, OsString>,
    view: SandboxView,
    /// The way to some hosts, which is open.
    gateway: Option<Arc<dyn SandboxGateway>>,
}

/// The mounts of a sandbox and the files that they are on.
#[derive(Debug, PartialEq, Eq)]
struct SandboxView {
    mounts: Mounts,
    /// The hidden and protected files.
    held: HeldMounts,
    /// The files and directories of all mounts, such as the roots.
    mounted: HeldMounts,
}

impl SandboxView {
    /// Determines the view of a command that starts now; blocks.
    fn determine(rules: &Rules, placeholders: &Placeholders) -> Result<Self, EnvError> {
        // First, since it creates files in place of missing ones.
        let mounts = Mounts::new(rules, placeholders)?;
        let mounted = HeldMounts::from_paths(mounts.iter().map(|(path, _)| path.to_path_buf()));
        Ok(Self { mounts, held: HeldMounts::from_rules(rules), mounted })
    }
}

/// Sends the sandbox to the receiver that it contains.
type Request = oneshot::Sender<PreparedSandbox>;

impl PreparedSandbox {
    /// Keeps the sandbox until it is requested, for at most [`MAX_WAIT`]. Ends it if it is not needed any more.
    async fn keep(self, requested: oneshot::Receiver<Request>) {
        tokio::select! {
            biased;
            request = requested => match request {
                Ok(request) => {
                    if let Err(prepared) = request.send(self) {
                        prepared.end().await;
                    }
                }
                Err(_) => self.end().await,
            },
            () = sleep(MAX_WAIT) => self.end().await,
        }
    }

    /// Ends the sandbox: its shell exits at the end of its input.
    async fn end(self) {
        let mut process = self.process;
        drop(process.take_stdin());
        let _ = timeout(TERMINATE_GRACE, process.wait()).await;
        if let Err(error) = process.terminate(TERMINATE_GRACE).await {
            tracing::debug!(%error, "a sandbox without a command is not ended");
        }
    }
}

impl NextSandbox {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the sandbox, once it is ready; `None` if none was started or it could not be set up.
    async fn take(&self) -> Option<PreparedSandbox> {
        let request = self.lock().request.take()?;
        let (sender, receiver) = oneshot::channel();
        request.send(sender).ok()?;
        receiver.await.ok()
    }

    /// Returns the process id of the sandbox that waits, once it is ready.
    #[cfg(test)]
    pub(super) async fn waiting_id(&self) -> Option<u32> {
        let prepared = self.take().await?;
        let id = prepared.process.id();
        let (request, requested) = oneshot::channel();
        let mut state = self.lock();
        state.request = Some(request);
        state.tasks.spawn(prepared.keep(requested));
        id
    }

    /// Ends a sandbox in the background.
    fn end(&self, prepared: PreparedSandbox) {
        if let Ok(runtime) = Handle::try_current() {
            self.lock().tasks.spawn_on(prepared.end(), &runtime);
        }
    }

    /// Ends the sandbox, and starts no more. Dropping the future kills it.
    pub(super) async fn close(&self) {
        let mut tasks = {
            let mut state = self.lock();
            state.is_closed = true;
            // Its task ends the sandbox.
            state.request = None;
            mem::take(&mut state.tasks)
        };
        while tasks.join_next().await.is_some() {}
    }
}

impl fmt::Debug for NextSandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NextSandbox").finish_non_exhaustive()
    }
}

impl SandboxedEnvironment {
    /// Returns whether a sandbox that is started ahead can run a command.
    fn can_run_ahead(&self, command: &Command) -> bool {
        self.next.is_some()
            && self.rules.level == SandboxLevel::Full
            && !command.is_read_only
            && command.stdin == Stdin::Null
            && self.inner.directory_of(command) == self.working_directory()
    }

    /// Starts the sandbox of the next command when this one has ended, if its sandbox can be started ahead.
    pub(super) fn followed(&self, process: HeldProcess, command: &Command) -> HeldProcess {
        match self.can_run_ahead(command) {
            true => process.followed(self, command),
            false => process,
        }
    }

    /// Starts the sandbox of the next command in the background, for a command like this one. Does nothing if one is started
    /// already, or on a machine that is short of descriptors.
    pub(super) fn start_next(&self, command: Command) {
        let (Some(next), Ok(runtime)) = (&self.next, Handle::try_current()) else { return };
        if !self.can_run_ahead(&command) || !LocalEnvironment::has_spare_slots() {
            return;
        }
        let mut state = next.lock();
        if state.is_closed || state.request.as_ref().is_some_and(|request| !request.is_closed()) {
            return;
        }
        let (request, requested) = oneshot::channel();
        state.request = Some(request);
        // Those that have ended.
        while state.tasks.try_join_next().is_some() {}
        let environment = self.clone();
        let prepare = async move {
            let prepared = environment.prepare(command).await;
            // The task must not keep the environment, which owns it.
            drop(environment);
            match prepared {
                Ok(prepared) => prepared.keep(requested).await,
                Err(error) => {
                    tracing::debug!(%error, "the sandbox of the next command is not started ahead");
                }
            }
        };
        state.tasks.spawn_on(prepare, &runtime);
    }

    /// Sets up a sandbox for a command like this one, under the rules of a command that starts now.
    async fn prepare(&self, mut command: Command) -> Result<PreparedSandbox, EnvError> {
        self.failure.require_none()?;
        let found = self.find_protected().await?;
        let rules = self.rules.now().with_protected(&found);
        let bubblewrap = self.require_level().await?;
        let bubblewrap = bubblewrap.ok_or_else(|| self.unsupported("the sandbox level `full`"))?.path;
        let view = Arc::new(self.determine_view(&rules).await?);
        let variables = variables_of(self.inner.invocation(command.clone()));
        let gateway = match rules.gateway_of(&command) {
            Some(gateway) => Some((gateway.helper(), gateway.open().map_err(|error| not_connected(&error))?)),
            None => None,
        };
        if let Some((_, gateway)) = &gateway {
            command.env.extend(gateway.variables(listener::ADDRESS));
        }
        command.program = Program::Argv { program: "the sandbox".into(), arguments: Vec::new() };
        command.stdin = Stdin::Piped;
        let launch = {
            let (rules, view) = (Arc::clone(&rules), Arc::clone(&view));
            move |invocation: &Invocation| {
                view.mounts.refuse_writable(&bubblewrap)?;
                bubblewrap::spawn_waiting(&bubblewrap, &rules, &view.mounts, invocation)
            }
        };
        let started = self.inner.spawn_waiting(command, Launcher::With(Arc::new(launch))).await;
        self.remove_files_of_sockets().await?;
        let process = started?;
        let gateway = match gateway {
            Some((helper, gateway)) => {
                let first =
                    process.first_process().ok_or_else(|| not_connected(&io::ErrorKind::NotFound.into()))?;
                let listener =
                    blocking(move || helper.open(first)).await?.map_err(|error| not_connected(&error))?;
                gateway.serve(listener).map_err(|error| not_connected(&error))?;
                Some(gateway)
            }
            None => None,
        };
        // The mounts are on the files that were there in between.
        let now = self.determine_view(&rules).await?;
        self.remove_files_of_sockets().await?;
        let is_same = now == *view;
        let prepared = PreparedSandbox { process, variables, view: now, gateway };
        if is_same {
            return Ok(prepared);
        }
        prepared.end().await;
        Err(sandbox_failed(io::Error::other("files below its mounts are being replaced")))
    }

    /// Runs a command in the sandbox that was started ahead, if that has everything that a sandbox for the command would have
    /// now. Otherwise ends it.
    pub(super) async fn run_ahead(
        &self,
        command: &Command,
        rules: &Arc<Rules>,
    ) -> Result<Option<HeldProcess>, EnvError> {
        let Some(next) = self.next.as_ref().filter(|_| self.can_run_ahead(command)) else { return Ok(None) };
        self.failure.require_none()?;
        let invocation = self.inner.invocation(command.clone());
        // A command with a zero byte is refused without a start.
        let Some(text) = release_text(&invocation) else { return Ok(None) };
        let Some(prepared) = next.take().await else { return Ok(None) };
        let view = self.determine_view(rules).await;
        self.remove_files_of_sockets().await?;
        let is_same = view.is_ok_and(|now| now == prepared.view);
        let program = invocation.program.to_string_lossy().into_owned();
        if !is_same || variables_of(invocation) != prepared.variables {
            next.end(prepared);
            return Ok(None);
        }
        match self.release(prepared, &program, &text).await {
            Ok(process) => Ok(Some(process)),
            // It has ended before it got the command.
            Err(error) if is_launcher_error(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Starts a command with a gateway, which is open before the command runs. A sandbox that cannot be set up is tried again.
    pub(super) async fn launch_with_gateway(
        &self,
        command: &Command,
        rules: &Arc<Rules>,
    ) -> Result<Box<dyn Process>, EnvError> {
        let invocation = self.inner.invocation(command.clone());
        let Some(text) = release_text(&invocation) else { return self.launch(command, rules).await };
        let program = invocation.program.to_string_lossy().into_owned();
        let mut launches = 1;
        loop {
            let started = match self.prepare(command.clone()).await {
                Ok(prepared) => self.release(prepared, &program, &text).await,
                Err(error) => Err(error),
            };
            match started {
                Err(error) if launches < MAX_LAUNCHES && is_launcher_error(&error) => launches += 1,
                Err(error) => return Err(error),
                Ok(process) => return Ok(Box::new(self.followed(process, command))),
            }
        }
    }

    /// Executes the program in a sandbox that waits for it.
    async fn release(
        &self,
        prepared: PreparedSandbox,
        program: &str,
        text: &[u8],
    ) -> Result<HeldProcess, EnvError> {
        let PreparedSandbox { process, view, gateway, .. } = prepared;
        let process = process.release(program, text).await?;
        let replaced = Arc::clone(&self.replaced);
        let (held, lost) = blocking(move || view.held.after_start(&replaced)).await?;
        Ok(HeldProcess::new(process, held, Arc::clone(&self.replaced), lost).with_gateway(gateway))
    }

    async fn determine_view(&self, rules: &Arc<Rules>) -> Result<SandboxView, EnvError> {
        let (rules, placeholders) = (Arc::clone(rules), Arc::clone(&self.placeholders));
        blocking(move || SandboxView::determine(&rules, &placeholders)).await?
    }
}

/// Returns the error for a command whose gateway cannot be opened.
fn not_connected(error: &io::Error) -> EnvError {
    EnvError::Refused {
        operation: "starting a command with access to some hosts".to_owned(),
        reason: format!("the proxy cannot be reached from its sandbox: {error}"),
    }
}

/// Returns the variables of a process, without the tag, which each process has for itself.
fn variables_of(invocation: Invocation) -> BTreeMap<OsString, OsString> {
    let mut variables = invocation.variables;
    variables.remove(OsStr::new(TAG_VARIABLE));
    variables
}

/// Returns the text with which a waiting shell executes a program; `None` if a word has a zero byte. A shell that gets a part
/// of it executes nothing.
fn release_text(invocation: &Invocation) -> Option<Vec<u8>> {
    let mut text = b"{ set --".to_vec();
    for word in std::iter::once(&invocation.program).chain(&invocation.arguments) {
        text.extend_from_slice(b" '");
        for byte in word.as_bytes() {
            match byte {
                0 => return None,
                b'\'' => text.extend_from_slice(br"'\''"),
                byte => text.push(*byte),
            }
        }
        text.push(b'\'');
    }
    text.push(b'\n');
    text.extend_from_slice(RELEASE.as_bytes());
    text.extend_from_slice(b"}\n");
    Some(text)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn invocation(program: &str, arguments: &[&[u8]]) -> Invocation {
        Invocation {
            program: program.into(),
            arguments: arguments.iter().map(|argument| OsStr::from_bytes(argument).to_owned()).collect(),
            variables: BTreeMap::new(),
            directory: PathBuf::from("/"),
            stdin: Stdin::Null,
        }
    }

    /// Runs the shell of a waiting sandbox with this input. Returns its output and its report.
    #[expect(clippy::disallowed_methods, reason = "a real shell reads the text")]
    fn released(text: &[u8]) -> (Vec<u8>, String) {
        use std::io::Write as _;
        let report = tempfile::NamedTempFile::new().unwrap();
        let script = format!("exec 8>/dev/null 9>>\"$1\"; set -- 9 8; {}", bubblewrap::WAITING_SCRIPT);
        let mut shell = std::process::Command::new("/bin/sh")
            .args(["-c", &script, "pintle-sandbox"])
            .arg(report.path())
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        shell.stdin.take().unwrap().write_all(text).unwrap();
        let output = shell.wait_with_output().unwrap();
        (output.stdout, std::fs::read_to_string(report.path()).unwrap())
    }

    #[test]
    fn a_waiting_shell_passes_all_words_unchanged() {
        let bytes: Vec<u8> = (1..=255).collect();
        let long = b"it's $long\n".repeat(100_000 / 10);
        let words: [&[u8]; 6] = [b"%s|", b"", b"$(id) `id` \"'", b"-n\n", &bytes, &long];
        let text = release_text(&invocation("printf", &words)).unwrap();
        let expected: Vec<u8> =
            words.iter().skip(1).flat_map(|word| [*word, b"|".as_slice()].concat()).collect();
        let (printed, report) = released(&text);
        assert!(printed == expected, "{} bytes of {}", printed.len(), expected.len());
        assert_eq!(report, "w\ns\n");
        assert_eq!(release_text(&invocation("printf", &[b"a\0b"])), None);
    }

    #[test]
    fn a_waiting_shell_executes_no_part_of_a_command() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        let text = release_text(&invocation("touch", &[file.as_os_str().as_bytes()])).unwrap();
        for end in (0..text.len() - 2).step_by(7).chain([text.len() - 2]) {
            let (_, report) = released(&text[..end]);
            assert_eq!(report, "w\n", "{end} bytes");
        }
        assert!(!file.exists());
        assert_eq!(released(&text).1, "w\ns\n");
        assert!(file.exists());
        let text = release_text(&invocation("/no/such/program", &[])).unwrap();
        assert_eq!(released(&text).1, "w\ns\nf127\n");
    }
}
