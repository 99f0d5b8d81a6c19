use std::borrow::Cow;
use std::sync::atomic::{AtomicUsize, Ordering};

use pintle_env::LocalEnvironment;
use pintle_llm::ToolCall;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use super::*;
use crate::context::ToolContext;
use crate::error::{ToolError, ToolErrorKind};
use crate::pipeline::{Preparation, prepare};
use crate::registry::ToolRegistry;
use crate::tool::{Effect, ToolOutput};
use crate::truncate::TruncationMode;

/// How often the schema of [`Counted`] was derived.
static DERIVED: AtomicUsize = AtomicUsize::new(0);

#[derive(Deserialize)]
struct Counted {}

impl JsonSchema for Counted {
    fn schema_name() -> Cow<'static, str> {
        "Counted".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        DERIVED.fetch_add(1, Ordering::Relaxed);
        json_schema!({"type": "object"})
    }
}

/// A text that fits a pattern which is none.
#[derive(Deserialize, JsonSchema)]
struct Wrong {
    /// What.
    #[expect(dead_code, reason = "only the schema is looked at")]
    #[schemars(regex(pattern = "("))]
    text: String,
}

#[derive(Clone)]
struct Worded<I> {
    name: &'static str,
    description: String,
    kind: &'static str,
    aliases: &'static [(&'static str, &'static str)],
    grammar: Option<Grammar>,
    chars: usize,
    input: fn(I),
}

impl<I> Worded<I> {
    fn new() -> Self {
        Self {
            name: "worded",
            description: "Says.".into(),
            kind: "worded",
            aliases: &[],
            grammar: None,
            chars: 100,
            input: |_| (),
        }
    }
}

impl<I: JsonSchema + for<'de> Deserialize<'de> + Send + 'static> Tool for Worded<I> {
    type Input = I;

    fn name(&self) -> &str {
        self.name
    }

    fn description(&self) -> &str {
        &self.description
    }

    fn effect(&self) -> Effect {
        Effect::Read
    }

    fn kind(&self) -> &str {
        self.kind
    }

    fn truncation(&self) -> TruncationRule {
        TruncationRule::new(self.chars, TruncationMode::HeadTail)
    }

    fn aliases(&self) -> &[(&'static str, &'static str)] {
        self.aliases
    }

    fn grammar(&self) -> Option<Grammar> {
        self.grammar.clone()
    }

    async fn call(&self, input: I, _: &ToolContext) -> Result<ToolOutput, ToolError> {
        (self.input)(input);
        Ok(ToolOutput::default())
    }
}

async fn refusal(registry: &ToolRegistry, arguments: &str) -> Option<(ToolErrorKind, String)> {
    let env = LocalEnvironment::with_host_env("/project", []).unwrap();
    let call = ToolCall::from_raw("c1", "worded", arguments);
    match prepare(registry, &[], &env, &call).await {
        Preparation::Refused(error) => Some((error.kind(), error.for_model().to_owned())),
        Preparation::Ready(_) | Preparation::Ask { .. } => None,
    }
}

#[tokio::test]
async fn a_schema_is_derived_when_it_is_asked_for_and_then_never_again() {
    let (mut first, mut second) = (ToolRegistry::new(), ToolRegistry::new());
    for registry in [&mut first, &mut second] {
        registry.register_proven(Worded::<Counted>::new()).unwrap();
        assert_eq!(registry.names().collect::<Vec<_>>(), ["worded"]);
    }
    assert_eq!(DERIVED.load(Ordering::Relaxed), 0);
    let told = first.definitions();
    assert_eq!(told[0].parameters["additionalProperties"], false, "it is the whole schema");
    assert_eq!((told, DERIVED.load(Ordering::Relaxed)), (second.definitions(), 1));
    assert_eq!(refusal(&first, "{}").await, None);
    let (kind, text) = refusal(&second, r#"{"x": 1}"#).await.unwrap();
    assert_eq!(
        (kind, text.as_str()),
        (ToolErrorKind::InvalidArguments, "Invalid arguments for tool: worded\n- `x`: no such argument")
    );
    assert_eq!(DERIVED.load(Ordering::Relaxed), 1);
}

#[test]
fn tools_share_a_form_if_they_differ_in_nothing_that_shows() {
    #[derive(Deserialize, JsonSchema)]
    struct Input {}
    let plain = Worded::<Input>::new;
    let form = |tool: &Worded<Input>| ToolForm::proven(tool).unwrap();
    let grammar = Grammar { syntax: "lark".into(), definition: "start: \"a\"".into() };
    let others = [
        Worded { name: "other", ..plain() },
        Worded { description: "Sings.".into(), ..plain() },
        Worded { kind: "shell", ..plain() },
        Worded { aliases: &[("a", "b")], ..plain() },
        Worded { grammar: Some(grammar), ..plain() },
        Worded { chars: 7, ..plain() },
    ];
    for other in others {
        assert!(Arc::ptr_eq(&form(&plain()), &form(&plain())));
        assert!(!Arc::ptr_eq(&form(&plain()), &form(&other)));
        assert!(form(&other).is_like(&ToolForm::of(&other).unwrap()));
        assert!(!form(&other).is_like(&form(&plain())), "{:?}", form(&other));
    }
    let kept = FORMS.lock().unwrap()[&TypeId::of::<Worded<Input>>()].len();
    assert_eq!(kept, KEPT, "there is an end to it");
}

#[tokio::test]
async fn a_schema_that_is_wrong_is_found_by_the_proof_and_refused_at_a_call() {
    let mut registry = ToolRegistry::new();
    assert!(registry.register(Worded::<Wrong>::new()).is_err());
    registry.register_proven(Worded::<Wrong>::new()).unwrap();
    let error = registry.prove().unwrap_err();
    assert_eq!(error.to_string(), "tool `worded` cannot be registered");
    let (kind, text) = refusal(&registry, r#"{"text": "a"}"#).await.unwrap();
    assert_eq!(kind, ToolErrorKind::Failed);
    assert!(
        text.starts_with("tool `worded` cannot be called: the schema of its arguments is wrong: "),
        "{text}"
    );
}

#[test]
fn a_name_that_is_wrong_is_refused_at_once() {
    let mut registry = ToolRegistry::new();
    let error = registry.register_proven(Worded::<Wrong> { name: "no name", ..Worded::new() }).unwrap_err();
    assert_eq!(error.to_string(), "tool `no name` cannot be registered");
    assert_eq!(registry.names().count(), 0);
}

#[test]
fn a_form_of_another_tool_is_no_proof() {
    #[derive(Deserialize, JsonSchema)]
    struct Input {}
    let (plain, other) = (Worded::<Input>::new(), Worded { description: "Sings.".into(), ..Worded::new() });
    let mut registry = ToolRegistry::new();
    registry.register_as(ToolForm::proven::<Worded<Input>>(&plain).unwrap(), Arc::new(plain));
    registry.prove().unwrap();
    registry
        .register_as(ToolForm::proven::<Worded<Input>>(&other).unwrap(), Arc::new(Worded::<Input>::new()));
    assert!(registry.prove().is_err());
}
