//! Messages over the standard streams of a process of the execution environment.
//!
//! The environment owns the process. Its descendants end with it, even behind a wrapper such as `npx`, and even when this
//! process is killed.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use pintle_env::{
    Command, EnvError, ExecutionEnvironment, ExitStatus, LineSplitter, OutputStream, Process, ProcessOutput,
    Stdin, TERMINATE_GRACE,
};
use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Mutex;

use crate::message::{self, MAX_MESSAGE};
use crate::process_log::ProcessLog;
use crate::spec::StdioServer;

/// Time for a process to exit after its input is closed, before it is terminated.
const EXIT_GRACE: Duration = Duration::from_secs(2);

/// Time for a process to exit after the end of its output, so that its status can be reported.
const STATUS_WAIT: Duration = Duration::from_millis(500);

type ProcessInput = Arc<Mutex<Option<Box<dyn AsyncWrite + Send + Unpin>>>>;

/// Server process with its streams.
pub(crate) struct StdioTransport {
    process: Box<dyn Process>,
    output: Box<dyn ProcessOutput>,
    input: ProcessInput,
    lines: LineSplitter,
    process_log: ProcessLog,
}

impl StdioTransport {
    /// Starts the process of a server.
    ///
    /// # Errors
    ///
    /// Errors of [`ExecutionEnvironment::spawn`].
    pub(crate) async fn start(
        server: &StdioServer,
        env: &dyn ExecutionEnvironment,
        process_log: ProcessLog,
    ) -> Result<Self, EnvError> {
        let mut command = Command::argv(&server.program, &server.arguments).with_stdin(Stdin::Piped);
        command.env.clone_from(&server.env);
        command.working_dir.clone_from(&server.working_dir);
        let mut process = match env.outside_sandbox().filter(|_| server.outside_sandbox) {
            Some(outside) => outside.spawn(command).await?,
            None => env.spawn(command).await?,
        };
        // A new process has both.
        let gone =
            || EnvError::EnvironmentLost { environment: "a process without streams".into(), source: None };
        let input = process.take_stdin().ok_or_else(gone)?;
        let output = process.take_output().ok_or_else(gone)?;
        Ok(Self {
            process,
            output,
            input: Arc::new(Mutex::new(Some(input))),
            lines: LineSplitter::new(MAX_MESSAGE),
            process_log,
        })
    }

    /// Records how the process ended, if its status is available soon.
    async fn note_end(&mut self) {
        match tokio::time::timeout(STATUS_WAIT, self.process.wait()).await {
            Ok(Ok(ExitStatus::Exited(code))) => self.process_log.end(format!("it exited with code {code}")),
            Ok(Ok(ExitStatus::Signaled(signal))) => {
                self.process_log.end(format!("it was killed by signal {signal}"))
            }
            Ok(Err(error)) => self.process_log.end(error.to_string()),
            Err(_elapsed) => self.process_log.end("it closed its standard output"),
        }
    }
}

impl Transport<RoleClient> for StdioTransport {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let input = Arc::clone(&self.input);
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let mut input = input.lock().await;
            // A truncated message would corrupt the next one.
            let mut writer = input.take().ok_or_else(|| io::Error::from(io::ErrorKind::BrokenPipe))?;
            writer.write_all(&line).await?;
            writer.flush().await?;
            *input = Some(writer);
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            match self.lines.next_line() {
                Some(Ok(line)) if line.trim_ascii().is_empty() => {}
                Some(Ok(line)) => match message::parse(&line) {
                    Ok(message) => return Some(message),
                    Err(_) => self.process_log.unexpected(&line),
                },
                None if !self.lines.is_above_limit() => match self.output.next_chunk().await {
                    Ok(Some(chunk)) if chunk.stream == OutputStream::Stdout => self.lines.push(&chunk.bytes),
                    Ok(Some(chunk)) => self.process_log.stderr(&chunk.bytes),
                    Ok(None) => {
                        self.note_end().await;
                        return None;
                    }
                    Err(error) => {
                        self.process_log.end(error.to_string());
                        return None;
                    }
                },
                Some(Err(_)) | None => {
                    self.process_log.end(format!("it sent a message above {} MiB", MAX_MESSAGE >> 20));
                    return None;
                }
            }
        }
    }

    /// Closes the input, which asks the server to exit, and terminates a server that does not.
    async fn close(&mut self) -> Result<(), io::Error> {
        self.process_log.end("it was ended");
        // A pending message to a server that does not read fails once the process is gone.
        if let Ok(mut input) = self.input.try_lock() {
            input.take();
        }
        let Self { process, output, .. } = self;
        // Remaining output must not keep it from exiting.
        let drained = async { while let Ok(Some(_)) = output.next_chunk().await {} };
        let ended = async {
            let exited = tokio::time::timeout(EXIT_GRACE, process.wait()).await;
            let grace = if exited.is_ok() { Duration::ZERO } else { TERMINATE_GRACE };
            process.terminate(grace).await
        };
        tokio::pin!(drained, ended);
        let terminated = tokio::select! {
            result = &mut ended => result,
            () = &mut drained => ended.await,
        };
        terminated.map(|_jobs| ()).map_err(io::Error::other)
    }
}
