//! Tool loop of complete and streamed generations (client specification, section 5.6).

use std::future::poll_fn;
use std::sync::Arc;

use tokio::time::Instant;

use super::limits::Limits;
use super::on_step::OnStep;
use super::options::GenerateOptions;
use super::result::{GenerateResult, StepResult};
use super::round::ToolRunner;
use super::stop::StopCondition;
use crate::client::Client;
use crate::content::ToolResult;
use crate::error::{Error, ErrorKind};
use crate::history::HistoryItem;
use crate::message::{Message, Origin};
use crate::request::Request;
use crate::response::{Finish, Response};
use crate::retry::{RetryPolicy, jitter, retry_until};
use crate::stream::{EventStream, StreamEvent};
use crate::tool::ToolChoice;
use crate::usage::Usage;

/// State of a running generation.
#[derive(Debug)]
pub(super) struct ToolLoop {
    client: Client,
    /// The next request, with the conversation so far.
    request: Request,
    /// Number of messages in the first request.
    initial_messages: usize,
    tools: ToolRunner,
    rounds_left: u32,
    stop_when: Option<StopCondition>,
    on_step: Option<OnStep>,
    retry: RetryPolicy,
    limits: Limits,
    steps: Vec<StepResult>,
    total_usage: Usage,
}

/// A response stream with its first content.
pub(super) struct OpenedStream {
    /// Events already read.
    pub(super) first: Vec<StreamEvent>,
    pub(super) rest: EventStream,
    pub(super) deadline: Option<Instant>,
}

impl ToolLoop {
    /// # Errors
    ///
    /// [`ErrorKind::Configuration`] for contradictory options.
    pub(super) fn new(mut options: GenerateOptions) -> Result<Self, Error> {
        let tools = ToolRunner::new(std::mem::take(&mut options.tools), options.repair_tool_call.take())?;
        let mut request = options.take_request()?;
        check_choice(request.tool_choice.as_ref(), &tools)?;
        request.tools = tools.definitions();
        let client = options.take_client()?;
        client.adapter(request.provider.as_deref())?;
        Ok(Self {
            client,
            initial_messages: request.messages.len(),
            request,
            tools,
            rounds_left: options.max_tool_rounds,
            stop_when: options.stop_when,
            on_step: options.on_step,
            retry: options.retry,
            limits: Limits::start(options.timeout, options.abort_signal),
            steps: Vec::new(),
            total_usage: Usage::default(),
        })
    }

    /// Provider and model of the responses.
    pub(super) fn origin(&self) -> Origin {
        let provider = self.request.provider.as_deref().or(self.client.default_provider());
        Origin::new(provider.unwrap_or_default(), self.request.model.clone())
    }

    /// Makes a model call, with retries.
    pub(super) async fn complete(&self) -> Result<Response, Error> {
        let attempt = || {
            let call = self.client.complete(self.request.clone());
            self.limits.within_step(self.limits.step_deadline(), call)
        };
        self.limits.within_total(retry_until(self.limits.deadline(), &self.retry, jitter, attempt)).await
    }

    /// Starts a streamed model call, with retries until its first content.
    pub(super) async fn open(&self) -> Result<OpenedStream, Error> {
        let attempt = || async {
            let deadline = self.limits.step_deadline();
            let (first, rest) = self.limits.within_step(deadline, self.first_events()).await?;
            Ok(OpenedStream { first, rest, deadline })
        };
        self.limits.within_total(retry_until(self.limits.deadline(), &self.retry, jitter, attempt)).await
    }

    /// Returns the next event of a response; an error if the stream ends.
    pub(super) async fn next(&self, opened: &mut OpenedStream) -> Result<StreamEvent, Error> {
        self.limits.within_total(self.limits.within_step(opened.deadline, next_event(&mut opened.rest))).await
    }

    /// Records a response and runs its tool calls. Returns `true` if the loop continues with their results.
    ///
    /// # Errors
    ///
    /// Abort or time-out while tools run. The step is recorded nevertheless.
    pub(super) async fn finish_step(&mut self, response: Response) -> Result<bool, Error> {
        let response = Arc::new(response);
        self.total_usage += &response.usage;
        self.request.messages.push(response.message.clone().into());
        let calls = response.tool_calls().count();
        let runs = calls > 0
            && response.finish_reason.reason == Finish::ToolCalls
            && self.rounds_left > 0
            && self.tools.has_active();
        let mut results = Vec::new();
        let round = if runs {
            let messages: Arc<[HistoryItem]> = self.request.messages.as_slice().into();
            let abort = self.limits.abort_signal();
            let running = self.tools.run(response.tool_calls(), messages, abort, &mut results);
            let round = async {
                running.await;
                Ok(())
            };
            self.limits.within_total(round).await
        } else {
            Ok(())
        };
        let results: Vec<ToolResult> = results.into_iter().flatten().collect();
        let complete = runs && results.len() == calls;
        if complete {
            self.rounds_left -= 1;
            self.request.messages.push(Message::tool_results(results.clone()).into());
        }
        let step = StepResult::new(response, results);
        if let Some(callback) = &self.on_step {
            callback.call(&step);
        }
        self.steps.push(step);
        round?;
        let stop = || self.stop_when.as_ref().is_some_and(|condition| condition.holds(&self.steps));
        Ok(complete && !stop())
    }

    /// The latest step.
    pub(super) fn last_step(&self) -> Option<&StepResult> {
        self.steps.last()
    }

    /// Returns the result after [`ToolLoop::finish_step`] returned `false`.
    pub(super) fn into_result(mut self) -> Result<GenerateResult, Error> {
        let Some(last) = self.steps.last().cloned() else {
            return Err(Error::new(ErrorKind::Stream, "the generation ended without a response"));
        };
        Ok(GenerateResult {
            response: last.response,
            tool_results: last.tool_results,
            steps: self.steps,
            total_usage: self.total_usage,
            messages: self.request.messages.split_off(self.initial_messages),
            output: (),
        })
    }

    /// Connects and reads up to the first content. The start of the response or of a text is no content: a provider may
    /// respond with 200 and then report that it is overloaded, which is retried.
    async fn first_events(&self) -> Result<(Vec<StreamEvent>, EventStream), Error> {
        let mut stream = self.client.stream(self.request.clone()).await?;
        let mut first = Vec::new();
        loop {
            let event = next_event(&mut stream).await?;
            let is_start = matches!(event, StreamEvent::StreamStart { .. } | StreamEvent::TextStart { .. });
            first.push(event);
            if !is_start {
                return Ok((first, stream));
            }
        }
    }
}

async fn next_event(stream: &mut EventStream) -> Result<StreamEvent, Error> {
    let item = poll_fn(|cx| stream.as_mut().poll_next(cx)).await;
    item.unwrap_or_else(|| {
        Err(Error::new(ErrorKind::Stream, "the stream ended before the response was complete"))
    })
}

/// Refuses a tool choice that no response can satisfy.
fn check_choice(choice: Option<&ToolChoice>, tools: &ToolRunner) -> Result<(), Error> {
    let problem = match choice {
        Some(ToolChoice::Named(name)) if !tools.contains(name) => {
            format!("the tool choice names `{name}`, which is not among the tools")
        }
        Some(ToolChoice::Required) if tools.definitions().is_empty() => {
            "the tool choice requires a call, but there are no tools".to_owned()
        }
        Some(ToolChoice::Named(_) | ToolChoice::Required | ToolChoice::Auto | ToolChoice::None) | None => {
            return Ok(());
        }
    };
    Err(Error::new(ErrorKind::Configuration, problem))
}
