//! The context of an invocation as the host of a task.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use pintle_store::{SessionId, StoreError};
use pintle_workflow::{DurableHost, TaskHostError, TaskSupervisor};
use restate_sdk::context::{
    ContextAwakeables as _, ContextReadState as _, ContextSideEffects as _, ContextTimers as _,
    ContextWriteState as _, ObjectContext, RunFuture as _, SharedObjectContext,
};
use restate_sdk::errors::{HandlerError, TerminalError};
use restate_sdk::serde::Json;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Key of the object's state that contains the awakeable on which the run waits.
const WAITING: &str = "waiting";

/// Status code for a task that does not exist.
const NOT_FOUND: u16 = 404;

/// Status code for invalid input.
const BAD_REQUEST: u16 = 400;

/// A run of the object.
pub(crate) struct RestateHost<'a, 'ctx> {
    pub(crate) context: &'a ObjectContext<'ctx>,
    pub(crate) supervisor: Arc<TaskSupervisor>,
    pub(crate) id: SessionId,
}

impl DurableHost for RestateHost<'_, '_> {
    type Error = TerminalError;

    async fn step<T, A, F>(&mut self, name: String, action: A) -> Result<T, TerminalError>
    where
        T: Serialize + DeserializeOwned + Send + 'static,
        A: FnOnce() -> F + Send + 'static,
        F: Future<Output = Result<T, TaskHostError>> + Send + 'static,
    {
        let kept = self.context.run(|| async move { action().await.map(Json).map_err(handler_error) });
        Ok(kept.name(name).await?.into_inner())
    }

    async fn sleep(&mut self, time: Duration) -> Result<(), TerminalError> {
        self.context.sleep(time).await
    }

    /// The wait does not need this process: the engine suspends the invocation, and resumes it when it is woken.
    async fn signal(&mut self, at_most: Duration) -> Result<(), TerminalError> {
        let (awakeable, woken) = self.context.awakeable::<()>();
        self.context.set(WAITING, awakeable);
        // A signal that was posted before the awakeable was stored could not wake this run.
        let (supervisor, id) = (Arc::clone(&self.supervisor), self.id.clone());
        let is_posted = self
            .step("inbox".to_owned(), || async move { Ok(supervisor.store().has_posted(&id).await?) })
            .await?;
        if !is_posted {
            let timer = self.context.sleep(at_most);
            restate_sdk::select! {
                woken = woken => woken?,
                ended = timer => ended?,
                on_cancel => return Err(TerminalError::new_with_code(409, "the invocation was cancelled")),
            }
        }
        self.context.clear(WAITING);
        Ok(())
    }
}

/// Wakes the run of a task if it waits for a signal.
pub(crate) async fn wake(context: &SharedObjectContext<'_>) -> Result<(), TerminalError> {
    if let Some(awakeable) = context.get::<String>(WAITING).await? {
        context.resolve_awakeable(&awakeable, ());
    }
    Ok(())
}

/// Converts an error. The engine retries after it, unless a retry cannot help.
pub(crate) fn handler_error(error: TaskHostError) -> HandlerError {
    let code = match &error {
        TaskHostError::Store(StoreError::NotFound(_)) => NOT_FOUND,
        TaskHostError::Contract(_)
        | TaskHostError::Json(_)
        | TaskHostError::NotATask { .. }
        | TaskHostError::Store(StoreError::InvalidId(_)) => BAD_REQUEST,
        TaskHostError::Store(_)
        | TaskHostError::NotHere { .. }
        | TaskHostError::Interrupted(_)
        | TaskHostError::Stopped
        | _ => {
            return error.into();
        }
    };
    TerminalError::new_with_code(code, error.to_string()).into()
}
