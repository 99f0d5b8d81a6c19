//! What a host adds to a toolset, and the tools that come of it.

use std::sync::Arc;

use pintle_tools::builtin::{
    AskUser, ShellList, ShellRead, ShellStart, ShellStop, ShellWrite, UpdatePlan, WebClient, WebFetch,
    WebSearch, WebSearchClient,
};
use serde_json::{Map, Value, json};

use super::kit::Kit;

/// The tools of a toolset that need something of the host, or that the loop specification does not list. None by
/// default; each comes under the name that the family knows, where its agent has one.
///
/// | option | `openai` native | `anthropic` native | `gemini` native | all others |
/// |---|---|---|---|---|
/// | [`web`](Self::web) | – | `WebFetch` | `web_fetch` | `web_fetch` |
/// | [`search`](Self::search) | `web_search` | `WebSearch` | `google_web_search` | `web_search` |
/// | [`questions`](Self::questions) | `request_user_input` | `AskUserQuestion` | `ask_user` | `ask_user` |
/// | [`plan`](Self::plan) | always | always, as `TodoWrite` | `update_plan` | `update_plan` |
/// | [`background`](Self::background) | always, in `exec_command` | always, in `Bash` | `shell_start` … | `shell_start` … |
///
/// codex reaches pages through its search and its commands, so its native set has no tool for them.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ToolsetOptions {
    /// Who gets pages of the web.
    pub web: Option<Arc<dyn WebClient>>,
    /// Who searches the web.
    pub search: Option<SearchBy>,
    /// Whether somebody answers the questions that a model asks with a tool.
    pub questions: bool,
    /// Whether the model may write down a plan.
    pub plan: bool,
    /// Whether commands may run on between calls.
    pub background: bool,
}

/// Who searches the web.
#[derive(Clone, Debug)]
pub enum SearchBy {
    /// An engine of the host. Its searches are calls like all others: gates see them, events tell of them.
    Client(Arc<dyn WebSearchClient>),
    /// The model's provider, within its answer: no gate sees it. OpenAI and Anthropic only; Gemini takes no search
    /// beside functions, and servers behind Chat Completions have none, so that there it adds nothing.
    Provider,
}

impl ToolsetOptions {
    /// Nothing of the host.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// With pages of the web through this client.
    #[must_use]
    pub fn with_web(mut self, client: Arc<dyn WebClient>) -> Self {
        self.web = Some(client);
        self
    }

    /// With searches of the web.
    #[must_use]
    pub fn with_search(mut self, search: SearchBy) -> Self {
        self.search = Some(search);
        self
    }

    /// With questions to the user, or without.
    #[must_use]
    pub fn with_questions(mut self, answered: bool) -> Self {
        self.questions = answered;
        self
    }

    /// With a plan, or without.
    #[must_use]
    pub fn with_plan(mut self, plan: bool) -> Self {
        self.plan = plan;
        self
    }

    /// With commands that run on between calls, or without.
    #[must_use]
    pub fn with_background(mut self, background: bool) -> Self {
        self.background = background;
        self
    }

    /// The engine of the host, if that is who searches.
    pub(super) fn engine(&self) -> Option<Arc<dyn WebSearchClient>> {
        match &self.search {
            Some(SearchBy::Client(engine)) => Some(Arc::clone(engine)),
            Some(SearchBy::Provider) | None => None,
        }
    }

    /// Whether the provider searches.
    pub(super) fn provider_searches(&self) -> bool {
        matches!(self.search, Some(SearchBy::Provider))
    }

    /// The tools of these options under the names that no family has of its own.
    pub(super) fn built_in(&self) -> Kit {
        self.background_tools()
            .with_some(self.web.clone().map(WebFetch::new))
            .with_some(self.engine().map(WebSearch::new))
            .with_all(self.conversation_tools())
    }

    /// Those that speak to people.
    pub(super) fn conversation_tools(&self) -> Kit {
        Kit::new().with_some(self.plan.then(UpdatePlan::new)).with_some(self.questions.then(AskUser::new))
    }

    /// Those for commands that run on.
    pub(super) fn background_tools(&self) -> Kit {
        if !self.background {
            return Kit::new();
        }
        Kit::new()
            .with(ShellStart::new())
            .with(ShellRead::new())
            .with(ShellWrite::new())
            .with(ShellStop::new())
            .with(ShellList::new())
    }
}

/// OpenAI's own search, as codex asks for it.
pub(super) fn openai_search() -> Value {
    json!({"type": "web_search", "external_web_access": true})
}

/// Anthropic's own search, with the number of searches in one answer bounded as Claude Code does it.
pub(super) fn anthropic_search() -> Value {
    json!({"type": "web_search_20250305", "name": "web_search", "max_uses": 8})
}

/// Puts the tools that a toolset has the provider run in the place of those of the toolset before. A host's own stay.
pub(super) fn set_provider_tools(options: &mut Map<String, Value>, provider: &str, tools: Vec<Value>) {
    let ours = [openai_search(), anthropic_search()];
    let of_provider = options.get_mut(provider).and_then(Value::as_object_mut);
    let Some(of_provider) = of_provider else {
        if !tools.is_empty() {
            options.insert(provider.to_owned(), json!({ "tools": tools }));
        }
        return;
    };
    // What is no list is the host's mistake, which the adapter names.
    if of_provider.get("tools").is_some_and(|set| !set.is_array()) {
        return;
    }
    let mut wanted = match of_provider.remove("tools") {
        Some(Value::Array(set)) => set,
        Some(_) | None => Vec::new(),
    };
    wanted.retain(|tool| !ours.contains(tool));
    wanted.extend(tools);
    if !wanted.is_empty() {
        of_provider.insert("tools".to_owned(), Value::Array(wanted));
    }
    if of_provider.is_empty() {
        options.remove(provider);
    }
}
