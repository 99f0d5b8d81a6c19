//! The settings of a client's request for a new session.

use pintle_governance::{Grant, Mode};
use pintle_host::PartialSpec;
use pintle_host::env_spec::EnvSpec;
use pintle_host::failure::OrFailure as _;
use pintle_host::policy::check_rules;

use super::host_error;
use crate::host::{HostError, NewSession};

/// Returns the settings of a request, without its directory, which is not checked yet. `of_server` is the environment of the
/// server, and `is_fixed` is whether the settings of the server set it.
///
/// Fails if a value is wrong, or if the environment is fixed and another one is requested.
pub(super) fn request_settings(
    request: &NewSession,
    of_server: &EnvSpec,
    is_fixed: bool,
) -> Result<PartialSpec, HostError> {
    let NewSession { environment, rules, grant, settings, .. } = request;
    check_rules(&rules.allow, "rules.allow").map_err(host_error)?;
    check_rules(&rules.deny, "rules.deny").map_err(host_error)?;
    let mut spec = PartialSpec::default();
    let environment = environment.as_deref().map(parse_environment).transpose()?;
    if let Some(environment) = environment.filter(|environment| environment != of_server) {
        if is_fixed {
            let problem = format!("environment: the sessions of this server work in {of_server}");
            return Err(HostError::Invalid(problem));
        }
        spec.environment.kind = Some(environment.to_string());
    }
    spec.policy.allow.clone_from(&rules.allow);
    spec.policy.deny.clone_from(&rules.deny);
    let grant = grant.as_ref().map(|grant| Grant::parse(&grant.to_string())).transpose();
    spec.policy.grant = grant.or_usage("grant: the value is wrong").map_err(host_error)?;
    spec.policy.mode = settings.mode.as_deref().map(parse_mode).transpose()?;
    spec.model.name.clone_from(&settings.model);
    spec.model.reasoning_effort.clone_from(&settings.effort);
    Ok(spec)
}

fn parse_environment(text: &str) -> Result<EnvSpec, HostError> {
    text.parse().map_err(|problem| {
        HostError::Invalid(format!("environment: `{}` is wrong: {problem}", EnvSpec::redact(text)))
    })
}

/// Parses the mode of a request.
pub(super) fn parse_mode(mode: &str) -> Result<Mode, HostError> {
    mode.parse().map_err(|_| {
        HostError::Invalid(format!("there is no mode `{mode}`: expected plan, ask, edit or auto"))
    })
}

#[cfg(test)]
mod tests {
    use pintle_host::{LayerSpec, RequestClient, RequestSpec, ValueOrigin};
    use serde_json::json;

    use super::*;

    fn layer(set: impl FnOnce(&mut NewSession), is_fixed: bool) -> Result<LayerSpec, HostError> {
        let mut request = NewSession::default();
        set(&mut request);
        let spec = request_settings(&request, &EnvSpec::Local, is_fixed)?;
        Ok(RequestSpec { client: RequestClient::Http, can_approve: true, spec }.into())
    }

    #[test]
    fn each_field_of_a_request_is_a_setting() {
        let set = |request: &mut NewSession| {
            request.directory = Some("/w".to_owned());
            request.environment = Some("docker:c".to_owned());
            request.rules.allow = vec!["shell(ls)".to_owned()];
            request.rules.deny = vec!["web_fetch".to_owned()];
            request.settings.model = Some("m".to_owned());
            request.settings.mode = Some("plan".to_owned());
            request.settings.effort = Some("low".to_owned());
        };
        let layer = layer(set, false).unwrap();
        let origins: Vec<(&str, &ValueOrigin)> =
            layer.origins.iter().map(|(path, origin)| (path.as_str(), origin)).collect();
        let field = |name: &str| ValueOrigin::Request(name.to_owned());
        assert_eq!(
            origins,
            [
                ("environment.kind", &field("environment")),
                ("model.name", &field("model")),
                ("model.reasoning_effort", &field("effort")),
                ("policy.allow", &field("rules.allow")),
                ("policy.deny", &field("rules.deny")),
                ("policy.mode", &field("mode")),
            ]
        );
        assert_eq!((layer.spec.policy.mode, layer.spec.set_paths().len()), (Some(Mode::Plan), origins.len()));
    }

    #[test]
    fn wrong_requests_are_refused() {
        type Set = fn(&mut NewSession);
        let cases: [(Set, bool, &str); 5] = [
            (
                |request| request.environment = Some("moon".to_owned()),
                false,
                "environment: `moon` is wrong: expected local, docker:CONTAINER",
            ),
            (
                |request| request.environment = Some("docker:c".to_owned()),
                true,
                "the sessions of this server work in local",
            ),
            (|request| request.settings.mode = Some("all".to_owned()), false, "there is no mode `all`"),
            (|request| request.grant = Some(json!({"id": 7})), false, "grant: the value is wrong"),
            (|request| request.rules.deny = vec!["shell(git push".to_owned()], false, "rules.deny is wrong"),
        ];
        for (set, is_fixed, problem) in cases {
            let error = layer(set, is_fixed).unwrap_err();
            assert!(matches!(&error, HostError::Invalid(text) if text.contains(problem)), "{error:?}");
        }
        assert!(layer(|request| request.environment = Some("local".to_owned()), true).is_ok());
    }
}
