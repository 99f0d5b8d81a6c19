//! Merges layers.

use std::collections::BTreeMap;

use super::row::{Access, ClientScope, FieldRow};
use super::{BoundedValue, Layer, LayerSpec, ProblemKind, RequestClient, Resolved, SpecProblem, ValueOrigin};
use crate::spec::{Breadth, Combiner, FieldGetter, PartialSpec, ProfileRef, is_default};

const PROFILE: &str = "model.profile";
const KEEP: &str = "persistence.keep";
const SERVER_FILES: &str = "tools.server_files";
const USE_SERVERS: &str = "tools.use_servers";

/// Groups of fields. A stronger value of the first field discards weaker values of all fields of the group.
const GROUPS: &[(&str, &[&str])] = &[
    ("model.provider", &["model.name", "model.base_url", "model.script", "model.dialect", PROFILE]),
    (PROFILE, &["model.provider", "model.name", "model.base_url", "model.script", "model.dialect"]),
    ("environment.kind", &["environment.dir"]),
    (KEEP, &["policy.wait_approval"]),
    (SERVER_FILES, &[USE_SERVERS]),
    (USE_SERVERS, &[SERVER_FILES]),
];

/// Merges layers, given in any order. Of two layers of the same strength, the later one is stronger.
///
/// Values of a project that the project may not set are left out.
///
/// # Errors
///
/// The values of a client that it may not set, and values of [`Combine::Narrow`](crate::Combine::Narrow) that cannot be
/// reduced to the limit of the user, such as a grant that allows something that the user's grant does not allow.
pub fn merge(layers: impl IntoIterator<Item = LayerSpec>) -> Result<Resolved, Vec<SpecProblem>> {
    let mut layers = sort_layers(layers);
    let (left_out, problems) = remove_forbidden(&mut layers);
    discard_replaced(&mut layers);
    let mut merger = Merger { problems, ..Merger::new(&layers) };
    let combined = PartialSpec::combine(&mut merger);
    let Merger { origins, bounded, problems, .. } = merger;
    if problems.is_empty() {
        Ok(Resolved { spec: combined.resolve(), origins, left_out, bounded })
    } else {
        Err(problems)
    }
}

/// Combines the values of layers that are in order, without their origins and problems.
pub(super) fn combine_values(layers: &[LayerSpec]) -> PartialSpec {
    PartialSpec::combine(&mut Merger::new(layers))
}

/// Returns the layers from the weakest to the strongest.
pub(super) fn sort_layers(layers: impl IntoIterator<Item = LayerSpec>) -> Vec<LayerSpec> {
    let mut layers: Vec<LayerSpec> = layers.into_iter().collect();
    layers.sort_by_key(|layer| layer.layer.strength());
    layers
}

/// Unsets the values that their layers may not set. Returns the values of projects, then the values of clients.
fn remove_forbidden(layers: &mut [LayerSpec]) -> (Vec<SpecProblem>, Vec<SpecProblem>) {
    let mut flags = PartialSpec::default();
    for layer in layers.iter().filter(|layer| layer.layer == Layer::CommandLine) {
        flags.overlay(&layer.spec);
    }
    let (mut left_out, mut refused) = (Vec::new(), Vec::new());
    for layer in layers {
        for path in layer.spec.set_paths() {
            let Some((kind, expected)) = forbidden(layer, path, &flags) else { continue };
            let origin = layer.origin_of(path);
            let problem = SpecProblem { path, origin, kind, expected: expected.to_owned() };
            if matches!(layer.layer, Layer::Request { .. }) {
                refused.push(problem);
            } else {
                left_out.push(problem);
            }
            layer.spec.clear(path);
        }
    }
    (left_out, refused)
}

/// Returns why a layer may not set a field, and the expected value; `None` if it may.
fn forbidden(layer: &LayerSpec, path: &str, flags: &PartialSpec) -> Option<(ProblemKind, &'static str)> {
    let row = FieldRow::find(path);
    match layer.layer {
        Layer::Project { trusted } | Layer::ProjectProfile { trusted } => {
            let is_profile_file =
                path == PROFILE && matches!(layer.spec.model.profile, Some(ProfileRef::File(_)));
            let access = row.filter(|_| !is_profile_file).map_or(Access::User, |row| row.access);
            match access {
                Access::Safe => None,
                Access::Trusted if trusted => None,
                Access::Trusted => {
                    Some((ProblemKind::Untrusted, "no value, because the project is not trusted"))
                }
                Access::User => Some((
                    ProblemKind::NotAllowed,
                    "no value, because only your own configuration can set it",
                )),
            }
        }
        Layer::Request { client: RequestClient::Editor, .. } => {
            let is_offered = row.is_some_and(|row| row.acp.is_some());
            (!is_offered).then_some((ProblemKind::NotAllowed, "no value from an editor"))
        }
        Layer::Request { client: RequestClient::Http, can_approve } => {
            let Some(field) = row.and_then(|row| row.http) else {
                return Some((ProblemKind::NotAllowed, "no value from a client"));
            };
            if field.scope == ClientScope::Approve && !can_approve {
                return Some((ProblemKind::MissingScope, "a client with the scope `approve`"));
            }
            let is_fixed = field.is_fixed_by_flag && flags.is_set(path) && !flags.has_same(&layer.spec, path);
            is_fixed.then_some((
                ProblemKind::Fixed,
                "no other value, because the command line of the server sets it",
            ))
        }
        Layer::Default
        | Layer::User
        | Layer::UserProfile
        | Layer::Variables
        | Layer::Remembered { .. }
        | Layer::CommandLine => None,
    }
}

