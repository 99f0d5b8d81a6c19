//! The description of the interface (OpenAPI 3.1), from the same table as the router.

use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::routing::MethodRouter;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::access::{self, Scope};
use super::{App, input};
use crate::problem::Problem;

/// Operation of the interface.
pub(super) struct Operation {
    pub(super) path: &'static str,
    method: &'static str,
    scope: Scope,
    id: &'static str,
    summary: &'static str,
    handler: MethodRouter<App>,
    query: &'static [Parameter],
    body: Option<SchemaOf>,
    answer: Answer,
    problems: &'static [u16],
}

type SchemaOf = fn(&mut SchemaGenerator) -> Value;

/// Parameter of a query.
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) meaning: &'static str,
    /// Type in JSON Schema.
    pub(super) schema: &'static str,
}

/// Successful answer of an operation.
enum Answer {
    Empty(u16),
    Json(u16, SchemaOf),
    Other(u16, &'static str),
}

impl Operation {
    pub(super) fn new(
        method: &'static str,
        path: &'static str,
        id: &'static str,
        scope: Scope,
        summary: &'static str,
        handler: MethodRouter<App>,
    ) -> Self {
        let (query, body, answer, problems) = (&[][..], None, Answer::Empty(202), &[][..]);
        Self { path, method, scope, id, summary, handler, query, body, answer, problems }
    }

    pub(super) fn with_query(mut self, query: &'static [Parameter]) -> Self {
        self.query = query;
        self
    }

    pub(super) fn with_body<T: JsonSchema>(mut self) -> Self {
        self.body = Some(schema_of::<T>);
        self
    }

    pub(super) fn answers<T: JsonSchema>(mut self, status: u16) -> Self {
        self.answer = Answer::Json(status, schema_of::<T>);
        self
    }

    pub(super) fn answers_nothing(mut self, status: u16) -> Self {
        self.answer = Answer::Empty(status);
        self
    }

    pub(super) fn answers_as(mut self, status: u16, media_type: &'static str) -> Self {
        self.answer = Answer::Other(status, media_type);
        self
    }

    /// Names the problems that are its own, besides those that every request can have.
    pub(super) fn with_problems(mut self, problems: &'static [u16]) -> Self {
        self.problems = problems;
        self
    }

    /// Returns the route, for callers with the scope.
    pub(super) fn route(self) -> MethodRouter<App> {
        let scope = self.scope;
        self.handler
            .route_layer(from_fn(move |request: Request, next: Next| access::require(scope, request, next)))
    }

    fn changes(&self) -> bool {
        self.method != "get"
    }

    fn describe(&self, generator: &mut SchemaGenerator) -> Value {
        let mut operation = json!({
            "operationId": self.id,
            "summary": self.summary,
            "security": [{"token": [self.scope.as_str()]}],
            "parameters": self.parameters(),
            "responses": self.responses(generator),
        });
        if let (Some(body), Some(operation)) = (self.body, operation.as_object_mut()) {
            let content = json!({"application/json": {"schema": body(generator)}});
            operation.insert("requestBody".to_owned(), json!({"required": true, "content": content}));
        }
        operation
    }

    fn parameters(&self) -> Vec<Value> {
        let in_path = self.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
        let in_path = in_path
            .map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}));
        let in_query = self.query.iter().map(|parameter| {
            let Parameter { name, meaning, schema } = parameter;
            json!({"name": name, "in": "query", "description": meaning, "schema": {"type": schema}})
        });
        let key = self.changes().then(|| {
            json!({
                "name": input::IDEMPOTENCY_KEY, "in": "header",
                "description": "A key that you made up. The same request with the same key does nothing again.",
                "schema": {"type": "string", "minLength": 1, "maxLength": 200},
            })
        });
        in_path.chain(in_query).chain(key).collect()
    }

    fn responses(&self, generator: &mut SchemaGenerator) -> Value {
        let mut responses = Map::new();
        let (status, answer) = match &self.answer {
            Answer::Empty(status) => (status, json!({"description": "Done, or accepted"})),
            Answer::Json(status, schema) => {
                let content = json!({"application/json": {"schema": schema(generator)}});
                (status, json!({"description": "The answer", "content": content}))
            }
            Answer::Other(status, media_type) => {
                (status, json!({"description": "The answer", "content": {*media_type: {}}}))
            }
        };
        responses.insert(status.to_string(), answer);
        let problem = schema_of::<Problem>(generator);
        for status in [400, 401, 403, 413, 415, 429, 500, 503].iter().chain(self.problems) {
            let content = json!({"application/problem+json": {"schema": problem}});
            responses.insert(status.to_string(), json!({"description": "Why not", "content": content}));
        }
        Value::Object(responses)
    }
}

fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    generator.subschema_for::<T>().to_value()
}

/// Returns the description of all operations.
pub(super) fn describe(operations: &[Operation]) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
    });
    let mut generator = settings.into_generator();
    let mut paths: Map<String, Value> = Map::new();
    for operation in operations {
        let described = operation.describe(&mut generator);
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        if let Some(path) = path.as_object_mut() {
            path.insert(operation.method.to_owned(), described);
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Pintle",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Sessions of a coding agent. Errors are problem details (RFC 9457).",
        },
        "paths": paths,
        "components": {
            "schemas": generator.take_definitions(true),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    })
}
