use std::borrow::Cow;
use std::sync::atomic::{AtomicUsize, Ordering};

use pintle_env::LocalEnvironment;
use pintle_llm::{Grammar, ToolCall};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use super::*;
use crate::context::ToolContext;
use crate::error::ToolErrorKind;
use crate::pipeline::{JudgedCall, prepare};
use crate::registry::ToolRegistry;
use crate::tool::{Effect, ToolOutput};
use crate::truncate::TruncationMode;

/// Number of times that the schema of [`Counted`] was derived.
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

/// An input whose schema holds an invalid pattern.
#[derive(Deserialize, JsonSchema)]
struct InvalidSchema {
    /// A text.
    #[expect(dead_code, reason = "only the schema is looked at")]
    #[schemars(regex(pattern = "("))]
    text: String,
}

/// A tool whose texts and rules are fields.
#[derive(Clone)]
struct Configurable<I> {
    name: &'static str,
    description: String,
    kind: &'static str,
    aliases: &'static [(&'static str, &'static str)],
    grammar: Option<Grammar>,
    chars: usize,
    input: fn(I),
}

impl<I> Configurable<I> {
    fn new() -> Self {
        Self {
            name: "configurable",
            description: "Does nothing.".into(),
            kind: "configurable",
            aliases: &[],
            grammar: None,
            chars: 100,
            input: |_| (),
        }
    }
}

impl<I: JsonSchema + for<'de> Deserialize<'de> + Send + 'static> Tool for Configurable<I> {
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
    let call = ToolCall::from_raw("c1", "configurable", arguments);
    match prepare(registry, &[], &env, &call).await {
        JudgedCall::Refused { error, .. } => Some((error.kind(), error.for_model().to_owned())),
        JudgedCall::Ready { .. } | JudgedCall::Ask { .. } => None,
    }
}

#[tokio::test]
async fn a_schema_is_derived_once_and_on_demand() {
    let (mut first, mut second) = (ToolRegistry::new(), ToolRegistry::new());
    for registry in [&mut first, &mut second] {
        registry.register_static(Configurable::<Counted>::new()).unwrap();
        assert_eq!(registry.names().collect::<Vec<_>>(), ["configurable"]);
    }
    assert_eq!(DERIVED.load(Ordering::Relaxed), 0);
    let definitions = first.definitions();
    assert_eq!(definitions[0].parameters["additionalProperties"], false, "it is the complete schema");
    assert_eq!((definitions, DERIVED.load(Ordering::Relaxed)), (second.definitions(), 1));
    assert_eq!(refusal(&first, "{}").await, None);
    let (kind, text) = refusal(&second, r#"{"x": 1}"#).await.unwrap();
    assert_eq!(
        (kind, text.as_str()),
        (
            ToolErrorKind::InvalidArguments,
            "Invalid arguments for tool: configurable\n- `x`: no such argument"
        )
    );
    assert_eq!(DERIVED.load(Ordering::Relaxed), 1);
}

#[test]
fn identical_tools_of_one_type_share_a_form() {
    #[derive(Deserialize, JsonSchema)]
    struct Input {}
    let plain = Configurable::<Input>::new;
    let form = |tool: &Configurable<Input>| ToolForm::shared(tool).unwrap();
    let grammar = Grammar { syntax: "lark".into(), definition: "start: \"a\"".into() };
    let others = [
        Configurable { name: "other", ..plain() },
        Configurable { description: "Does something.".into(), ..plain() },
        Configurable { kind: "shell", ..plain() },
        Configurable { aliases: &[("a", "b")], ..plain() },
        Configurable { grammar: Some(grammar), ..plain() },
        Configurable { chars: 7, ..plain() },
    ];
    let first = form(&plain());
    for other in others {
        assert!(!Arc::ptr_eq(&first, &form(&other)));
        assert!(Arc::ptr_eq(&first, &form(&plain())));
        assert!(form(&other).is_like(&ToolForm::from_tool(&other).unwrap()));
        assert!(!form(&other).is_like(&first), "{:?}", form(&other));
    }
}

#[tokio::test]
async fn an_invalid_schema_fails_verification_and_calls() {
    let mut registry = ToolRegistry::new();
    assert!(registry.register(Configurable::<InvalidSchema>::new()).is_err());
    registry.register_static(Configurable::<InvalidSchema>::new()).unwrap();
    let error = registry.verify_definitions().unwrap_err();
    assert_eq!(error.to_string(), "tool `configurable` cannot be registered");
    let (kind, text) = refusal(&registry, r#"{"text": "a"}"#).await.unwrap();
    assert_eq!(kind, ToolErrorKind::Failed);
    assert!(
        text.starts_with("tool `configurable` cannot be called: the schema of its arguments is wrong: "),
        "{text}"
    );
}

#[test]
fn an_invalid_name_is_refused_at_registration() {
    let mut registry = ToolRegistry::new();
    let tool = Configurable::<InvalidSchema> { name: "no name", ..Configurable::new() };
    let error = registry.register_static(tool).unwrap_err();
    assert_eq!(error.to_string(), "tool `no name` cannot be registered");
    assert_eq!(registry.names().count(), 0);
}

#[test]
fn the_form_of_another_tool_fails_verification() {
    #[derive(Deserialize, JsonSchema)]
    struct Input {}
    let plain = Configurable::<Input>::new;
    let other = Configurable { description: "Does something.".into(), ..plain() };
    let mut registry = ToolRegistry::new();
    registry.insert_with(ToolForm::shared(&plain()).unwrap(), Arc::new(plain()));
    registry.verify_definitions().unwrap();
    registry.insert_with(ToolForm::shared(&other).unwrap(), Arc::new(plain()));
    assert!(registry.verify_definitions().is_err());
}

/// A tool that registers another while its own description is read.
struct Registering;

impl Tool for Registering {
    type Input = Counted;

    fn name(&self) -> &str {
        "registering"
    }

    fn description(&self) -> &str {
        ToolRegistry::new().register_static(Configurable::<InvalidSchema>::new()).unwrap();
        "Does nothing."
    }

    fn effect(&self) -> Effect {
        Effect::Read
    }

    async fn call(&self, _: Counted, _: &ToolContext) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::default())
    }
}

#[test]
fn a_tool_may_register_others_while_it_is_registered() {
    for _ in 0..2 {
        ToolRegistry::new().register_static(Registering).unwrap();
    }
}
