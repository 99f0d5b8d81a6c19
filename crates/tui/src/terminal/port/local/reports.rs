//! Reports about the session and its settings.

use futures_util::future::BoxFuture;
use pintle_host::{instructions, process_env};

use super::LocalPort;
use crate::render::{Face, Line, expand_tabs, sanitize};
use crate::reports::{self, Status, labelled};
use crate::terminal::port::{PortReply, PortResult, Report, carried_out};

impl LocalPort<'_> {
    pub(super) fn report(&self, report: Report) -> BoxFuture<'static, PortResult> {
        let lines = match report {
            Report::Agents => self.agents(),
            Report::Changes => return self.changes(),
            Report::Configuration => return self.configuration(),
            Report::Instructions { project } => self.instructions(&project),
            Report::Jobs => self.jobs(),
            Report::Rules => reports::permissions(self.surroundings.policy),
            Report::Sessions => return self.list_sessions(),
            Report::Status => self.status(),
            Report::Tools => reports::tools(&self.surroundings.offered),
        };
        carried_out(Ok(PortReply::Lines(lines)))
    }

    fn agents(&self) -> Vec<Line> {
        let agents = self.session.subagents();
        let line = |agent: &pintle_agent::SubagentHandle| {
            let state = if agent.is_closed() { "closed".to_owned() } else { agent.status().to_string() };
            labelled(&sanitize(agent.id()), state)
        };
        let lines: Vec<Line> = agents.iter().map(line).collect();
        if lines.is_empty() { vec![labelled("agents", "none was started")] } else { lines }
    }

    fn jobs(&self) -> Vec<Line> {
        let jobs = self.session.background_commands();
        let line = |job: &pintle_tools::builtin::BackgroundStatus| {
            let command: String = sanitize(&job.command).split_whitespace().collect::<Vec<_>>().join(" ");
            let state = format!("{command} ({}, {} s)", job.state, job.age.as_secs());
            labelled(&job.id.to_string(), state)
        };
        let lines: Vec<Line> = jobs.iter().map(line).collect();
        if lines.is_empty() {
            vec![labelled("jobs", "no command was started in the background")]
        } else {
            lines
        }
    }

    /// Shows the configuration for new sessions.
    fn configuration(&self) -> BoxFuture<'static, PortResult> {
        let report = (self.surroundings.report_configuration)(self.surroundings.process_env.clone());
        Box::pin(async move {
            let text = report.await.map_err(|failure| failure.message())?;
            let mut lines: Vec<Line> = text.lines().map(|line| Line::plain(expand_tabs(line))).collect();
            lines.push(Line::new("`pintle config edit` changes it, for sessions to come", Face::DIM));
            Ok(PortReply::Lines(lines))
        })
    }

    /// Lists the instruction files of the project, and those in the user's configuration.
    fn instructions(&self, project: &[(String, usize)]) -> Vec<Line> {
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
            model: &self.model,
            directory: surroundings.directory,
            environment: &surroundings.environment,
            policy: surroundings.policy,
        };
        status.lines()
    }
}
