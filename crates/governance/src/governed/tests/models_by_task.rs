//! A provider that several sessions share.

use async_trait::async_trait;
use pintle_llm::testing::FakeAdapter;
use pintle_llm::{Error, EventStream, ProviderAdapter, Request, Response, Role};

/// A provider with one fake model for each task.
#[derive(Debug)]
pub(super) struct ModelsByTask {
    name: &'static str,
    models: Vec<(&'static str, FakeAdapter)>,
}

impl ModelsByTask {
    /// Creates the provider. A task starts with the text of its model.
    pub(super) fn new(name: &'static str, models: Vec<(&'static str, FakeAdapter)>) -> Self {
        Self { name, models }
    }

    fn find(&self, request: &Request) -> &FakeAdapter {
        let first = request.messages.iter().find(|message| message.role == Role::User);
        let text = first.map(|message| message.text()).unwrap_or_default();
        &self.models.iter().find(|(task, _)| text.starts_with(task)).unwrap().1
    }
}

#[async_trait]
impl ProviderAdapter for ModelsByTask {
    fn name(&self) -> &str {
        self.name
    }

    async fn complete(&self, request: &Request) -> Result<Response, Error> {
        self.find(request).complete(request).await
    }

    async fn stream(&self, request: &Request) -> Result<EventStream, Error> {
        self.find(request).stream(request).await
    }
}
