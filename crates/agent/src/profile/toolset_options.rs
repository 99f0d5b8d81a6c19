//! Optional tools of a toolset.

use pintle_env::setters;
use std::sync::Arc;

use pintle_tools::builtin::{
    AskUser, ShellList, ShellRead, ShellStart, ShellStop, ShellWrite, UpdatePlan, WebClient, WebFetch,
    WebSearch, WebSearchClient,
};
use serde_json::{Map, Value, json};

use super::built_in::BuiltInTools;

/// Tools that need support from the embedding application, or that the loop specification does not list. All are off by
/// default. Each has the name that the family's own agent uses, if the agent has such a tool.
///
/// | option | `openai` native | `anthropic` native | `gemini` native | all others |
/// |---|---|---|---|---|
/// | [`web`](Self::web) | – | `WebFetch` | `web_fetch` | `web_fetch` |
/// | [`search`](Self::search) | `web_search` | `WebSearch` | `google_web_search` | `web_search` |
/// | [`questions`](Self::questions) | `request_user_input` | `AskUserQuestion` | `ask_user` | `ask_user` |
/// | [`plan`](Self::plan) | always | always, as `TodoWrite` | `update_plan` | `update_plan` |
/// | [`background`](Self::background) | always, in `exec_command` | always, in `Bash` | `shell_start` … | `shell_start` … |
///
/// codex reads web pages through its search and its commands, so its native toolset has no tool for them.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ToolsetOptions {
    /// Client that fetches web pages.
    pub web: Option<Arc<dyn WebClient>>,
    /// Backend of web searches.
    pub search: Option<SearchBy>,
    /// Whether the model may ask the user questions with a tool.
    pub questions: bool,
    /// Whether the model may keep a plan with a tool.
    pub plan: bool,
    /// Whether commands may keep running between calls.
    pub background: bool,
}

/// Backend of web searches.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SearchBy {
    /// A search engine of the embedding application. Searches are ordinary tool calls, with gates and events.
    Client(Arc<dyn WebSearchClient>),
    /// The model's provider, while it generates the response: no gate sees the search. OpenAI and Anthropic only.
    /// Gemini does not combine search with functions, and Chat Completions servers have no search; both ignore it.
    Provider,
}

impl ToolsetOptions {
    /// Creates options without any optional tools.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        /// Sets the client that fetches web pages.
        pub fn with_web(client: Arc<dyn WebClient>) => web = Some(client);
        /// Sets the backend of web searches.
        pub fn with_search(search: SearchBy) => search = Some(search);
        /// Sets whether the model may ask the user questions.
        pub fn with_questions(answered: bool) => questions = answered;
        /// Sets whether the model may keep a plan.
        pub fn with_plan(plan: bool) => plan = plan;
        /// Sets whether commands may keep running between calls.
        pub fn with_background(background: bool) => background = background;
    }

    /// Returns the search engine of the embedding application, if searches use one.
    pub(super) fn engine(&self) -> Option<Arc<dyn WebSearchClient>> {
        match &self.search {
            Some(SearchBy::Client(engine)) => Some(Arc::clone(engine)),
            Some(SearchBy::Provider) | None => None,
        }
    }

    /// Returns whether the provider runs the searches.
    pub(super) fn provider_searches(&self) -> bool {
        matches!(self.search, Some(SearchBy::Provider))
    }

    /// Returns the optional tools under their generic names.
    pub(super) fn built_in(&self) -> BuiltInTools {
        self.background_tools()
            .with_optional(self.web.clone().map(WebFetch::new))
            .with_optional(self.engine().map(WebSearch::new))
            .with_all(self.conversation_tools())
    }

    /// Returns the tools for plans and questions.
    pub(super) fn conversation_tools(&self) -> BuiltInTools {
        BuiltInTools::new()
            .with_optional(self.plan.then(UpdatePlan::new))
            .with_optional(self.questions.then(AskUser::new))
    }

    /// Returns the tools for background commands.
    pub(super) fn background_tools(&self) -> BuiltInTools {
        if !self.background {
            return BuiltInTools::new();
        }
        BuiltInTools::new()
            .with_tool(ShellStart::new())
            .with_tool(ShellRead::new())
            .with_tool(ShellWrite::new())
            .with_tool(ShellStop::new())
            .with_tool(ShellList::new())
    }
}

/// Returns OpenAI's hosted search tool, as codex requests it.
pub(super) fn openai_search() -> Value {
    json!({"type": "web_search", "external_web_access": true})
}

/// Returns Anthropic's hosted search tool, with Claude Code's limit on searches per response.
pub(super) fn anthropic_search() -> Value {
    json!({"type": "web_search_20250305", "name": "web_search", "max_uses": 8})
}

/// Replaces the provider tools of the previous toolset with the new toolset's. Tools that the embedding application added
/// are kept.
pub(super) fn set_provider_tools(options: &mut Map<String, Value>, provider: &str, tools: Vec<Value>) {
    let ours = [openai_search(), anthropic_search()];
    let provider_options = options.get_mut(provider).and_then(Value::as_object_mut);
    let Some(provider_options) = provider_options else {
        if !tools.is_empty() {
            options.insert(provider.to_owned(), json!({ "tools": tools }));
        }
        return;
    };
    // The adapter reports a value that is not a list.
    if provider_options.get("tools").is_some_and(|set| !set.is_array()) {
        return;
    }
    let mut wanted = match provider_options.remove("tools") {
        Some(Value::Array(set)) => set,
        Some(_) | None => Vec::new(),
    };
    wanted.retain(|tool| !ours.contains(tool));
    wanted.extend(tools);
    if !wanted.is_empty() {
        provider_options.insert("tools".to_owned(), Value::Array(wanted));
    }
    if provider_options.is_empty() {
        options.remove(provider);
    }
}
