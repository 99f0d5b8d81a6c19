//! The tool loop that whole and streamed generations share (client specification, section 5.6).

use std::future::poll_fn;
use std::sync::Arc;

use tokio::time::Instant;

use super::limits::Limits;
use super::on_step::OnStep;
use super::options::GenerateOptions;
use super::result::{GenerateResult, StepResult};
use super::round::Toolbox;
use super::stop::StopCondition;
use crate::client::Client;
use crate::content::ToolResult;
use crate::error::{Error, ErrorKind};
use crate::history::HistoryItem;
use crate::message::{Message, Origin};
use crate::request::Request;
use crate::response::{Finish, Response};
use crate::retry::{RetryPolicy, retry_until, spread};
use crate::stream::{EventStream, StreamEvent};
use crate::tool::ToolChoice;
use crate::usage::Usage;

/// One generation at work: calls the model, makes its calls, and knows when it is over.
#[derive(Debug)]
pub(super) struct ToolLoop {
    client: Client,
    /// The next request; its conversation grows.
    request: Request,
    /// How much of the conversation was there at the beginning.
    given: usize,
    toolbox: Toolbox,
    rounds_left: u32,
    stop_when: Option<StopCondition>,
    on_step: Option<OnStep>,
    retry: RetryPolicy,
    limits: Limits,
    steps: Vec<StepResult>,
    total_usage: Usage,
}

/// An answer that has begun to come.
pub(super) struct Opened {
    /// What has been read of it already.
    pub(super) first: Vec<StreamEvent>,
    pub(super) rest: EventStream,
    /// When all of it must be there.
    pub(super) end: Option<Instant>,
}

impl ToolLoop {
    /// # Errors
    ///
    /// [`ErrorKind::Configuration`] for options that contradict themselves.
    pub(super) fn new(mut options: GenerateOptions) -> Result<Self, Error> {
        let toolbox = Toolbox::new(std::mem::take(&mut options.tools), options.repair_tool_call.take())?;
        let mut request = options.take_request()?;
        check_choice(request.tool_choice.as_ref(), &toolbox)?;
        request.tools = toolbox.definitions();
        let client = options.take_client()?;
        client.adapter(request.provider.as_deref())?;
        Ok(Self {
            client,
            given: request.messages.len(),
            request,
            toolbox,
            rounds_left: options.max_tool_rounds,
            stop_when: options.stop_when,
            on_step: options.on_step,
            retry: options.retry,
            limits: Limits::start(options.timeout, options.abort_signal),
            steps: Vec::new(),
            total_usage: Usage::default(),
        })
    }

    /// Who is asked.
    pub(super) fn origin(&self) -> Origin {
        let provider = self.request.provider.as_deref().or(self.client.default_provider());
        Origin::new(provider.unwrap_or_default(), self.request.model.clone())
    }

    /// One model call, tried again as the policy says.
    pub(super) async fn complete(&self) -> Result<Response, Error> {
        let attempt = || self.limits.step(self.limits.step_end(), self.client.complete(self.request.clone()));
        self.limits.whole(retry_until(self.limits.end(), &self.retry, spread, attempt)).await
    }

    /// One streamed model call, tried again as the policy says until it has something to show.
    pub(super) async fn open(&self) -> Result<Opened, Error> {
        let attempt = || async {
            let end = self.limits.step_end();
            let (first, rest) = self.limits.step(end, self.first_events()).await?;
            Ok(Opened { first, rest, end })
        };
        self.limits.whole(retry_until(self.limits.end(), &self.retry, spread, attempt)).await
    }

    /// The next event of an answer, which must not end without one.
    pub(super) async fn next(&self, opened: &mut Opened) -> Result<StreamEvent, Error> {
        self.limits.whole(self.limits.step(opened.end, next_of(&mut opened.rest))).await
    }

    /// Takes an answer and makes its calls. `true` if the model is to be asked again, with their results.
    ///
    /// # Errors
    ///
    /// The abort signal's or the time limit's, if they end the calls. The step is kept all the same.
    pub(super) async fn finish_step(&mut self, response: Response) -> Result<bool, Error> {
        let response = Arc::new(response);
        self.total_usage += &response.usage;
        self.request.messages.push(response.message.clone().into());
        let calls = response.tool_calls().count();
        let runs = calls > 0
            && response.finish_reason.reason == Finish::ToolCalls
            && self.rounds_left > 0
            && self.toolbox.has_active();
        let mut results = Vec::new();
        let round = if runs {
            let messages: Arc<[HistoryItem]> = self.request.messages.as_slice().into();
            let abort = self.limits.abort_signal();
            let answers = self.toolbox.answer(response.tool_calls(), messages, abort, &mut results);
            let round = async {
                answers.await;
                Ok(())
            };
            self.limits.whole(round).await
        } else {
            Ok(())
        };
        let results: Vec<ToolResult> = results.into_iter().flatten().collect();
        let answered = runs && results.len() == calls;
        if answered {
            self.rounds_left -= 1;
            self.request.messages.push(Message::tool_results(results.clone()).into());
        }
        let step = StepResult::new(response, results);
        if let Some(listener) = &self.on_step {
            listener.tell(&step);
        }
        self.steps.push(step);
        round?;
        let enough = || self.stop_when.as_ref().is_some_and(|condition| condition.holds(&self.steps));
        Ok(answered && !enough())
    }

    /// The step that was finished last.
    pub(super) fn last_step(&self) -> Option<&StepResult> {
        self.steps.last()
    }

    /// What it came to, once [`ToolLoop::finish_step`] has said that it is over.
    pub(super) fn into_result(mut self) -> Result<GenerateResult, Error> {
        let Some(last) = self.steps.last().cloned() else {
            return Err(Error::new(ErrorKind::Stream, "the generation ended without an answer"));
        };
        Ok(GenerateResult {
            response: last.response,
            tool_results: last.tool_results,
            steps: self.steps,
            total_usage: self.total_usage,
            messages: self.request.messages.split_off(self.given),
            output: (),
        })
    }

    /// Connects and reads until there is something to show. That an answer or its text begins is not: a provider that
    /// begins with 200 and then says that it is overloaded is asked again.
    async fn first_events(&self) -> Result<(Vec<StreamEvent>, EventStream), Error> {
        let mut stream = self.client.stream(self.request.clone()).await?;
        let mut first = Vec::new();
        loop {
            let event = next_of(&mut stream).await?;
            let bare = matches!(event, StreamEvent::StreamStart { .. } | StreamEvent::TextStart { .. });
            first.push(event);
            if !bare {
                return Ok((first, stream));
            }
        }
    }
}

async fn next_of(stream: &mut EventStream) -> Result<StreamEvent, Error> {
    let item = poll_fn(|cx| stream.as_mut().poll_next(cx)).await;
    item.unwrap_or_else(|| {
        Err(Error::new(ErrorKind::Stream, "the stream ended before its answer was complete"))
    })
}

/// A choice that no answer could follow is refused before anything is sent.
fn check_choice(choice: Option<&ToolChoice>, toolbox: &Toolbox) -> Result<(), Error> {
    let problem = match choice {
        Some(ToolChoice::Named(name)) if !toolbox.contains(name) => {
            format!("the tool choice names `{name}`, which is none of the tools")
        }
        Some(ToolChoice::Required) if toolbox.definitions().is_empty() => {
            "the tool choice wants a call, but there are no tools".to_owned()
        }
        Some(ToolChoice::Named(_) | ToolChoice::Required | ToolChoice::Auto | ToolChoice::None) | None => {
            return Ok(());
        }
    };
    Err(Error::new(ErrorKind::Configuration, problem))
}
