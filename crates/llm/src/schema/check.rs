//! Checks values with the small validator.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde_json::{Map, Number, Value};

use super::compile::{Bound, Check, IntegerKey, Members, Node, Size, SmallSchema, escaped};
use super::number::{compare, is_whole, same};
use super::violation::{self, ValueType, Violation, ViolationKind};

/// Options of an `enum` that a message lists at most.
const MAX_OPTIONS: usize = 3;

impl SmallSchema {
    /// Returns all violations, in the order of the keywords.
    pub(super) fn violations<'v>(&self, value: &'v Value) -> Vec<Violation<'v>> {
        let mut check = Checker { schema: self, entered: Vec::new(), violations: Vec::new() };
        check.node(&self.root, At { value, path: &Path::Root });
        check.violations
    }
}

/// A position in the value, as a list that is written out for a violation only.
enum Path<'p> {
    Root,
    Name(&'p Path<'p>, &'p str),
    Index(&'p Path<'p>, usize),
}

/// A value with its position.
#[derive(Clone, Copy)]
struct At<'p, 'v> {
    value: &'v Value,
    path: &'p Path<'p>,
}

struct Checker<'s, 'v> {
    schema: &'s SmallSchema,
    /// The references that are followed, with the value. One that leads back to itself without a step adds nothing.
    entered: Vec<(usize, *const Value)>,
    violations: Vec<Violation<'v>>,
}

impl Path<'_> {
    fn pointer(&self) -> String {
        match self {
            Path::Root => String::new(),
            Path::Name(above, name) => format!("{}/{}", above.pointer(), escaped(name)),
            Path::Index(above, index) => format!("{}/{index}", above.pointer()),
        }
    }
}

impl<'s, 'v> Checker<'s, 'v> {
    fn node(&mut self, node: &'s Node, at: At<'_, 'v>) {
        for (keyword, check) in &node.checks {
            self.check(node, keyword, check, at);
        }
    }

    fn is_valid(&mut self, node: &'s Node, at: At<'_, 'v>) -> bool {
        let before = self.violations.len();
        self.node(node, at);
        let is_valid = self.violations.len() == before;
        self.violations.truncate(before);
        is_valid
    }

    fn check(&mut self, node: &'s Node, keyword: &str, check: &'s Check, at: At<'_, 'v>) {
        let value = at.value;
        match check {
            Check::Never => self.add(&node.location, at, "False schema does not allow ".to_owned(), ""),
            Check::Object(members) => {
                if let Value::Object(object) = value {
                    self.members(node, members, object, at);
                }
            }
            Check::Prefix(nodes) => {
                for (index, (node, value)) in nodes.iter().zip(array(value)).enumerate() {
                    self.node(node, At { value, path: &Path::Index(at.path, index) });
                }
            }
            Check::Items(from, node) => {
                for (index, value) in array(value).iter().enumerate().skip(*from) {
                    self.node(node, At { value, path: &Path::Index(at.path, index) });
                }
            }
            Check::AllOf(nodes) => nodes.iter().for_each(|node| self.node(node, at)),
            Check::AnyOf(nodes) => {
                if !nodes.iter().any(|choice| self.is_valid(choice, at)) {
                    self.add_after(node, keyword, at, NO_CHOICE.replace("{}", keyword));
                }
            }
            Check::OneOf(nodes) => {
                let matching = nodes.iter().filter(|choice| self.is_valid(choice, at)).count();
                if matching == 0 {
                    self.add_after(node, keyword, at, NO_CHOICE.replace("{}", keyword));
                } else if matching > 1 {
                    self.add_after(node, keyword, at, SEVERAL_CHOICES.to_owned());
                }
            }
            Check::Not(inner, text) => {
                if self.is_valid(inner, at) {
                    self.add(&keyword_of(node, keyword), at, format!("{text} is not allowed for "), "");
                }
            }
            Check::Reference(index) => self.follow(*index, at),
            Check::Required(names) => self.required(node, names, at),
            Check::Type(_)
            | Check::Enum(_)
            | Check::Const(_)
            | Check::Bound(..)
            | Check::Size(..)
            | Check::Unique => {
                self.violations.extend(plain_violation(node, keyword, check, at));
            }
        }
    }

