//! Tracing spans: their tree, their fields, and the absence of message texts.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::sync::{Mutex, Once};

use pintle_tools::{Effect, Tool, ToolContext, ToolError, ToolOutput};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Metadata, Subscriber};

use super::*;

/// Subscriber that records everything on this thread. All tests here run on one thread.
#[derive(Clone, Default)]
struct Spans(Arc<Mutex<Recorded>>);

#[derive(Default)]
struct Recorded {
    /// The span with id n is at index n - 1.
    spans: Vec<SpanRecord>,
    entered: Vec<u64>,
    /// All recorded fields as text, to be searched.
    text: String,
}

struct SpanRecord {
    name: &'static str,
    parent: Option<u64>,
    fields: BTreeMap<&'static str, String>,
    handles: usize,
    events: Vec<String>,
}

#[derive(Default)]
struct Fields(BTreeMap<&'static str, String>);

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

impl Spans {
    fn begin() -> (Self, DefaultGuard) {
        // Without a subscriber in the process, another thread could disable a call site for good in the meantime.
        static INSTALL: Once = Once::new();
        INSTALL.call_once(|| tracing::subscriber::set_global_default(EnableAll).unwrap());
        let spans = Self::default();
        let guard = tracing::subscriber::set_default(spans.clone());
        (spans, guard)
    }

    fn with<T>(&self, read: impl FnOnce(&mut Recorded) -> T) -> T {
        read(&mut self.0.lock().unwrap())
    }

    /// Returns each span below its parent, in order of creation, with the events inside.
    fn tree(&self) -> String {
        self.with(|recorded| {
            let mut tree = String::new();
            recorded.branch(None, 0, &mut tree);
            tree
        })
    }

    /// Returns the fields of the first span of this name, one per line.
    fn fields(&self, name: &str) -> String {
        self.with(|recorded| {
            let span = recorded.spans.iter().find(|span| span.name == name).expect("there is such a span");
            span.fields.iter().map(|(field, value)| format!("{field} = {value}\n")).collect()
        })
    }
}

impl Recorded {
    fn branch(&self, parent: Option<u64>, depth: usize, tree: &mut String) {
        for (id, span) in (1..).zip(&self.spans).filter(|(_, span)| span.parent == parent) {
            let open = if span.handles > 0 { " (open)" } else { "" };
            writeln!(tree, "{:1$}{2}{open}", "", depth * 2, span.name).unwrap();
            for event in &span.events {
                writeln!(tree, "{:1$}- {event}", "", depth * 2 + 2).unwrap();
            }
            self.branch(Some(id), depth + 1, tree);
        }
    }

    fn span(&mut self, id: &Id) -> &mut SpanRecord {
        let index = usize::try_from(id.into_u64()).unwrap() - 1;
        &mut self.spans[index]
    }

    fn record_text(&mut self, fields: &Fields) {
        for (field, value) in &fields.0 {
            writeln!(self.text, "{field}={value}").unwrap();
        }
    }
}

/// Subscriber that enables everything and records nothing.
struct EnableAll;

impl Subscriber for EnableAll {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

impl Subscriber for Spans {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = Fields::default();
        span.record(&mut fields);
        self.with(|recorded| {
            recorded.record_text(&fields);
            let current = span.is_contextual().then(|| recorded.entered.last().copied()).flatten();
            let parent = span.parent().map(Id::into_u64).or(current);
            let name = span.metadata().name();
            recorded.spans.push(SpanRecord {
                name,
                parent,
                fields: fields.0,
                handles: 1,
                events: Vec::new(),
            });
            Id::from_u64(recorded.spans.len() as u64)
        })
    }

    fn record(&self, id: &Id, values: &Record<'_>) {
        let mut fields = Fields::default();
        values.record(&mut fields);
        self.with(|recorded| {
            recorded.record_text(&fields);
            recorded.span(id).fields.extend(fields.0);
        });
    }

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        self.with(|recorded| {
            recorded.record_text(&fields);
            if let Some(id) = recorded.entered.last().copied() {
                let message = fields.0.get("message").cloned().unwrap_or_default();
                recorded.span(&Id::from_u64(id)).events.push(message);
            }
        });
    }

    fn enter(&self, id: &Id) {
        self.with(|recorded| recorded.entered.push(id.into_u64()));
    }

    fn exit(&self, id: &Id) {
        self.with(|recorded| {
            let index = recorded.entered.iter().rposition(|entered| *entered == id.into_u64()).unwrap();
            recorded.entered.remove(index);
        });
    }

    fn clone_span(&self, id: &Id) -> Id {
        self.with(|recorded| recorded.span(id).handles += 1);
        id.clone()
    }

    fn try_close(&self, id: Id) -> bool {
        self.with(|recorded| {
            let span = recorded.span(&id);
            span.handles -= 1;
            span.handles == 0
        })
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}
}

