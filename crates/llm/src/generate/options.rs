//! What is to be generated, and how (client specification, section 4.3).

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::limits::TimeoutConfig;
use super::on_step::OnStep;
use super::result::StepResult;
use super::stop::StopCondition;
use super::tool::{RepairToolCall, Tool};
use crate::client::{Client, default_client};
use crate::error::{Error, ErrorKind};
use crate::history::HistoryItem;
use crate::message::Message;
use crate::request::{AdapterTimeout, ReasoningEffort, Request, ResponseFormat};
use crate::retry::RetryPolicy;
use crate::tool::ToolChoice;

/// The one input of [`generate`](crate::generate), [`stream`](crate::stream), [`generate_object`](crate::generate_object)
/// and [`stream_object`](crate::stream_object).
///
/// Either a prompt or messages must be given, and never both.
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
    /// The provider's own name of the model.
    pub model: String,
    /// The text of a single user message.
    pub prompt: Option<String>,
    /// A whole conversation.
    pub messages: Option<Vec<HistoryItem>>,
    /// Goes before the conversation as a system message.
    pub system: Option<String>,
    /// The tools that the model may call.
    pub tools: Vec<Tool>,
    /// Whether it may, must or must not, in every step; `None` means auto if there are tools.
    pub tool_choice: Option<ToolChoice>,
    /// How many times calls are made and their results sent back. Default 1; 0 returns all calls to the caller. There
    /// is at most one model call more than this.
    pub max_tool_rounds: u32,
    /// Ends the loop earlier.
    pub stop_when: Option<StopCondition>,
    /// Is told of each step once it is over, also of those of a generation that fails later. Default: nobody.
    pub on_step: Option<OnStep>,
    /// Is asked for other arguments when those of a call do not fit.
    pub repair_tool_call: Option<RepairToolCall>,
    /// The form of the answer; the object functions set it themselves.
    pub response_format: Option<ResponseFormat>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Nucleus sampling.
    pub top_p: Option<f64>,
    /// The most tokens to write, in each step.
    pub max_tokens: Option<u64>,
    /// Texts that end the answer.
    pub stop_sequences: Vec<String>,
    /// How much to reason.
    pub reasoning_effort: Option<ReasoningEffort>,
    /// The provider to route to; the client's default if `None`.
    pub provider: Option<String>,
    /// Parameters that only one provider has, keyed by the provider's name.
    pub provider_options: Map<String, Value>,
    /// Arbitrary pairs for the provider's records.
    pub metadata: BTreeMap<String, String>,
    /// For each model call on its own. Default: two more attempts, only for failures that may pass.
    pub retry: RetryPolicy,
    /// For everything and for each model call. Default: the adapter's limits only.
    pub timeout: TimeoutConfig,
    /// Other limits than the adapter's own.
    pub adapter_timeout: Option<AdapterTimeout>,
    /// Ends everything with an error of kind [`Abort`](ErrorKind::Abort) when it is cancelled. Default: a token that
    /// nobody else has.
    pub abort_signal: CancellationToken,
    /// The client; the default one of the process if `None`.
    pub client: Option<Client>,
}

impl GenerateOptions {
    /// For this model, with nothing to say yet.
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

    /// With the text of a single user message.
    #[must_use]
    pub fn with_prompt(mut self, prompt: impl Into<String>) -> Self {
        self.prompt = Some(prompt.into());
        self
    }

    /// With a whole conversation.
    #[must_use]
    pub fn with_messages<M: Into<HistoryItem>>(mut self, messages: impl IntoIterator<Item = M>) -> Self {
        self.messages = Some(messages.into_iter().map(Into::into).collect());
        self
    }

    /// With a system message before the conversation.
    #[must_use]
    pub fn with_system(mut self, system: impl Into<String>) -> Self {
        self.system = Some(system.into());
        self
    }

    /// With one more tool.
    #[must_use]
    pub fn with_tool(mut self, tool: Tool) -> Self {
        self.tools.push(tool);
        self
    }

    /// With a tool choice.
    #[must_use]
    pub fn with_tool_choice(mut self, choice: ToolChoice) -> Self {
        self.tool_choice = Some(choice);
        self
    }

    /// With another limit of tool rounds.
    #[must_use]
    pub fn with_max_tool_rounds(mut self, rounds: u32) -> Self {
        self.max_tool_rounds = rounds;
        self
    }

    /// With a condition that ends the tool loop.
    #[must_use]
    pub fn with_stop_when(mut self, condition: StopCondition) -> Self {
        self.stop_when = Some(condition);
        self
    }

