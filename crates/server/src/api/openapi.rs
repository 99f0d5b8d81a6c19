//! OpenAPI 3.1 description of the interface, built from the same table as the router.

use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::routing::MethodRouter;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::{App, TokenScope, access, extractors};
use crate::problem::Problem;

/// Operation of the interface.
pub(super) struct Operation {
    pub(super) path: &'static str,
    method: &'static str,
    /// Scope that callers need; `None` if the operation needs no token.
    scope: Option<TokenScope>,
    id: &'static str,
    summary: &'static str,
    handler: MethodRouter<App>,
    query: &'static [Parameter],
    headers: &'static [Parameter],
    body: Option<SchemaOf>,
    answer: SuccessResponse,
    /// Further success status with its description. It has the same content.
    also: Option<(u16, &'static str)>,
    problems: &'static [u16],
}

type SchemaOf = fn(&mut SchemaGenerator) -> Value;

/// Pattern of a text that is not blank.
pub(super) const NOT_BLANK: &str = r"[^\s\u0085]";

/// Pattern of the id of an event.
pub(super) const EVENT_ID: &str = "^([0-9]{1,15}(-[0-9]{1,15})?)?$";

/// Pattern of the cursor of a page.
pub(super) const CURSOR: &str = r"^[0-9]{1,15}\.";

/// Largest integer that every client can represent.
pub(super) const MAX_NUMBER: u64 = (1 << 53) - 1;

/// Query parameter or header.
pub(super) struct Parameter {
    name: &'static str,
    meaning: &'static str,
    schema: ParameterSchema,
    is_required: bool,
}

enum ParameterSchema {
    /// Text, with an optional pattern.
    Text(Option<&'static str>),
    /// Integer in an inclusive range.
    Number(u64, u64),
    OneOf(&'static [&'static str]),
}

impl Parameter {
    pub(super) const fn text(name: &'static str, meaning: &'static str) -> Self {
        Self { name, meaning, schema: ParameterSchema::Text(None), is_required: false }
    }

    /// Creates a parameter whose text matches a regular expression.
    pub(super) const fn matching(name: &'static str, pattern: &'static str, meaning: &'static str) -> Self {
        Self { name, meaning, schema: ParameterSchema::Text(Some(pattern)), is_required: false }
    }

    pub(super) const fn number(name: &'static str, least: u64, most: u64, meaning: &'static str) -> Self {
        Self { name, meaning, schema: ParameterSchema::Number(least, most), is_required: false }
    }

    pub(super) const fn one_of(
        name: &'static str,
        values: &'static [&'static str],
        meaning: &'static str,
    ) -> Self {
        Self { name, meaning, schema: ParameterSchema::OneOf(values), is_required: false }
    }

    pub(super) const fn required(mut self) -> Self {
        self.is_required = true;
        self
    }

    fn describe(&self, place: &str) -> Value {
        let schema = match self.schema {
            ParameterSchema::Text(None) => json!({"type": "string"}),
            ParameterSchema::Text(Some(pattern)) => json!({"type": "string", "pattern": pattern}),
            ParameterSchema::Number(least, most) => {
                json!({"type": "integer", "minimum": least, "maximum": most})
            }
            ParameterSchema::OneOf(values) => json!({"type": "string", "enum": values}),
        };
        let mut described =
            json!({"name": self.name, "in": place, "description": self.meaning, "schema": schema});
        if let (true, Some(members)) = (self.is_required, described.as_object_mut()) {
            members.insert("required".to_owned(), true.into());
        }
        described
    }
}

/// Returns the schema of a path parameter.
fn path_schema(name: &str) -> Value {
    match name {
        "hash" => json!({"type": "string", "pattern": "^[0-9a-f]{64}$"}),
        "candidate" => json!({"type": "integer", "minimum": 0}),
        _ => json!({"type": "string", "minLength": 1}),
    }
}

/// Success response of an operation.
enum SuccessResponse {
    Empty(u16),
    Json(u16, SchemaOf),
    Other(u16, &'static [&'static str]),
}

impl Operation {
    pub(super) fn new(
        method: &'static str,
        path: &'static str,
        id: &'static str,
        scope: TokenScope,
        summary: &'static str,
        handler: MethodRouter<App>,
    ) -> Self {
        Self::with_scope(method, path, id, Some(scope), summary, handler)
    }

    /// Creates an operation that needs no token.
    pub(super) fn open(
        method: &'static str,
        path: &'static str,
        id: &'static str,
        summary: &'static str,
        handler: MethodRouter<App>,
    ) -> Self {
        Self::with_scope(method, path, id, None, summary, handler)
    }

    fn with_scope(
        method: &'static str,
        path: &'static str,
        id: &'static str,
        scope: Option<TokenScope>,
        summary: &'static str,
        handler: MethodRouter<App>,
    ) -> Self {
        let (query, headers, body, answer) = (&[][..], &[][..], None, SuccessResponse::Empty(202));
        let (also, problems) = (None, &[][..]);
        Self { path, method, scope, id, summary, handler, query, headers, body, answer, also, problems }
    }

    pub(super) fn with_query(mut self, query: &'static [Parameter]) -> Self {
        self.query = query;
        self
    }

    pub(super) fn with_headers(mut self, headers: &'static [Parameter]) -> Self {
        self.headers = headers;
        self
    }

    pub(super) fn also_answers(mut self, status: u16, meaning: &'static str) -> Self {
        self.also = Some((status, meaning));
        self
    }