/// Tool that emits a tracing event.
#[derive(Debug)]
struct Chatty;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct About {
    about: String,
}

impl Tool for Chatty {
    type Input = About;

    fn name(&self) -> &str {
        "chatty"
    }

    fn description(&self) -> &str {
        "Talks."
    }

    fn effect(&self) -> Effect {
        Effect::Read
    }

    async fn call(&self, input: About, _cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        tokio::task::yield_now().await;
        tracing::info!("from within a tool");
        Ok(ToolOutput::new(format!("marker in the output about {}", input.about)))
    }
}

fn chatty(adapter: FakeAdapter) -> Session {
    let client = Client::builder().provider(adapter).middleware(pintle_llm::Logging::new()).build().unwrap();
    let profile = ProviderProfile::new("anthropic", "model-1").with_tool(Chatty).unwrap();
    let quick = RetryPolicy::default().with_base_delay(std::time::Duration::from_millis(1));
    Session::builder(client, profile, Arc::new(env()))
        .with_id(SessionId::new("s-1"))
        .with_config(SessionConfig::default().with_retry(quick))
        .build()
        .unwrap()
}

fn talk() -> Message {
    calling(&[("chatty", json!({"about": "marker in the arguments"}))])
}

#[tokio::test]
async fn spans_of_calls_are_within_runs_and_sessions() {
    let (spans, _guard) = Spans::begin();
    let session = {
        let host = tracing::info_span!("host");
        let _entered = host.enter();
        chatty(anthropic().message(talk()).answer("marker in the answer").answer("again"))
    };
    session.submit("marker in the prompt").await.unwrap();
    session.submit("once more").await.unwrap();
    session.close().await;
    insta::assert_snapshot!(spans.tree(), @r#"
    host
      session
        gen_ai.invoke_agent
          gen_ai.chat
            gen_ai.chat
              - model call completed
          gen_ai.execute_tool
            - from within a tool
          gen_ai.chat
            gen_ai.chat
              - model call completed
        gen_ai.invoke_agent
          gen_ai.chat
            gen_ai.chat
              - model call completed
    "#);
    insta::assert_snapshot!(spans.fields("session"), @r#"
    gen_ai.conversation.id = s-1
    otel.kind = internal
    pintle.session.depth = 0
    "#);
    insta::assert_snapshot!(spans.fields("gen_ai.invoke_agent"), @r#"
    gen_ai.conversation.id = s-1
    gen_ai.operation.name = invoke_agent
    gen_ai.provider.name = anthropic
    gen_ai.request.model = model-1
    gen_ai.usage.input_tokens = 20
    gen_ai.usage.output_tokens = 10
    otel.kind = internal
    otel.name = invoke_agent
    pintle.run.id = 0
    pintle.run.model_calls = 2
    pintle.run.outcome = completed
    pintle.run.tool_calls = 1
    "#);
    insta::assert_snapshot!(spans.fields("gen_ai.execute_tool"), @r#"
    gen_ai.conversation.id = s-1
    gen_ai.operation.name = execute_tool
    gen_ai.tool.call.id = call_0_chatty
    gen_ai.tool.name = chatty
    gen_ai.tool.type = function
    otel.kind = internal
    otel.name = execute_tool chatty
    "#);
    let text = spans.with(|recorded| recorded.text.clone());
    assert!(!text.contains("marker"), "{text}");
}

#[tokio::test]
async fn model_call_has_one_span_for_all_attempts() {
    let (spans, _guard) = Spans::begin();
    let adapter = anthropic().cut("half", Error::new(ErrorKind::Stream, "marker cut")).answer("whole");
    let session = chatty(adapter);
    session.submit("go").await.unwrap();
    session.close().await;
    insta::assert_snapshot!(spans.tree(), @r#"
    session
      gen_ai.invoke_agent
        gen_ai.chat
          gen_ai.chat
            - model call failed
          gen_ai.chat
            - model call completed
    "#);
    insta::assert_snapshot!(spans.fields("gen_ai.chat"), @r#"
    gen_ai.conversation.id = s-1
    gen_ai.operation.name = chat
    gen_ai.provider.name = anthropic
    gen_ai.request.model = model-1
    gen_ai.response.finish_reasons = ["stop"]
    gen_ai.response.model = model-1
    gen_ai.usage.input_tokens = 10
    gen_ai.usage.output_tokens = 5
    otel.kind = client
    otel.name = chat model-1
    "#);
}

#[tokio::test]
async fn spans_have_error_kinds_without_messages() {
    let (spans, _guard) = Spans::begin();
    let error = Error::new(ErrorKind::InvalidRequest, "marker of a provider").with_status(400);
    let session = chatty(anthropic().message(calling(&[("chatty", json!({"about": "x"}))])).failure(error));
    session.submit("go").await.or_else(crate::RunError::into_outcome).unwrap();
    session.close().await;
    let of = |name: &str| {
        let fields = spans.with(|recorded| {
            let span = recorded.spans.iter().rfind(|span| span.name == name).unwrap();
            span.fields.clone()
        });
        ["otel.status_code", "error.type", "http.response.status_code", "pintle.run.outcome"]
            .map(|field| fields.get(field).cloned().unwrap_or_default())
    };
    assert_eq!(of("gen_ai.invoke_agent"), ["ERROR", "invalid_request", "", "failed"]);
    let text = spans.with(|recorded| recorded.text.clone());
    assert!(!text.contains("marker of"), "{text}");
}

#[tokio::test]
async fn span_of_a_subagent_is_within_its_parent() {
    let (spans, _guard) = Spans::begin();
    let spawn = calling(&[("spawn_agent", json!({"task": "marker in the task"}))]);
    let adapter = anthropic().message(spawn).answer("one").answer("two");
    let client = Client::builder().provider(adapter).build().unwrap();
    let profile = ProviderProfile::anthropic("claude-opus-4-6");
    let id = SessionId::new("s-1");
    let session = Session::builder(client, profile, Arc::new(env())).with_id(id).build().unwrap();
    let mut events = session.tree_events();
    session.submit("go").await.unwrap();
    let worked = async {
        while let Some(event) = events.next().await {
            if event.depth == 1 && kind(&event) == "PROCESSING_END" {
                break;
            }
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), worked).await.expect("the subagent works");
    session.close().await;
    spans.with(|recorded| {
        let child = recorded.spans.iter().rfind(|span| span.name == "session").unwrap();
        let parent = recorded.spans.iter().position(|span| span.name == "session").unwrap() as u64 + 1;
        assert_eq!(child.parent, Some(parent));
        assert_eq!(
            (child.fields["pintle.session.parent"].as_str(), child.fields["pintle.session.depth"].as_str()),
            ("s-1", "1")
        );
        assert!(!recorded.text.contains("marker"), "{}", recorded.text);
    });
    assert!(!spans.tree().contains("open"), "{}", spans.tree());
}

#[tokio::test]
async fn stopped_call_is_recorded_and_all_spans_close() {
    let (spans, _guard) = Spans::begin();
    let harness = harness(anthropic().message(hanging()), env_with_sleep());
    let mut run = harness.session.submit("go");
    until(&mut run, "TOOL_CALL_START").await;
    harness.session.handle().stop_turn().unwrap();
    run.await.unwrap();
    assert!(spans.fields("gen_ai.execute_tool").contains("error.type = cancelled"));
    assert!(spans.fields("gen_ai.invoke_agent").contains("pintle.run.outcome = interrupted"));
    drop(harness);
    tokio::task::yield_now().await;
    assert!(!spans.tree().contains("open"), "{}", spans.tree());
}
