//! Options of a generation (client specification, section 4.3).

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::limits::TimeoutConfig;
use super::on_step::OnStep;
use super::result::StepResult;
use super::stop::StopCondition;
use super::tool::{ClientTool, RepairToolCall};
use crate::client::{Client, default_client};
use crate::error::{Error, ErrorKind};
use crate::history::HistoryItem;
use crate::message::Message;
use crate::request::{AdapterTimeout, MessageList, ReasoningEffort, Request, ResponseFormat};
use crate::retry::RetryPolicy;
use crate::tool::{ToolChoice, ToolItem};

/// Input of [`generate`](crate::generate), [`stream`](crate::stream), [`generate_object`](crate::generate_object) and
/// [`stream_object`](crate::stream_object).
///
/// Exactly one of prompt and messages is required. A [`Request`] converts into options with passive tools, and
/// [`into_request`](Self::into_request) converts back.
///
/// ```
/// use std::time::Duration;
///
/// use pintle_llm::GenerateOptions;
///
/// let options = GenerateOptions::new("claude-opus-4-6")
///     .with_system("You are brief.")
///     .with_prompt("Explain quantum computing.")
///     .with_max_tokens(500)
///     .with_timeout(Duration::from_secs(60));
/// assert_eq!((options.max_tool_rounds, options.retry.max_retries), (1, 2));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct GenerateOptions {
    /// The provider's name for the model.
    pub model: String,
    /// Text of a single user message.
    pub prompt: Option<String>,
    /// Conversation.
    pub messages: Option<MessageList>,
    /// System message before the conversation.
    pub system: Option<String>,
    /// Tools that the model may call.
    pub tools: Vec<ClientTool>,
    /// Tool choice of every step; `None` means `auto` if there are tools.
    pub tool_choice: Option<ToolChoice>,
    /// Limit on the rounds of tool calls whose results are sent back. Default 1; 0 returns all calls to the caller. There
    /// is at most one model call more than rounds.
    pub max_tool_rounds: u32,
    /// Condition that ends the tool loop early.
    pub stop_when: Option<StopCondition>,
    /// Called after each step, including the steps of a generation that fails later. Default: none.
    pub on_step: Option<OnStep>,
    /// Called to repair arguments that do not match the tool's schema.
    pub repair_tool_call: Option<RepairToolCall>,
    /// Response format; set by the object functions.
    pub response_format: Option<ResponseFormat>,
    /// Sampling temperature, from 0 to 1 or 2 by provider; the provider's default if `None`.
    pub temperature: Option<f64>,
    /// Nucleus sampling: share of the probability mass to sample from, 0 to 1; the provider's default if `None`.
    pub top_p: Option<f64>,
    /// Limit on the output tokens of each step.
    pub max_tokens: Option<u64>,
    /// Texts that end the response.
    pub stop_sequences: Vec<String>,
    /// Reasoning effort.
    pub reasoning_effort: Option<ReasoningEffort>,
    /// Provider to route to; the client's default if `None`.
    pub provider: Option<String>,
    /// Parameters of individual providers, keyed by the provider's name.
    pub provider_options: Map<String, Value>,
    /// Pairs for the provider's records.
    pub metadata: BTreeMap<String, String>,
    /// Retry policy of each model call. Default: two retries of transient failures.
    pub retry: RetryPolicy,
    /// Time limits of the generation and of each model call. Default: the adapter's limits only.
    pub timeout: TimeoutConfig,
    /// Replaces the adapter's time limits.
    pub adapter_timeout: Option<AdapterTimeout>,
    /// Cancels the generation with an error of kind [`Abort`](ErrorKind::Abort). Default: a token that is never
    /// cancelled.
    pub abort_signal: CancellationToken,
    /// Client; the process-wide default if `None`.
    pub client: Option<Client>,
}

impl GenerateOptions {
    /// Creates options for this model, without a prompt.
    #[must_use]
    pub fn new(model: impl Into<String>) -> Self {
        Self {
            model: model.into(),
            prompt: None,
            messages: None,
            system: None,
            tools: Vec::new(),
            tool_choice: None,
            max_tool_rounds: 1,
            stop_when: None,
            on_step: None,
            repair_tool_call: None,
            response_format: None,
            temperature: None,
            top_p: None,
            max_tokens: None,
            stop_sequences: Vec::new(),
            reasoning_effort: None,
            provider: None,
            provider_options: Map::new(),
            metadata: BTreeMap::new(),
            retry: RetryPolicy::default(),
            timeout: TimeoutConfig::default(),
            adapter_timeout: None,
            abort_signal: CancellationToken::new(),
            client: None,
        }
    }

    /// Sets the text of a single user message.
    #[must_use]
    pub fn with_prompt(mut self, prompt: impl Into<String>) -> Self {
        self.prompt = Some(prompt.into());
        self
    }

    /// Sets the conversation.
    #[must_use]
    pub fn with_messages<M: Into<HistoryItem>>(mut self, messages: impl IntoIterator<Item = M>) -> Self {
        self.messages = Some(messages.into_iter().map(Into::into).collect());
        self
    }