/// Unsets the values that a stronger layer replaces.
pub(super) fn discard_replaced(layers: &mut [LayerSpec]) {
    for position in (0..layers.len()).rev() {
        let (weaker, rest) = layers.split_at_mut(position);
        if let Some(stronger) = rest.first() {
            discard_weaker(weaker, &stronger.spec);
        }
    }
}

pub(super) fn discard_weaker(weaker: &mut [LayerSpec], stronger: &PartialSpec) {
    let profile = stronger.model.profile.as_ref();
    if profile.is_some() {
        weaker.iter_mut().for_each(|layer| layer.spec.clear(PROFILE));
    }
    // The values of a named profile are layers themselves, which the configuration overrides or not by its strength.
    let is_name = matches!(profile, Some(ProfileRef::Name(_)));
    for (first, others) in GROUPS.iter().filter(|(first, _)| replaces(stronger, first)) {
        let is_meant = |layer: &LayerSpec| {
            *first != PROFILE || !is_name || matches!(layer.layer, Layer::Remembered { .. })
        };
        for layer in weaker.iter_mut().filter(|layer| is_meant(layer)) {
            others.iter().for_each(|path| layer.spec.clear(path));
        }
    }
}

/// Returns whether a specification has a value of the first field of a group that discards weaker values.
fn replaces(spec: &PartialSpec, first: &str) -> bool {
    match first {
        KEEP => spec.persistence.keep == Some(false),
        USE_SERVERS => spec.tools.use_servers == Some(false),
        _ => spec.is_set(first),
    }
}

/// Combines the values of layers that are in order.
struct Merger<'l> {
    layers: &'l [LayerSpec],
    origins: BTreeMap<&'static str, Vec<ValueOrigin>>,
    bounded: Vec<BoundedValue>,
    problems: Vec<SpecProblem>,
}

impl<'l> Merger<'l> {
    fn new(layers: &'l [LayerSpec]) -> Self {
        Self { layers, origins: BTreeMap::new(), bounded: Vec::new(), problems: Vec::new() }
    }

    fn refuse(&mut self, path: &'static str, origin: ValueOrigin, kind: ProblemKind, expected: String) {
        self.problems.push(SpecProblem { path, origin, kind, expected });
    }
}

