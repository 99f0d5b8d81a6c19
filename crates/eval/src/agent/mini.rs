//! A minimal agent: one tool, which runs commands, until the model answers without a call.

use std::time::Duration;

use pintle_env::{ExecRequest, ExecutionEnvironment, Output};
use pintle_host::model::Model;
use pintle_llm::{Message, Money, Request, ToolCall, ToolDefinition, ToolResult, Usage, error_chain};
use serde_json::{Value, json};

use super::{AgentEnd, Claim};

/// Maximum number of model calls.
const MAX_ROUNDS: u64 = 50;

/// Time limit of one command.
const COMMAND_LIMIT: Duration = Duration::from_secs(120);

/// Maximum size of each end of an output that the model reads, in bytes.
const MAX_END: usize = 5_000;

const SYSTEM: &str = "You change files in the current directory to reach a goal. Run commands with the tool `shell`; each \
                      runs in a new shell in this directory. Run the tests. Answer without a call once the goal is reached.";

/// Works on a goal in an environment.
pub(crate) async fn work(model: &Model, prompt: &str, environment: &dyn ExecutionEnvironment) -> AgentEnd {
    let mut run = MiniRun { model, usage: Usage::default(), cost: Some(Money::ZERO), rounds: 0 };
    match run.converse(prompt, environment).await {
        Ok(()) => run.end(Claim::Done, String::new()),
        Err((claim, reason)) => run.end(claim, reason),
    }
}

struct MiniRun<'a> {
    model: &'a Model,
    usage: Usage,
    /// Cost; `None` once the price of a call is unknown.
    cost: Option<Money>,
    rounds: u64,
}

impl MiniRun<'_> {
    async fn converse(
        &mut self,
        prompt: &str,
        environment: &dyn ExecutionEnvironment,
    ) -> Result<(), (Claim, String)> {
        let name = &self.model.route.model;
        let tools = vec![shell_tool().map_err(|error| (Claim::Failed, error_chain(&error)))?];
        let mut request =
            Request::new(name, [Message::system(SYSTEM), Message::user(prompt)]).with_tools(tools);
        while self.rounds < MAX_ROUNDS {
            self.rounds += 1;
            let response = self.model.client.complete(request.clone()).await;
            let response = response.map_err(|error| (Claim::Failed, error_chain(&error)))?;
            self.count(&response.usage);
            let calls: Vec<ToolCall> = response.tool_calls().cloned().collect();
            if calls.is_empty() {
                return Ok(());
            }
            let mut results = Vec::new();
            for call in &calls {
                let (text, is_error) = run_call(call, environment).await;
                results.push(ToolResult::new(&call.id, text, is_error));
            }
            request = request.with_messages([response.message, Message::tool_results(results)]);
        }
        Err((Claim::Limit, format!("{MAX_ROUNDS} model calls")))
    }

    fn count(&mut self, usage: &Usage) {
        self.usage += usage;
        let price = self.model.find(&self.model.route.model).and_then(|model| model.cost(usage));
        self.cost = self.cost.zip(price).map(|(sum, cost)| sum + cost);
    }

    fn end(&self, claim: Claim, reason: String) -> AgentEnd {
        AgentEnd {
            cost: self.cost,
            tokens: Some(self.usage.total_tokens),
            rounds: Some(self.rounds),
            model: Some(self.model.route.model.clone()),
            ..AgentEnd::new(claim, reason)
        }
    }
}

fn shell_tool() -> Result<ToolDefinition, pintle_llm::Error> {
    let parameters = json!({
        "type": "object",
        "properties": { "command": { "type": "string", "description": "Command of the shell" } },
        "required": ["command"],
        "additionalProperties": false,
    });
    ToolDefinition::new("shell", "Runs a command and returns its output and exit code", parameters)
}

/// Runs a call. Returns its result, and whether it is an error.
async fn run_call(call: &ToolCall, environment: &dyn ExecutionEnvironment) -> (String, bool) {
    let command = call.arguments.get("command").and_then(Value::as_str);
    let Some(command) = command.filter(|_| call.name == "shell") else {
        return ("expected a call of `shell` with a `command`".to_owned(), true);
    };
    match environment.exec_command(ExecRequest::new(command).with_timeout(COMMAND_LIMIT)).await {
        Ok(ended) => {
            let limit = if ended.timed_out { " (time limit)" } else { "" };
            (format!("{}\nexit code {}{limit}", both_ends(&ended.output), ended.exit_code), false)
        }
        Err(error) => (error_chain(&error), true),
    }
}

/// Returns an output, without its middle if it is long.
fn both_ends(output: &Output) -> String {
    if output.len() <= 2 * MAX_END as u64 {
        return output.to_text_lossy().unwrap_or_default();
    }
    let head = output.head_text_lossy(MAX_END).unwrap_or_default();
    let end = output.tail_text_lossy(MAX_END).unwrap_or_default();
    format!("{head}\n[{} bytes left out]\n{end}", output.len() - 2 * MAX_END as u64)
}
