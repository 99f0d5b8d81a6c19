//! Reports about the session and its settings.

use futures_util::future::BoxFuture;
use pintle_host::reports::{self, StatusReport};
use pintle_host::sanitize::sanitize;
use pintle_host::{instructions, process_env};

use super::LocalPort;
use crate::render::{Face, StyledLine, expand_tabs};
use crate::reports::{labelled, styled};
use crate::terminal::port::{PortReply, PortResult, Report, carried_out};

impl LocalPort<'_> {
    pub(super) fn report(&self, report: Report) -> BoxFuture<'static, PortResult> {
        let lines = match report {
            Report::Agents => self.agents(),
            Report::Changes => return self.changes(),
            Report::Configuration => return self.configuration(),
            Report::Instructions { project } => self.instructions(&project),
            Report::Jobs => self.jobs(),
            Report::Rules => styled(reports::permissions(self.resources.policy)),
            Report::Sessions => return self.list_sessions(),
            Report::Status => self.status(),
            Report::Tools => styled(reports::tools(&self.resources.offered)),
        };
        carried_out(Ok(PortReply::Lines(lines)))
    }

    fn agents(&self) -> Vec<StyledLine> {
        let agents = self.session.subagents();
        let line = |agent: &pintle_agent::SubagentHandle| {
            let state = if agent.is_closed() { "closed".to_owned() } else { agent.status().to_string() };
            labelled(&sanitize(agent.id()), state)
        };
        let lines: Vec<StyledLine> = agents.iter().map(line).collect();
        if lines.is_empty() { vec![labelled("agents", "none was started")] } else { lines }
    }

    fn jobs(&self) -> Vec<StyledLine> {
        let jobs = self.session.background_commands();
        let line = |job: &pintle_tools::builtin::BackgroundStatus| {
            let command: String = sanitize(&job.command).split_whitespace().collect::<Vec<_>>().join(" ");
            let state = format!("{command} ({}, {} s)", job.state, job.age.as_secs());
            labelled(&job.id.to_string(), state)
        };
        let lines: Vec<StyledLine> = jobs.iter().map(line).collect();
        if lines.is_empty() {
            vec![labelled("jobs", "no command was started in the background")]
        } else {
            lines
        }
    }

    /// Shows the configuration for new sessions.
    fn configuration(&self) -> BoxFuture<'static, PortResult> {
        let report = (self.resources.report_configuration)(self.resources.process_env.clone());
        Box::pin(async move {
            let text = report.await.map_err(|failure| failure.message())?;
            let mut lines: Vec<StyledLine> =
                text.lines().map(|line| StyledLine::plain(expand_tabs(line))).collect();
            lines.push(StyledLine::new("`pintle config edit` changes it, for sessions to come", Face::DIM));
            Ok(PortReply::Lines(lines))
        })
    }

    /// Lists the instruction files of the project, and those in the user's configuration.
    fn instructions(&self, project: &[(String, usize)]) -> Vec<StyledLine> {
        let mut lines: Vec<StyledLine> = project
            .iter()
            .map(|(path, bytes)| labelled("project", format!("{path}, {bytes} bytes")))
            .collect();
        let resources = &self.resources;
        let provider = resources.model.route.provider.name();
        for path in instructions::files(provider, resources.process_env) {
            let size = process_env::read_text_if_exists("instructions", &path).ok().flatten();
            if let Some(text) = size {
                lines.push(labelled("yours", format!("{}, {} bytes", path.display(), text.len())));
            }
        }
        if lines.is_empty() {
            lines.push(labelled("memory", "no instructions; a line that begins with `# ` adds to a file"));
        }
        lines
    }

    fn status(&self) -> Vec<StyledLine> {
        let resources = &self.resources;
        let status = StatusReport {
            session: self.session.id(),
            model: &self.model,
            directory: resources.directory,
            environment: &resources.environment,
            policy: resources.policy,
        };
        styled(status.lines())
    }
}