impl Combiner for Merger<'_> {
    fn replace<T: Clone + Default + PartialEq>(&mut self, path: &'static str, get: FieldGetter<T>) -> T {
        match self.layers.iter().rev().find(|layer| !is_default(get(&layer.spec))) {
            None => T::default(),
            Some(layer) => {
                self.origins.insert(path, vec![layer.origin_of(path)]);
                get(&layer.spec).clone()
            }
        }
    }

    fn append<T: Clone + PartialEq>(&mut self, path: &'static str, get: FieldGetter<Vec<T>>) -> Vec<T> {
        let (mut values, mut origins) = (Vec::new(), Vec::new());
        for layer in self.layers {
            for value in get(&layer.spec) {
                if !values.contains(value) {
                    values.push(value.clone());
                    origins.push(layer.origin_of(path));
                }
            }
        }
        if !origins.is_empty() {
            self.origins.insert(path, origins);
        }
        values
    }

    fn bounded<T: Breadth>(
        &mut self,
        path: &'static str,
        get: FieldGetter<Option<T>>,
        default: Option<T>,
    ) -> Option<T> {
        let mut current: Option<(T, ValueOrigin)> = None;
        // The value of the strongest layer of the user so far.
        let mut users: Option<(T, ValueOrigin)> = None;
        for layer in self.layers {
            let Some(value) = get(&layer.spec) else { continue };
            let own = (value.clone(), layer.origin_of(path));
            let limit = match &layer.layer {
                Layer::Request { can_approve: true, .. } => None,
                Layer::Request { can_approve: false, .. } => {
                    let now = current.as_ref().map(|(value, _)| value).or(default.as_ref());
                    // Without a default, the surface may be stricter than each value but the narrowest.
                    if !now.map_or_else(|| value.is_narrowest(), |now| value.is_within(now)) {
                        let expected = "a value that allows no more than the default of new sessions, or a client with \
                                        the scope `approve`";
                        self.refuse(path, own.1, ProblemKind::MissingScope, expected.to_owned());
                        continue;
                    }
                    None
                }
                Layer::Project { .. } | Layer::ProjectProfile { .. } => users.as_ref(),
                Layer::Remembered { user } => {
                    let then = user.as_ref().and_then(|user| get(user).as_ref());
                    users.as_ref().filter(|(now, _)| is_tighter(now, then))
                }
                Layer::Default | Layer::User | Layer::UserProfile | Layer::Variables | Layer::CommandLine => {
                    None
                }
            };
            match limit {
                Some((limit, origin)) if !value.is_within(limit) => {
                    self.bounded.push(BoundedValue { path, origin: own.1, limit: origin.clone() });
                    let within = value.within(limit).unwrap_or_else(|_| limit.clone());
                    current = Some((within, origin.clone()));
                }
                Some(_) | None => current = Some(own),
            }
            if layer.layer.belongs_to_user() {
                users.clone_from(&current);
            }
        }
        let (value, origin) = current?;
        self.origins.insert(path, vec![origin]);
        Some(value)
    }

    fn narrow<T: Breadth>(&mut self, path: &'static str, get: FieldGetter<Option<T>>) -> Option<T> {
        let is_limit = |layer: &&LayerSpec| layer.layer == Layer::Default || layer.layer.belongs_to_user();
        let (mut current, mut origins): (Option<T>, Vec<ValueOrigin>) = (None, Vec::new());
        for layer in self.layers.iter().filter(is_limit) {
            let Some(value) = get(&layer.spec) else { continue };
            let combined = current.as_ref().map_or_else(|| value.clone(), |weaker| value.over(weaker));
            if combined == *value {
                origins.clear();
            }
            origins.push(layer.origin_of(path));
            current = Some(combined);
        }
        for layer in self.layers.iter().filter(|layer| !is_limit(layer)) {
            let Some(value) = get(&layer.spec) else { continue };
            let origin = layer.origin_of(path);
            let within = current.as_ref().map_or_else(|| Ok(value.clone()), |limit| value.within(limit));
            match within {
                Ok(within) if Some(&within) == current.as_ref() => {}
                Ok(within) => {
                    if within == *value {
                        origins.clear();
                    }
                    origins.push(origin);
                    current = Some(within);
                }
                Err(axis) => {
                    let limit = origins.last().map_or_else(String::new, ToString::to_string);
                    let expected = format!("a value within the limit of {limit}, which it exceeds: {axis}");
                    self.refuse(path, origin, ProblemKind::Wider, expected);
                }
            }
        }
        if !origins.is_empty() {
            self.origins.insert(path, origins);
        }
        current
    }
}

/// Returns whether the configuration allows less than it did when a session was started.
fn is_tighter<T: Breadth>(now: &T, then: Option<&T>) -> bool {
    then.is_none_or(|then| !then.is_within(now))
}

#[cfg(test)]
mod tests {
    use pintle_governance::Mode;

    use super::*;
    use crate::spec::NetworkAccess::{self, Off, On};

    fn layer(layer: Layer, set: impl FnOnce(&mut PartialSpec)) -> LayerSpec {
        let mut spec = PartialSpec::default();
        set(&mut spec);
        LayerSpec::new(layer, spec, ValueOrigin::Default)
    }

    /// Returns the kinds of the problems of layers whose fields are not checked against the table of fields, which gives
    /// clients no name for some of them.
    fn problems(layers: impl IntoIterator<Item = LayerSpec>) -> Vec<ProblemKind> {
        let layers = sort_layers(layers);
        let mut merger = Merger::new(&layers);
        PartialSpec::combine(&mut merger);
        merger.problems.iter().map(|problem| problem.kind).collect()
    }

    #[test]
    fn a_client_without_the_scope_widens_no_field_with_or_without_a_default() {
        let network =
            |kind: Layer, access: NetworkAccess| layer(kind, |spec| spec.environment.network = Some(access));
        let client = |can_approve| Layer::Request { client: RequestClient::Http, can_approve };
        for (weaker, requested, is_refused) in [
            (None, On, true),
            (None, Off, false),
            (Some((Layer::Default, Off)), On, true),
            (Some((Layer::Default, On)), On, false),
            (Some((Layer::User, Off)), On, true),
            (Some((Layer::User, Off)), Off, false),
            (Some((Layer::User, On)), On, false),
        ] {
            let weaker = weaker.map(|(kind, access)| network(kind, access));
            for (can_approve, is_refused) in [(false, is_refused), (true, false)] {
                let request = network(client(can_approve), requested.clone());
                let found = problems(weaker.iter().cloned().chain([request]));
                let expected = if is_refused { vec![ProblemKind::MissingScope] } else { Vec::new() };
                assert_eq!(found, expected, "{weaker:?} {requested} {can_approve}");
            }
        }
        let mode = |mode: Mode| layer(client(false), |spec| spec.policy.mode = Some(mode));
        assert_eq!(problems([mode(Mode::Auto)]), [], "the default has a mode");
    }
}