    pub(super) fn with_body<T: JsonSchema>(mut self) -> Self {
        self.body = Some(schema_of::<T>);
        self
    }

    pub(super) fn answers<T: JsonSchema>(mut self, status: u16) -> Self {
        self.answer = SuccessResponse::Json(status, schema_of::<T>);
        self
    }

    pub(super) fn answers_nothing(mut self, status: u16) -> Self {
        self.answer = SuccessResponse::Empty(status);
        self
    }

    pub(super) fn answers_as(mut self, status: u16, media_types: &'static [&'static str]) -> Self {
        self.answer = SuccessResponse::Other(status, media_types);
        self
    }

    /// Sets the statuses of problems specific to the operation, in addition to the common ones.
    pub(super) fn with_problems(mut self, problems: &'static [u16]) -> Self {
        self.problems = problems;
        self
    }

    /// Returns whether the operation needs no token.
    pub(super) fn is_open(&self) -> bool {
        self.scope.is_none()
    }

    /// Returns the route, for callers with the scope.
    pub(super) fn route(self) -> MethodRouter<App> {
        let Some(scope) = self.scope else { return self.handler };
        self.handler
            .route_layer(from_fn(move |request: Request, next: Next| access::require(scope, request, next)))
    }

    /// Returns whether the operation accepts an idempotency key.
    fn takes_key(&self) -> bool {
        self.method != "get" && !self.is_open()
    }

    fn describe(&self, generator: &mut SchemaGenerator) -> Value {
        let security: Vec<_> = self.scope.iter().map(|scope| json!({"token": [scope.as_str()]})).collect();
        let mut operation = json!({
            "operationId": self.id,
            "summary": self.summary,
            "security": security,
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
            .map(|name| json!({"name": name, "in": "path", "required": true, "schema": path_schema(name)}));
        let in_query = self.query.iter().map(|parameter| parameter.describe("query"));
        let in_header = self.headers.iter().map(|parameter| parameter.describe("header"));
        let key = self.takes_key().then(|| {
            json!({
                "name": extractors::IDEMPOTENCY_KEY, "in": "header",
                "description": "A key that you made up. The same request with the same key does nothing again; another body with it is refused.",
                "schema": {"type": "string", "pattern": "^[!-~]{1,200}$"},
            })
        });
        in_path.chain(in_query).chain(in_header).chain(key).collect()
    }

    fn responses(&self, generator: &mut SchemaGenerator) -> Value {
        let mut responses = Map::new();
        let (status, answer) = match &self.answer {
            SuccessResponse::Empty(status) => (status, json!({"description": "Done, or accepted"})),
            SuccessResponse::Json(status, schema) => {
                let content = json!({"application/json": {"schema": schema(generator)}});
                (status, json!({"description": "The answer", "content": content}))
            }
            SuccessResponse::Other(status, media_types) => {
                let content: Map<_, _> =
                    media_types.iter().map(|name| ((*name).to_owned(), json!({}))).collect();
                (status, json!({"description": "The answer", "content": content}))
            }
        };
        let also = self.also.map(|(status, meaning)| {
            let mut answer = answer.clone();
            if let Some(answer) = answer.as_object_mut() {
                // Redirection statuses have no body.
                answer.retain(|name, _| name != "content" || !(300..400).contains(&status));
                answer.insert("description".to_owned(), meaning.into());
            }
            (status.to_string(), answer)
        });
        responses.insert(status.to_string(), answer);
        let common: &[u16] = match self.scope {
            Some(_) => &[400, 401, 403, 413, 415, 429, 500, 503],
            None => &[403, 500],
        };
        for status in common.iter().chain(self.problems) {
            responses.insert(status.to_string(), json!({"$ref": "#/components/responses/Problem"}));
        }
        if self.takes_key() {
            // The key belongs to another request.
            responses.insert("422".to_owned(), json!({"$ref": "#/components/responses/Problem"}));
        }
        responses.extend(also);
        Value::Object(responses)
    }
}

fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    generator.subschema_for::<T>().to_value()
}

/// Removes `null` defaults. Client generators infer from a default that the value is always present.
fn drop_null_defaults(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.retain(|name, value| name != "default" || !value.is_null());
            members.values_mut().for_each(drop_null_defaults);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_null_defaults),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
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
    let content = json!({"application/problem+json": {"schema": schema_of::<Problem>(&mut generator)}});
    let problem = json!({"description": "Reason why the request failed", "content": content});
    let mut schemas = Value::Object(generator.take_definitions(true));
    drop_null_defaults(&mut schemas);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Pintle",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Sessions of a coding agent. Errors are problem details (RFC 9457).",
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": {"Problem": problem},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    })
}

// The checked-in description has the operations of all features.
#[cfg(all(test, feature = "tasks"))]
mod tests {
    #![expect(
        clippy::disallowed_methods,
        reason = "the checked-in description is compared, and written when asked for"
    )]

    use super::*;

    #[test]
    fn the_checked_in_description_is_that_of_the_router() {
        let described = describe(&crate::api::operations());
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json");
        if std::env::var_os("WRITE_OPENAPI").is_some() {
            std::fs::write(path, format!("{described:#}\n")).unwrap();
        }
        // The order of members depends on the features of other crates in the build.
        let checked_in: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        assert!(checked_in == described, "openapi.json is outdated; to write it: cargo xtask generate");
    }
}
