//! Operations on tasks with evidence. A server that does not serve tasks responds with 404.

use pintle_agent::SessionId;

use super::Client;
use crate::error::ClientError;
use crate::operation;
use crate::session_events::EventId;
use crate::task_events::TaskEvents;
use crate::tasks::{CancelBody, GateBody, GateDecision, SteerBody, TaskDetail, TaskGate, TaskPage};

impl Client {
    /// Lists tasks, the newest first: a page of at most `limit` tasks (default 50, maximum 100). `cursor` is `next` of the
    /// previous page.
    ///
    /// # Errors
    ///
    /// [`ClientError`], as for all methods that send a request.
    pub async fn list_tasks(
        &self,
        limit: Option<usize>,
        cursor: Option<&str>,
    ) -> Result<TaskPage, ClientError> {
        let limit = limit.map(|limit| limit.to_string());
        let request = self.request(&operation::LIST_TASKS, &[])?;
        self.get(request.query("limit", limit.as_deref()).query("cursor", cursor)).await
    }

    /// Reads a task, with its report.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn task(&self, task: &SessionId) -> Result<TaskDetail, ClientError> {
        self.get(self.session_request(&operation::READ_TASK, task)?).await
    }

    /// Reads the report about a task as Markdown.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn task_report(&self, task: &SessionId) -> Result<String, ClientError> {
        self.text(self.session_request(&operation::REPORT_TASK, task)?).await
    }

    /// Reads the newest changes of a candidate as a patch against the anchor.
    ///
    /// # Errors
    ///
    /// [`ClientError`]; with the code `not_found` as long as the candidate has changed no file.
    pub async fn candidate_diff(&self, task: &SessionId, candidate: usize) -> Result<Vec<u8>, ClientError> {
        let request = self.request(&operation::DIFF_CANDIDATE, &[task.as_str(), &candidate.to_string()])?;
        Ok(self.transport.call(&request).await?)
    }

    /// Follows the inputs of a task until it has ended, from the first input or after the input `after`. The stream
    /// reconnects automatically.
    #[must_use]
    pub fn task_events(&self, task: &SessionId, after: Option<EventId>) -> TaskEvents {
        TaskEvents::new(self.transport.clone(), task.clone(), after)
    }

    /// Sends a message to one candidate of a task, or to all candidates.
    ///
    /// # Errors
    ///
    /// [`ClientError`]; with the code `ended` for a task that has ended.
    pub async fn steer_task(
        &self,
        task: &SessionId,
        candidate: Option<usize>,
        text: &str,
    ) -> Result<(), ClientError> {
        let body = SteerBody { text, candidate };
        self.change(self.session_request(&operation::STEER_TASK, task)?.json(&body)?).await?;
        Ok(())
    }

    /// Decides on a gate of a task. Only the first decision counts; a later decision fails with the code `conflict`.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn decide_task(
        &self,
        task: &SessionId,
        gate: &TaskGate,
        decision: GateDecision,
    ) -> Result<(), ClientError> {
        let body = GateBody::new(gate, decision);
        self.change(self.session_request(&operation::DECIDE_TASK, task)?.json(&body)?).await?;
        Ok(())
    }

    /// Stops all work and ends a task permanently. The report contains the reason.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn cancel_task(&self, task: &SessionId, reason: Option<&str>) -> Result<(), ClientError> {
        self.change(self.session_request(&operation::CANCEL_TASK, task)?.json(&CancelBody { reason })?)
            .await?;
        Ok(())
    }
}