    fn required(&mut self, node: &Node, names: &[String], at: At<'_, 'v>) {
        let Value::Object(object) = at.value else { return };
        for name in names.iter().filter(|name| !object.contains_key(name.as_str())) {
            let kind = ViolationKind::Required { property: name.clone() };
            let text = format!("{} is a required property", Value::from(name.as_str()));
            self.violations.push(violation_of(keyword_of(node, "required"), at, kind, text, None));
        }
    }

    fn members(
        &mut self,
        node: &'s Node,
        members: &'s Members,
        object: &'v Map<String, Value>,
        at: At<'_, 'v>,
    ) {
        let mut unexpected = Vec::new();
        for (name, value) in object {
            let inner = At { value, path: &Path::Name(at.path, name) };
            let mut is_known = false;
            if let Some(node) = members.named.get(name) {
                is_known = true;
                self.node(node, inner);
            }
            for (key, node) in &members.integers {
                if is_integer(*key, name) {
                    is_known = true;
                    self.node(node, inner);
                }
            }
            match &members.others {
                Some(others) if !is_known && is_never(others) => unexpected.push(name.clone()),
                Some(others) if !is_known => self.node(others, inner),
                Some(_) | None => {}
            }
        }
        if !unexpected.is_empty() {
            let text = violation::unexpected(&unexpected);
            let kind = ViolationKind::Unexpected { properties: unexpected };
            self.violations.push(violation_of(
                keyword_of(node, "additionalProperties"),
                at,
                kind,
                text,
                None,
            ));
        }
    }

    fn follow(&mut self, index: usize, at: At<'_, 'v>) {
        let step = (index, std::ptr::from_ref(at.value));
        let schema: &'s SmallSchema = self.schema;
        let Some(target) = schema.targets.get(index).filter(|_| !self.entered.contains(&step)) else {
            return;
        };
        self.entered.push(step);
        self.node(target, at);
        self.entered.pop();
    }

    /// Adds a violation whose message has the value first.
    fn add_after(&mut self, node: &Node, keyword: &str, at: At<'_, 'v>, after: String) {
        self.violations.push(violation_of(
            keyword_of(node, keyword),
            at,
            ViolationKind::Other,
            String::new(),
            Some(after),
        ));
    }

    fn add(&mut self, schema_path: &str, at: At<'_, 'v>, before: String, after: &str) {
        let violation =
            violation_of(schema_path.to_owned(), at, ViolationKind::Other, before, Some(after.to_owned()));
        self.violations.push(violation);
    }
}

const NO_CHOICE: &str = " is not valid under any of the schemas listed in the '{}' keyword";
const SEVERAL_CHOICES: &str = " is valid under more than one of the schemas listed in the 'oneOf' keyword";

fn violation_of<'v>(
    schema_path: String,
    at: At<'_, 'v>,
    kind: ViolationKind,
    before: String,
    after: Option<String>,
) -> Violation<'v> {
    Violation { path: at.path.pointer(), schema_path, value: Cow::Borrowed(at.value), kind, before, after }
}

fn keyword_of(node: &Node, keyword: &str) -> String {
    format!("{}/{keyword}", node.location)
}

