//! Types of subagents that the embedding application defines.

use std::sync::Arc;

use pintle_env::setters;
use pintle_tools::ToolRegistry;
use pintle_tools::pipeline::Gate;

use crate::protocol::{Limits, SubagentRole, SubagentSettings};

/// A type of subagents, such as a reviewer: its prompt, tools, model, permissions and limits.
///
/// A session with types offers them to its model as the tool `delegate`. The application spawns subagents of a type with
/// [`Session::spawn`](crate::Session::spawn).
///
/// ```
/// use pintle_agent::{Limits, Session, SubagentRole, SubagentType};
/// # use pintle_agent::{ProviderProfile, Money};
/// # use pintle_llm::{Client, testing::FakeAdapter};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let client = Client::builder().provider(FakeAdapter::new("anthropic").answer("No findings.")).build()?;
/// # let profile = ProviderProfile::anthropic("claude-opus-4-6");
/// # let env = pintle_env::MemoryEnvironment::new("/project");
/// let reviewer = SubagentType::new("reviewer", "Reviews a change and lists its mistakes.")
///     .with_prompt("You review changes. List mistakes only, each with file and line.")
///     .with_role(SubagentRole::Explorer)
///     .with_limits(Limits::default().with_cost(Money::from_dollars(0.50)));
/// let session = Session::builder(client, profile, env).subagent_type(reviewer).build()?;
/// let review = session.spawn("reviewer", "Review the last commit.").await?;
/// assert_eq!(review.wait().await.output, "No findings.");
/// println!("{} tokens so far", session.spending().total.tokens());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SubagentType {
    /// Name, unique among the types of a session.
    pub name: String,
    /// Purpose of the type, for the model.
    pub description: String,
    /// Base instructions, in place of the instructions of the session; `None` for the same.
    pub prompt: Option<String>,
    /// Tools; the tools of the session if `None`.
    pub tools: Option<ToolRegistry>,
    /// Model; the model of the session if `None`.
    pub model: Option<String>,
    /// Permissions.
    pub role: SubagentRole,
    /// Gates in addition to the gates of the session, such as a grant.
    pub gates: Vec<Arc<dyn Gate>>,
    /// Limits of one subagent with its own subagents, within the limits of the session.
    pub limits: Limits,
    /// Maximum number of model responses; 0 is unlimited.
    pub max_turns: u64,
}

impl SubagentType {
    /// Creates a type with the prompt, tools, model and permissions of the session, and without limits.
    #[must_use]
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            prompt: None,
            tools: None,
            model: None,
            role: SubagentRole::default(),
            gates: Vec::new(),
            limits: Limits::default(),
            max_turns: 0,
        }
    }

    setters! {
        /// Sets the base instructions.
        pub fn with_prompt(prompt: impl Into<String>) => prompt = Some(prompt.into());
        /// Sets the tools.
        pub fn with_tools(tools: ToolRegistry) => tools = Some(tools);
        /// Sets the model.
        pub fn with_model(model: impl Into<String>) => model = Some(model.into());
        /// Sets the permissions.
        pub fn with_role(role: SubagentRole) => role = role;
        /// Sets the limits of one subagent with its own subagents.
        pub fn with_limits(limits: Limits) => limits = limits;
        /// Sets the maximum number of model responses.
        pub fn with_max_turns(turns: u64) => max_turns = turns;
    }

    /// Adds a gate, which judges calls after the gates of the session.
    #[must_use]
    pub fn with_gate(mut self, gate: impl Gate + 'static) -> Self {
        self.gates.push(Arc::new(gate));
        self
    }

    /// Returns the settings of a subagent of this type, as records have them.
    pub(super) fn settings(&self) -> SubagentSettings {
        SubagentSettings {
            model: self.model.clone(),
            max_turns: self.max_turns,
            role: self.role,
            kind: Some(self.name.clone()),
            limits: self.limits,
            ..SubagentSettings::default()
        }
    }
}

/// Returns the type of this name.
///
/// # Errors
///
/// A message that names the existing types.
pub(super) fn find<'types>(
    types: &'types [SubagentType],
    name: &str,
) -> Result<&'types SubagentType, String> {
    types.iter().find(|known| known.name == name).ok_or_else(|| {
        let names: Vec<&str> = types.iter().map(|known| known.name.as_str()).collect();
        match names.as_slice() {
            [] => format!("there is no subagent type {name:?}; this session has none"),
            names => format!("there is no subagent type {name:?}; there are: {}", names.join(", ")),
        }
    })
}