    /// With a listener that is told of each step once it is over.
    #[must_use]
    pub fn with_on_step(mut self, listener: impl Fn(&StepResult) + Send + Sync + 'static) -> Self {
        self.on_step = Some(OnStep::new(listener));
        self
    }

    /// With a hook that repairs arguments that do not fit, once per call.
    #[must_use]
    pub fn with_repair_tool_call(mut self, repair: RepairToolCall) -> Self {
        self.repair_tool_call = Some(repair);
        self
    }

    /// With a form of the answer.
    #[must_use]
    pub fn with_response_format(mut self, format: ResponseFormat) -> Self {
        self.response_format = Some(format);
        self
    }

    /// With a sampling temperature.
    #[must_use]
    pub fn with_temperature(mut self, temperature: f64) -> Self {
        self.temperature = Some(temperature);
        self
    }

    /// With nucleus sampling.
    #[must_use]
    pub fn with_top_p(mut self, top_p: f64) -> Self {
        self.top_p = Some(top_p);
        self
    }

    /// With a limit on each answer, in tokens.
    #[must_use]
    pub fn with_max_tokens(mut self, max_tokens: u64) -> Self {
        self.max_tokens = Some(max_tokens);
        self
    }

    /// With one more text that ends the answer.
    #[must_use]
    pub fn with_stop_sequence(mut self, text: impl Into<String>) -> Self {
        self.stop_sequences.push(text.into());
        self
    }

    /// With a reasoning effort.
    #[must_use]
    pub fn with_reasoning_effort(mut self, effort: ReasoningEffort) -> Self {
        self.reasoning_effort = Some(effort);
        self
    }

    /// With a provider to route to.
    #[must_use]
    pub fn with_provider(mut self, provider: impl Into<String>) -> Self {
        self.provider = Some(provider.into());
        self
    }

    /// With one provider's own parameters.
    #[must_use]
    pub fn with_provider_options(mut self, provider: impl Into<String>, options: Value) -> Self {
        self.provider_options.insert(provider.into(), options);
        self
    }

    /// With one more pair for the provider's records.
    #[must_use]
    pub fn with_metadata(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.metadata.insert(name.into(), value.into());
        self
    }

    /// With another number of attempts after the first, for each model call; 0 turns retries off.
    #[must_use]
    pub fn with_max_retries(mut self, max_retries: u32) -> Self {
        self.retry.max_retries = max_retries;
        self
    }

    /// With another retry policy.
    #[must_use]
    pub fn with_retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = policy;
        self
    }

    /// With time limits; a plain duration is the limit for everything.
    #[must_use]
    pub fn with_timeout(mut self, timeout: impl Into<TimeoutConfig>) -> Self {
        self.timeout = timeout.into();
        self
    }

    /// With other limits than the adapter's own.
    #[must_use]
    pub fn with_adapter_timeout(mut self, timeout: AdapterTimeout) -> Self {
        self.adapter_timeout = Some(timeout);
        self
    }

    /// With a token that ends everything when it is cancelled.
    #[must_use]
    pub fn with_abort_signal(mut self, signal: CancellationToken) -> Self {
        self.abort_signal = signal;
        self
    }

    /// With a client of its own.
    #[must_use]
    pub fn with_client(mut self, client: Client) -> Self {
        self.client = Some(client);
        self
    }

    pub(super) fn take_client(&mut self) -> Result<Client, Error> {
        self.client.take().or_else(default_client).ok_or_else(|| {
            Error::new(
                ErrorKind::Configuration,
                "no client: give one to the options or to `set_default_client`, \
                 or call the function of the same name in `pintle-providers`",
            )
        })
    }

    /// The first request, but for its tools.
    pub(super) fn take_request(&mut self) -> Result<Request, Error> {
        let mut messages = self.take_conversation()?;
        if let Some(system) = self.system.take() {
            messages.insert(0, Message::system(system).into());
        }
        let mut request = Request::new(std::mem::take(&mut self.model), messages);
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

    fn take_conversation(&mut self) -> Result<Vec<HistoryItem>, Error> {
        let refused = |message| Err(Error::new(ErrorKind::Configuration, message));
        match (self.prompt.take(), self.messages.take()) {
            (Some(_), Some(_)) => refused("expected a prompt or messages, found both"),
            (None, None) => refused("expected a prompt or messages, found neither"),
            (Some(prompt), None) if prompt.trim().is_empty() => refused("the prompt is empty"),
            (None, Some(messages)) if messages.is_empty() => refused("the list of messages is empty"),
            (Some(prompt), None) => Ok(vec![Message::user(prompt).into()]),
            (None, Some(messages)) => Ok(messages),
        }
    }
}
