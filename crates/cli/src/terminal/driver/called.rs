//! Carries out the commands of the conversation.

mod sessions;
mod settings;

use std::sync::Arc;

use pintle_governance::Mode;
use pintle_llm::ReasoningEffort;

use super::{Done, Driver};
use crate::model::ResolvedModel;
use crate::prompt_commands::CalledPrompt;
use crate::render::{Face, Line};
use crate::reports::{self, INIT, PLAN_FIRST, Status, labelled};
use crate::terminal::commands::{COMMANDS, Called, Command};
use crate::terminal::images::Said;
use crate::terminal::next::Next;
use crate::terminal::user_commands::discover;
use crate::{instructions, process_env};

/// Keys and their meanings.
const KEYS: [(&str, &str); 18] = [
    ("Enter", "send; while a turn runs, steer it"),
    ("Tab, Alt+Enter", "queue for the end of the turn"),
    ("Esc", "interrupt the turn; the conversation stays"),
    ("Ctrl+J, Shift+Enter", "begin another line"),
    ("Up, Down, Ctrl+R", "input history, step by step or searched"),
    ("@FILE", "name a file; an image goes with the message"),
    ("Ctrl+V", "paste the image on the clipboard; files that are dropped are taken as well"),
    ("!COMMAND", "run a command; the model sees it with your next message"),
    ("# LINE", "add a line to a file of instructions"),
    ("Ctrl+A, Ctrl+E, Alt+B, Alt+F", "move by lines and words"),
    ("Ctrl+W, Ctrl+U, Ctrl+K, Ctrl+Y", "cut a word, to the beginning, to the end; put back"),
    ("Ctrl+_", "undo"),
    ("Ctrl+G", "write in your editor"),
    ("Alt+A", "decide on calls that wait, answer a server, or write on"),
    ("Ctrl+T", "look through the whole conversation"),
    ("Ctrl+L", "redraw the screen"),
    ("Ctrl+Z", "back to the shell; `fg` returns"),
    ("Ctrl+C", "clear the input; twice, leave"),
];

/// Lines in plain mode and their meanings.
const LINES: [(&str, &str); 8] = [
    ("any line", "send it; while a turn runs, steer it"),
    ("a line that ends with \\", "is continued by the next one"),
    ("@FILE", "name a file; an image goes with the message"),
    ("!COMMAND", "run a command; the model sees it with your next message"),
    ("yes, session, no, no WORDS", "decide on a call that waits"),
    ("answer VALUE", "answer the question of a server"),
    ("Ctrl+C", "interrupt the turn; twice, leave"),
    ("Ctrl+D", "leave"),
];

