//! Commands of the conversation, carried out.

use pintle_agent::PolicyRule;
use pintle_governance::Mode;
use pintle_llm::ReasoningEffort;

use super::{Done, Driver};
use crate::render::{Face, Line};
use crate::terminal::commands::{COMMANDS, Called, Command};

/// Keys and what they do.
const KEYS: [(&str, &str); 14] = [
    ("Enter", "send; while a turn runs, steer it"),
    ("Tab, Alt+Enter", "queue for the end of the turn"),
    ("Esc", "interrupt the turn; what was said stays"),
    ("Ctrl+J, Shift+Enter", "begin another line"),
    ("Up, Down, Ctrl+R", "inputs of before, one by one or searched"),
    ("!COMMAND", "run a command; the model sees it with your next message"),
    ("Ctrl+A, Ctrl+E, Alt+B, Alt+F", "move by lines and words"),
    ("Ctrl+W, Ctrl+U, Ctrl+K, Ctrl+Y", "cut a word, to the beginning, to the end; put back"),
    ("Ctrl+_", "undo"),
    ("Alt+A", "decide on calls that wait, or write on"),
    ("Ctrl+T", "look through the whole conversation"),
    ("Ctrl+L", "draw anew"),
    ("Ctrl+Z", "back to the shell; `fg` returns"),
    ("Ctrl+C", "clear the input; twice, leave"),
];

/// Lines of a conversation in lines, and what they do.
const LINES: [(&str, &str); 6] = [
    ("any line", "send it; while a turn runs, steer it"),
    ("a line that ends with \\", "is continued by the next one"),
    ("!COMMAND", "run a command; the model sees it with your next message"),
    ("yes, session, no, no WORDS", "decide on a call that waits"),
    ("Ctrl+C", "interrupt the turn; twice, leave"),
    ("Ctrl+D", "leave"),
];

impl Driver<'_> {
    /// Carries out a command.
    pub(super) fn call(&mut self, called: &Called) {
        let Called { command, arguments } = called;
        let result = match command {
            Command::Compact => self.handle.compact().map(|()| Vec::new()).map_err(|error| error.to_string()),
            Command::Context => Ok(vec![self.context()]),
            Command::Cost => Ok(vec![self.cost_line()]),
            Command::Effort => self.effort(arguments),
            Command::Help => Ok(help(self.conversation.is_plain())),
            Command::Mode => return self.mode(arguments),
            Command::Model => self.model(arguments),
            Command::Permissions => Ok(self.permissions()),
            Command::Quit => {
                self.is_leaving = true;
                Ok(Vec::new())
            }
            Command::Status => Ok(self.status()),
        };
        self.done(Done::Called(result));
    }

    fn context(&self) -> Line {
        let text = match self.conversation.status.context {
            Some((used, window)) => format!("about {used} of {window} tokens"),
            None => "nothing was sent yet".to_owned(),
        };
        labelled("context", text)
    }

    fn cost_line(&self) -> Line {
        let text = match self.cost.total() {
            Some(cost) => format!("${cost:.4}"),
            None => "the price of the model is unknown".to_owned(),
        };
        labelled("cost", text)
    }

    fn effort(&mut self, effort: &str) -> Result<Vec<Line>, String> {
        let status = &mut self.conversation.status;
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
        let status = &mut self.conversation.status;
        if model.is_empty() {
            return Ok(vec![labelled("model", status.model.clone())]);
        }
        self.handle.set_model(model).map_err(|error| error.to_string())?;
        model.clone_into(&mut status.model);
        Ok(vec![labelled("model", format!("{model}, from the next request on"))])
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

    fn permissions(&self) -> Vec<Line> {
        let rules = self.surroundings.policy.rules();
        let line = |rule: PolicyRule| labelled(rule.permission.as_str(), rule.rule);
        let lines: Vec<Line> = rules.on_record().map(line).collect();
        if lines.is_empty() { vec![labelled("permissions", "no rules: the mode decides")] } else { lines }
    }

    fn status(&self) -> Vec<Line> {
        let surroundings = &self.surroundings;
        vec![
            labelled("session", self.session.id().to_string()),
            labelled("model", self.conversation.status.model.clone()),
            labelled("directory", surroundings.directory.display().to_string()),
            labelled("environment", surroundings.environment.clone()),
            labelled("mode", surroundings.policy.mode().to_string()),
        ]
    }
}

fn labelled(label: &str, text: impl Into<String>) -> Line {
    Line::new(format!("{label}: "), Face::BOLD).and(text, Face::PLAIN)
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
