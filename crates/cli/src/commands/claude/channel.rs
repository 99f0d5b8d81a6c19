//! The lines of the host: requests and their answers, in both directions.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pintle_compat::Line;
use pintle_compat::claude::{
    ControlChannel, ControlError, ControlEvent, ControlLimits, ControlStep, HookAnswer, IncomingLine,
    InputLines, LineError, MAX_LINE, PermissionAnswer, PermissionRequest, SentRequest,
};
use pintle_tui::console::{self, Console};
use serde_json::Value;
use tokio::io::AsyncReadExt as _;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

/// Size of one read, in bytes.
const READ: usize = 64 << 10;

/// Bytes that may wait for the host to read them. Above it, events of the session and lines of the host wait.
const UNWRITTEN: usize = 8 << 20;

/// Reason why a request of ours has no answer.
const GONE: &str = "the host closed the connection";

/// Open requests and the queue of lines to the host.
#[derive(Debug)]
pub(super) struct HostChannel {
    control: Mutex<ControlChannel>,
    waiting: Mutex<BTreeMap<String, oneshot::Sender<ControlEvent>>>,
    /// `None` after the last line. Bounded by [`HostChannel::wait_for_room`].
    lines: Mutex<Option<UnboundedSender<String>>>,
    /// Bytes that wait for the host to read them.
    unwritten: watch::Sender<usize>,
    /// Cancelled when the host stops reading.
    unread: CancellationToken,
}

impl HostChannel {
    pub(super) fn new(lines: UnboundedSender<String>) -> Self {
        Self {
            control: Mutex::new(ControlChannel::new(ControlLimits::default())),
            waiting: Mutex::default(),
            lines: Mutex::new(Some(lines)),
            unwritten: watch::Sender::new(0),
            unread: CancellationToken::new(),
        }
    }

    /// Sends a line, without a [wait for room](Self::wait_for_room).
    pub(super) fn print(&self, line: &Line) {
        if let Some(lines) = lock(&self.lines).as_ref() {
            let line = format!("{line}\n");
            self.unwritten.send_modify(|bytes| *bytes += line.len());
            // Without a writer, nothing is read.
            let _ = lines.send(line);
        }
    }

    /// Completes when the host has read enough of the sent lines.
    pub(super) async fn wait_for_room(&self) {
        // The channel holds the sender.
        let _ = self.unwritten.subscribe().wait_for(|bytes| *bytes < UNWRITTEN).await;
    }

    /// Ends the output after the lines that were sent.
    pub(super) fn end_output(&self) {
        lock(&self.lines).take();
    }

    /// Completes when the host stops reading.
    pub(super) async fn wait_for_close(&self) {
        self.unread.cancelled().await;
    }

    /// Answers a request of the host.
    pub(super) fn answer(&self, id: &str, answer: Result<Value, String>) {
        // A request that was cancelled needs no answer.
        if let Ok(line) = lock(&self.control).answer(id, answer) {
            self.print(&line);
        }
    }

    /// Asks whether a call may run; `None` if the host is gone.
    pub(super) async fn permission(&self, request: &PermissionRequest) -> Option<PermissionAnswer> {
        match self.ask(|control| control.ask_permission(request)).await {
            Some(ControlEvent::Permission { answer, .. }) => Some(answer),
            _ => None,
        }
    }

    /// Runs a hook of the host.
    pub(super) async fn hook(
        &self,
        callback: &str,
        input: &Value,
        call: Option<&str>,
    ) -> Result<HookAnswer, String> {
        match self.ask(|control| control.run_hook(callback, input, call)).await {
            Some(ControlEvent::Hook { answer, .. }) => answer,
            _ => Err(GONE.to_owned()),
        }
    }

    /// Sends a message to a server in the host and returns the response.
    pub(super) async fn mcp(&self, server: &str, message: &Value) -> Result<Value, String> {
        match self.ask(|control| control.send_mcp(server, message)).await {
            Some(ControlEvent::Mcp { answer, .. }) => answer,
            _ => Err(GONE.to_owned()),
        }
    }