impl Driver<'_> {
    /// Carries out a command.
    pub(super) fn call(&mut self, called: &Called) {
        let Called { command, arguments } = called;
        let result = match command {
            Command::Agents => Ok(self.agents()),
            Command::Compact => self.handle.compact().map(|()| Vec::new()).map_err(|error| error.to_string()),
            Command::Config => return self.config(),
            Command::Context => Ok(vec![reports::context(self.display.conversation.status.context)]),
            Command::Copy => return self.copy(),
            Command::Cost => Ok(vec![reports::cost(self.cost.total())]),
            Command::Diff => return self.diff(),
            Command::Effort => self.effort(arguments),
            Command::Export => return self.export(arguments),
            Command::Fork => self.fork(arguments),
            Command::Help => Ok(help(self.display.conversation.is_plain())),
            Command::Init => {
                self.say(Said::text(INIT));
                Ok(Vec::new())
            }
            Command::Jobs => Ok(self.jobs()),
            Command::Login => Ok(reports::login()),
            Command::Memory => Ok(self.memory()),
            Command::Mode => return self.mode(arguments),
            Command::Model => self.model(arguments),
            Command::New => self.turn_to(Next::New(self.settings())),
            Command::Permissions => Ok(reports::permissions(self.surroundings.policy)),
            Command::Plan => return self.plan(arguments),
            Command::Quit => {
                self.next = Some(Next::Leave);
                Ok(Vec::new())
            }
            Command::Resume if arguments.is_empty() => return self.list_sessions(),
            Command::Resume => return self.resume(arguments),
            Command::Rewind => return self.rewind(arguments),
            Command::Sessions => return self.list_sessions(),
            Command::Status => Ok(self.status()),
            Command::Theme => self.theme(arguments),
            Command::Tools => Ok(reports::tools(&self.surroundings.offered)),
            Command::Undo => self.undo(),
        };
        self.done(Done::Called(result));
    }

    /// Requests a prompt from its server, and starts the server if it is not running.
    pub(super) fn call_prompt(&mut self, called: CalledPrompt) {
        self.display.hint(format!("asking server {}", called.server));
        let servers = self.surroundings.servers.clone();
        self.doing.push(Box::pin(async move {
            let result = servers.prompt(&called).await;
            Done::Prompted { written: called.written, result }
        }));
    }

    pub(super) fn find_user_commands(&mut self) {
        let environment = Arc::clone(&self.surroundings.tools);
        let process_env = self.surroundings.process_env;
        self.doing
            .push(Box::pin(async move { Done::Commands(discover(environment.as_ref(), process_env).await) }));
    }

    fn effort(&mut self, effort: &str) -> Result<Vec<Line>, String> {
        let status = &mut self.display.conversation.status;
        if effort.is_empty() {
            let effort = status.effort.clone().unwrap_or_else(|| "the model's own".to_owned());
            return Ok(vec![labelled("effort", effort)]);
        }
        let set = Some(ReasoningEffort::from(effort.to_owned()));
        self.handle.set_reasoning_effort(set).map_err(|error| error.to_string())?;
        status.effort = Some(effort.to_owned());
        Ok(vec![labelled("effort", format!("{effort}, from the next request on"))])
    }

    fn model(&mut self, model: &str) -> Result<Vec<Line>, String> {
        let status = &mut self.display.conversation.status;
        if model.is_empty() {
            return Ok(vec![labelled("model", status.model.clone())]);
        }
        let ResolvedModel { name: model, warning } = match self.surroundings.model.resolve(model) {
            Ok(resolved) => resolved,
            // A hint would be truncated at the end of its line.
            Err(problem) => return Ok(vec![labelled("model", problem)]),
        };
        self.handle.set_model(&model).map_err(|error| error.to_string())?;
        status.model.clone_from(&model);
        if let Some(known) = self.surroundings.model.find(&model) {
            status.context = status.context.map(|(used, _)| (used, known.context_window));
        }
        let set = format!("{model}, from the next request on");
        Ok([set].into_iter().chain(warning).map(|text| labelled("model", text)).collect())
    }

    fn mode(&mut self, mode: &str) {
        if mode.is_empty() {
            let lines = vec![labelled("mode", self.surroundings.policy.mode().to_string())];
            return self.done(Done::Called(Ok(lines)));
        }
        let Ok(mode) = mode.parse::<Mode>() else {
            return self.done(Done::Called(Err("expected plan, ask, edit or auto".to_owned())));
        };
        if mode == Mode::Auto && !self.surroundings.has_sandbox {
            let problem = "mode auto needs a sandbox, and there is none here";
            return self.done(Done::Called(Err(problem.to_owned())));
        }
        let policy = self.surroundings.policy.clone();
        self.doing.push(Box::pin(async move {
            let set = policy.set_mode(mode).await;
            Done::Called(
                set.map(|()| vec![labelled("mode", mode.to_string())]).map_err(|error| error.to_string()),
            )
        }));
    }

    /// Requests a plan. Nothing changes until the user has accepted it.
    fn plan(&mut self, task: &str) {
        let (policy, outbox, blind) =
            (self.surroundings.policy.clone(), self.outbox.clone(), self.blind_model());
        let task = (!task.is_empty())
            .then(|| Said { instruction: Some(PLAN_FIRST), ..self.display.conversation.said(task) });
        self.doing.push(Box::pin(async move {
            let set = policy.set_mode(Mode::Plan).await;
            if let Err(error) = set {
                return Done::Called(Err(error.to_string()));
            }
            match task {
                Some(task) => outbox.say(task, blind).await,
                None => Done::Called(Ok(vec![labelled("mode", "plan: say what to plan")])),
            }
        }));
    }

    /// Lists the instruction files of this session, and those in the user's configuration.
    fn memory(&self) -> Vec<Line> {
        let project = self.display.conversation.instructions();
        let mut lines: Vec<Line> = project
            .iter()
            .map(|(path, bytes)| labelled("project", format!("{path}, {bytes} bytes")))
            .collect();
        let surroundings = &self.surroundings;
        let provider = surroundings.model.route.provider.name();
        for path in instructions::files(provider, surroundings.process_env) {
            let size = process_env::read_text_if_there("instructions", &path).ok().flatten();
            if let Some(text) = size {
                lines.push(labelled("yours", format!("{}, {} bytes", path.display(), text.len())));
            }
        }
        if lines.is_empty() {
            lines.push(labelled("memory", "no instructions; a line that begins with `# ` adds to a file"));
        }
        lines
    }

    fn status(&self) -> Vec<Line> {
        let surroundings = &self.surroundings;
        let status = Status {
            session: self.session.id(),
            model: &self.display.conversation.status.model,
            directory: surroundings.directory,
            environment: &surroundings.environment,
            policy: surroundings.policy,
        };
        status.lines()
    }
}

fn help(is_plain: bool) -> Vec<Line> {
    let keys: &[(&str, &str)] = if is_plain { &LINES } else { &KEYS };
    let keys = keys.iter().map(|(keys, meaning)| (format!("  {keys}"), (*meaning).to_owned()));
    let commands = COMMANDS.iter().map(|(_, name, arguments, meaning)| {
        (format!("  /{name} {arguments}").trim_end().to_owned(), (*meaning).to_owned())
    });
    let row = |(names, meaning): (String, String)| {
        Line::new(format!("{names:<34}"), Face::BOLD).and(meaning, Face::PLAIN)
    };
    keys.chain(commands).map(row).collect()
}