    /// Sets the system message before the conversation.
    #[must_use]
    pub fn with_system(mut self, system: impl Into<String>) -> Self {
        self.system = Some(system.into());
        self
    }

    /// Adds a tool.
    #[must_use]
    pub fn with_tool(mut self, tool: ClientTool) -> Self {
        self.tools.push(tool);
        self
    }

    /// Adds tools.
    #[must_use]
    pub fn with_tools(mut self, tools: impl IntoIterator<Item = ClientTool>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Sets the tool choice.
    #[must_use]
    pub fn with_tool_choice(mut self, choice: ToolChoice) -> Self {
        self.tool_choice = Some(choice);
        self
    }

    /// Sets the limit on tool rounds.
    #[must_use]
    pub fn with_max_tool_rounds(mut self, rounds: u32) -> Self {
        self.max_tool_rounds = rounds;
        self
    }

    /// Sets a condition that ends the tool loop.
    #[must_use]
    pub fn with_stop_when(mut self, condition: StopCondition) -> Self {
        self.stop_when = Some(condition);
        self
    }

    /// Sets a callback after each step.
    #[must_use]
    pub fn with_on_step(mut self, callback: impl Fn(&StepResult) + Send + Sync + 'static) -> Self {
        self.on_step = Some(OnStep::new(callback));
        self
    }

    /// Sets a hook that repairs invalid arguments, called at most once per tool call.
    #[must_use]
    pub fn with_repair_tool_call(mut self, repair: RepairToolCall) -> Self {
        self.repair_tool_call = Some(repair);
        self
    }

    /// Sets the response format.
    #[must_use]
    pub fn with_response_format(mut self, format: ResponseFormat) -> Self {
        self.response_format = Some(format);
        self
    }

    /// Sets the sampling temperature, from 0 to 1 or 2 by provider.
    #[must_use]
    pub fn with_temperature(mut self, temperature: f64) -> Self {
        self.temperature = Some(temperature);
        self
    }

    /// Sets nucleus sampling: the share of the probability mass to sample from, 0 to 1.
    #[must_use]
    pub fn with_top_p(mut self, top_p: f64) -> Self {
        self.top_p = Some(top_p);
        self
    }

    /// Limits the output tokens of each step.
    #[must_use]
    pub fn with_max_tokens(mut self, max_tokens: u64) -> Self {
        self.max_tokens = Some(max_tokens);
        self
    }

    /// Adds a text that ends the response.
    #[must_use]
    pub fn with_stop_sequence(mut self, text: impl Into<String>) -> Self {
        self.stop_sequences.push(text.into());
        self
    }

    /// Sets the reasoning effort.
    #[must_use]
    pub fn with_reasoning_effort(mut self, effort: ReasoningEffort) -> Self {
        self.reasoning_effort = Some(effort);
        self
    }

    /// Sets the provider to route to.
    #[must_use]
    pub fn with_provider(mut self, provider: impl Into<String>) -> Self {
        self.provider = Some(provider.into());
        self
    }

    /// Sets the parameters of one provider.
    #[must_use]
    pub fn with_provider_options(mut self, provider: impl Into<String>, options: Value) -> Self {
        self.provider_options.insert(provider.into(), options);
        self
    }

    /// Adds a pair for the provider's records.
    #[must_use]
    pub fn with_metadata(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.metadata.insert(name.into(), value.into());
        self
    }

    /// Sets the number of retries of each model call; 0 disables retries.
    #[must_use]
    pub fn with_max_retries(mut self, max_retries: u32) -> Self {
        self.retry.max_retries = max_retries;
        self
    }

    /// Sets the retry policy.
    #[must_use]
    pub fn with_retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = policy;
        self
    }

    /// Sets the time limits; a plain duration limits the whole generation.
    #[must_use]
    pub fn with_timeout(mut self, timeout: impl Into<TimeoutConfig>) -> Self {
        self.timeout = timeout.into();
        self
    }

    /// Replaces the adapter's time limits.
    #[must_use]
    pub fn with_adapter_timeout(mut self, timeout: AdapterTimeout) -> Self {
        self.adapter_timeout = Some(timeout);
        self
    }

    /// Sets a token that cancels the generation.
    #[must_use]
    pub fn with_abort_signal(mut self, signal: CancellationToken) -> Self {
        self.abort_signal = signal;
        self
    }

    /// Sets the client.
    #[must_use]
    pub fn with_client(mut self, client: Client) -> Self {
        self.client = Some(client);
        self
    }

    /// Converts to a request for [`Client::complete`] or [`Client::stream`]: the first one that
    /// [`generate`](crate::generate) would send. Handlers of tools, callbacks, limits of the loop, retries, `timeout`, the
    /// abort signal and the client are dropped, since a request has none.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Configuration`] unless exactly one of prompt and messages is given and not empty.
    pub fn into_request(mut self) -> Result<Request, Error> {
        let tools = std::mem::take(&mut self.tools);
        let mut request = self.take_request()?;
        request.tools = tools.into_iter().map(|tool| tool.definition).collect();
        Ok(request)
    }