    async fn ask(
        &self,
        send: impl FnOnce(&mut ControlChannel) -> Result<SentRequest, ControlError>,
    ) -> Option<ControlEvent> {
        let (sender, answer) = oneshot::channel();
        let id = {
            let mut control = lock(&self.control);
            let sent = match send(&mut control) {
                Ok(sent) => sent,
                Err(error) => {
                    console::notice(&format!("cannot send a request to the host: {error}"));
                    return None;
                }
            };
            lock(&self.waiting).insert(sent.id.clone(), sender);
            self.print(&sent.line);
            sent.id
        };
        let _withdraw = WithdrawOnDrop { channel: self, id };
        answer.await.ok()
    }

    /// Handles a line. Answers wake the waiting request; all other events are returned.
    fn take(&self, line: Result<String, LineError>) -> Result<Option<ControlEvent>, String> {
        let incoming = line.and_then(|line| IncomingLine::parse(&line)).map_err(|error| error.to_string())?;
        let ControlStep { lines, event } =
            lock(&self.control).receive(incoming).map_err(|error| error.to_string())?;
        lines.iter().for_each(|line| self.print(line));
        let id = match &event {
            Some(
                ControlEvent::Permission { id, .. }
                | ControlEvent::Hook { id, .. }
                | ControlEvent::Mcp { id, .. },
            ) => id.clone(),
            _ => return Ok(event),
        };
        if let (Some(waiting), Some(event)) = (lock(&self.waiting).remove(&id), event) {
            // A stopped turn waits no longer.
            let _ = waiting.send(event);
        }
        Ok(None)
    }

    /// Ends everything that waits for the host.
    fn close(&self) {
        lock(&self.control).close();
        lock(&self.waiting).clear();
    }
}

/// Withdraws a request when the session drops it.
struct WithdrawOnDrop<'a> {
    channel: &'a HostChannel,
    id: String,
}

impl Drop for WithdrawOnDrop<'_> {
    fn drop(&mut self) {
        lock(&self.channel.waiting).remove(&self.id);
        if let Some(line) = lock(&self.channel.control).withdraw(&self.id) {
            self.channel.print(&line);
        }
    }
}

/// Reads lines until the input ends. A bad line is reported and skipped.
pub(super) async fn read(channel: Arc<HostChannel>, events: UnboundedSender<ControlEvent>) {
    let mut input = tokio::io::stdin();
    let mut lines = InputLines::new(MAX_LINE);
    let mut buffer = vec![0; READ];
    while let Ok(count @ 1..) = input.read(&mut buffer).await {
        channel.wait_for_room().await;
        for line in lines.feed(buffer.get(..count).unwrap_or_default()) {
            match channel.take(line) {
                // Without a receiver, the conversation has ended.
                Ok(Some(event)) => drop(events.send(event)),
                Ok(None) => {}
                Err(error) => console::notice(&format!("a line of the input is skipped: {error}")),
            }
        }
    }
    if let Some(error) = lines.finish() {
        console::notice(&format!("the last line of the input is skipped: {error}"));
    }
    channel.close();
}

/// Writes lines until the last one, or until the host stops reading.
pub(super) async fn write(channel: Arc<HostChannel>, mut lines: UnboundedReceiver<String>) {
    let mut console = Console::new();
    while let Some(line) = lines.recv().await {
        if console.write(&line).await.is_err() {
            channel.unread.cancel();
            return;
        }
        channel.unwritten.send_modify(|bytes| *bytes -= line.len());
    }
}

/// Locks a mutex, whose value is valid after a panic as well.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use serde_json::json;
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;

    #[test]
    fn lines_that_the_host_does_not_read_are_bounded() {
        let (sender, mut unwritten) = unbounded_channel();
        let channel = HostChannel::new(sender);
        let text = "x".repeat(UNWRITTEN / 8);
        let mut sent = 0;
        while channel.wait_for_room().now_or_never().is_some() {
            let request = json!({"type": "control_request", "request_id": sent.to_string(), "request": {"subtype": "interrupt"}});
            channel.take(Ok(request.to_string())).unwrap();
            channel.answer(&sent.to_string(), Ok(json!({"text": text})));
            sent += 1;
            assert!(sent <= 8, "there is room for more than {UNWRITTEN} bytes");
        }
        let mut waiting = 0;
        while let Ok(line) = unwritten.try_recv() {
            waiting += line.len();
        }
        assert_eq!(*channel.unwritten.borrow(), waiting);
    }
}