/// Returns the violation of a keyword without schemas within it.
fn plain_violation<'v>(node: &Node, keyword: &str, check: &Check, at: At<'_, 'v>) -> Option<Violation<'v>> {
    let value = at.value;
    let (kind, before, after) = match check {
        Check::Type(types) if !types.iter().any(|expected| is_of(*expected, value)) => {
            (ViolationKind::Type { expected: types.clone() }, String::new(), Some(wrong_type(types)))
        }
        Check::Enum(options) if !options.iter().any(|option| same(option, value)) => {
            let text = format!(" is not one of {}", listed(options));
            (ViolationKind::Enum { options: Value::Array(options.clone()) }, String::new(), Some(text))
        }
        Check::Const(expected) if !same(expected, value) => {
            (ViolationKind::Other, format!("{expected} was expected"), None)
        }
        Check::Bound(bound, limit) => {
            let Value::Number(number) = value else { return None };
            (ViolationKind::Other, String::new(), Some(beyond(*bound, number, limit)?))
        }
        Check::Size(size, limit) => {
            (ViolationKind::Other, String::new(), Some(beyond_size(*size, value, *limit)?))
        }
        Check::Unique if has_repetition(array(value)) => {
            (ViolationKind::Other, String::new(), Some(" has non-unique elements".to_owned()))
        }
        Check::Type(_) | Check::Enum(_) | Check::Const(_) | Check::Unique => return None,
        // They have schemas within them, or are checked above.
        Check::Never
        | Check::Required(_)
        | Check::Object(_)
        | Check::Prefix(_)
        | Check::Items(..)
        | Check::AllOf(_)
        | Check::AnyOf(_)
        | Check::OneOf(_)
        | Check::Not(..)
        | Check::Reference(_) => return None,
    };
    Some(violation_of(keyword_of(node, keyword), at, kind, before, after))
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn is_never(node: &Node) -> bool {
    matches!(node.checks.as_slice(), [(_, Check::Never)])
}

fn is_integer(key: IntegerKey, name: &str) -> bool {
    let digits = match key {
        IntegerKey::Unsigned => name,
        IntegerKey::Signed => name.strip_prefix('-').unwrap_or(name),
    };
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_of(expected: ValueType, value: &Value) -> bool {
    match (expected, value) {
        (ValueType::Integer, Value::Number(number)) => is_whole(number),
        (ValueType::Null, Value::Null)
        | (ValueType::Boolean, Value::Bool(_))
        | (ValueType::Number, Value::Number(_))
        | (ValueType::String, Value::String(_))
        | (ValueType::Array, Value::Array(_))
        | (ValueType::Object, Value::Object(_)) => true,
        _ => false,
    }
}

fn wrong_type(types: &[ValueType]) -> String {
    let names: Vec<String> = types.iter().map(|kind| format!("\"{kind}\"")).collect();
    let noun = if names.len() == 1 { "type" } else { "types" };
    format!(" is not of {noun} {}", names.join(", "))
}

/// Returns options as `a, b or c`, and the number of the others.
fn listed(options: &[Value]) -> String {
    let shown = if options.len() > MAX_OPTIONS { MAX_OPTIONS - 1 } else { options.len() };
    let mut names: Vec<String> = options.iter().take(shown).map(ToString::to_string).collect();
    let last = match options.len() - shown {
        0 => names.pop().unwrap_or_default(),
        others => format!("{others} other candidates"),
    };
    if names.is_empty() { last } else { format!("{} or {last}", names.join(", ")) }
}

/// Describes the violation of a bound; `None` for a number within it.
fn beyond(bound: Bound, number: &Number, limit: &Number) -> Option<String> {
    let order = compare(number, limit);
    let (is_beyond, text) = match bound {
        Bound::Minimum => (order == Ordering::Less, "less than the minimum"),
        Bound::Maximum => (order == Ordering::Greater, "greater than the maximum"),
        Bound::ExclusiveMinimum => (order != Ordering::Greater, "less than or equal to the minimum"),
        Bound::ExclusiveMaximum => (order != Ordering::Less, "greater than or equal to the maximum"),
    };
    is_beyond.then(|| format!(" is {text} of {limit}"))
}

/// Describes the violation of a limit; `None` for a value within it.
fn beyond_size(size: Size, value: &Value, limit: u64) -> Option<String> {
    let (count, one, many) = match (size, value) {
        (Size::MinLength | Size::MaxLength, Value::String(text)) => {
            (text.chars().count(), "character", "characters")
        }
        (Size::MinItems | Size::MaxItems, Value::Array(items)) => (items.len(), "item", "items"),
        (Size::MinProperties | Size::MaxProperties, Value::Object(object)) => {
            (object.len(), "property", "properties")
        }
        _ => return None,
    };
    let count = count as u64;
    let (is_beyond, text) = match size {
        Size::MinLength => (count < limit, "is shorter than"),
        Size::MaxLength => (count > limit, "is longer than"),
        Size::MinItems | Size::MinProperties => (count < limit, "has less than"),
        Size::MaxItems | Size::MaxProperties => (count > limit, "has more than"),
    };
    let noun = if limit == 1 { one } else { many };
    is_beyond.then(|| format!(" {text} {limit} {noun}"))
}

fn has_repetition(items: &[Value]) -> bool {
    items.iter().enumerate().any(|(index, item)| items.iter().take(index).any(|other| same(item, other)))
}