    pub(super) fn take_client(&mut self) -> Result<Client, Error> {
        self.client.take().or_else(default_client).ok_or_else(|| {
            Error::new(
                ErrorKind::Configuration,
                "no client; set one in the options or with `set_default_client`, \
                 or call the function of the same name in `pintle-providers`",
            )
        })
    }

    /// The first request, without its tools.
    pub(super) fn take_request(&mut self) -> Result<Request, Error> {
        let mut messages = self.take_conversation()?;
        if let Some(system) = self.system.take() {
            messages.insert(0, Message::system(system).into());
        }
        let mut request = Request::new(std::mem::take(&mut self.model), Vec::<HistoryItem>::new());
        request.messages = messages;
        request.provider = self.provider.take();
        request.tool_choice = self.tool_choice.take();
        request.response_format = self.response_format.take();
        request.temperature = self.temperature;
        request.top_p = self.top_p;
        request.max_tokens = self.max_tokens;
        request.stop_sequences = std::mem::take(&mut self.stop_sequences);
        request.reasoning_effort = self.reasoning_effort.take();
        request.metadata = std::mem::take(&mut self.metadata);
        request.provider_options = std::mem::take(&mut self.provider_options);
        request.timeout = self.adapter_timeout;
        Ok(request)
    }

    fn take_conversation(&mut self) -> Result<MessageList, Error> {
        let refused = |message| Err(Error::new(ErrorKind::Configuration, message));
        match (self.prompt.take(), self.messages.take()) {
            (Some(_), Some(_)) => refused("expected a prompt or messages, found both"),
            (None, None) => refused("expected a prompt or messages, found neither"),
            (Some(prompt), None) if prompt.trim().is_empty() => refused("the prompt is empty"),
            (None, Some(messages)) if messages.is_empty() => refused("the list of messages is empty"),
            (Some(prompt), None) => Ok(vec![Message::user(prompt).into()].into()),
            (None, Some(messages)) => Ok(messages),
        }
    }
}

impl From<Request> for GenerateOptions {
    /// Takes everything that the request says; its tools become passive.
    fn from(request: Request) -> Self {
        let Request {
            model,
            messages,
            provider,
            tools,
            tool_choice,
            response_format,
            temperature,
            top_p,
            max_tokens,
            stop_sequences,
            reasoning_effort,
            metadata,
            provider_options,
            timeout,
        } = request;
        let passive = |tool: ToolItem| ClientTool::passive(tool.definition().clone());
        Self {
            messages: Some(messages),
            tools: tools.into_iter().map(passive).collect(),
            tool_choice,
            response_format,
            temperature,
            top_p,
            max_tokens,
            stop_sequences,
            reasoning_effort,
            provider,
            provider_options,
            metadata,
            adapter_timeout: timeout,
            ..Self::new(model)
        }
    }
}

impl TryFrom<GenerateOptions> for Request {
    type Error = Error;

    /// As [`GenerateOptions::into_request`].
    fn try_from(options: GenerateOptions) -> Result<Self, Error> {
        options.into_request()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::tool::ToolDefinition;

    fn definition() -> ToolDefinition {
        ToolDefinition::new("look", "Looks.", json!({"type": "object"})).unwrap()
    }

    #[test]
    fn a_request_survives_conversion_to_options_and_back() {
        let request = Request::new("m", [Message::system("Be brief."), Message::user("hello")])
            .with_provider("p")
            .with_tools(vec![definition()])
            .with_tool_choice(ToolChoice::Required)
            .with_response_format(ResponseFormat::Json)
            .with_temperature(0.5)
            .with_top_p(0.9)
            .with_max_tokens(7)
            .with_stop_sequence("END")
            .with_reasoning_effort(ReasoningEffort::Low)
            .with_metadata("user", "u1")
            .with_provider_options("p", json!({"store": true}))
            .with_timeout(AdapterTimeout::patient());
        let options = GenerateOptions::from(request.clone());
        assert!(!options.tools[0].is_active());
        assert_eq!(options.messages.as_ref().map(|list| list.as_ptr()), Some(request.messages.as_ptr()));
        assert_eq!(options.into_request().unwrap(), request);
    }

    #[test]
    fn options_become_their_first_request() {
        let tool = ClientTool::active(definition(), |_, _| async { Ok::<_, Error>("nothing") });
        let options = GenerateOptions::new("m")
            .with_system("Be brief.")
            .with_prompt("hello")
            .with_tools([tool])
            .with_timeout(Duration::from_secs(1));
        let expected = Request::new("m", [Message::system("Be brief."), Message::user("hello")])
            .with_tools(vec![definition()]);
        assert_eq!(Request::try_from(options).unwrap(), expected);
    }

    #[test]
    fn options_without_a_conversation_are_refused() {
        for (options, message) in [
            (GenerateOptions::new("m"), "expected a prompt or messages, found neither"),
            (GenerateOptions::new("m").with_prompt(" "), "the prompt is empty"),
            (GenerateOptions::new("m").with_messages(Vec::<Message>::new()), "the list of messages is empty"),
        ] {
            let error = options.into_request().unwrap_err();
            assert_eq!((error.kind(), error.message()), (ErrorKind::Configuration, message));
        }
    }
}
