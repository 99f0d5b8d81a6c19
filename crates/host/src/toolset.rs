//! Selects the tools of a model: its toolset, and web, search and question tools where they are available.

use std::collections::BTreeSet;
use std::sync::Arc;

use pintle_agent::{ProviderProfile, SearchBy, SubagentLimits, Toolset, ToolsetOptions};
use pintle_governance::{HostScope, Mode, PresentPlan};
use pintle_llm::Client;
use pintle_tools::ToolRegistry;
use pintle_web::{AddressRules, FetchLimits, HttpWebClient, ProviderSearch};

use crate::failure::{Failure, OrFailure as _};
use crate::model::Model;
use crate::provider::Provider;
use crate::spec::SessionSpec;

/// Minimum context window, in tokens, for offering tools beyond the toolset.
const MIN_WINDOW: u64 = 16_384;

/// Toolset that a run asks for, and the settings that further tools depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolsetChoice {
    /// Toolset that the user asks for.
    pub toolset: Toolset,
    /// Mode of the run; `None` for [`Mode::Auto`].
    pub mode: Option<Mode>,
    /// Whether the run has rules that deny calls.
    pub has_denials: bool,
    /// Whether web tools may use the network.
    pub network: bool,
}

impl From<&SessionSpec> for ToolsetChoice {
    fn from(spec: &SessionSpec) -> Self {
        Self {
            toolset: spec.tools.toolset,
            mode: Some(spec.policy.mode),
            has_denials: !spec.policy.deny.is_empty(),
            network: spec.environment.has_network(),
        }
    }
}

/// Conditions for tools beyond the toolset.
#[derive(Clone, Copy, Debug)]
struct ExtraTools {
    /// Whether the context window has room for them.
    fits_window: bool,
    /// Whether the provider may search while it generates a response, which no gate can check.
    ungated_search: bool,
    /// Whether a user can answer questions.
    questions: bool,
    /// Whether web tools may use the network, with or without a limit to some hosts.
    network: bool,
}

/// Returns the profile of a run with all its tools.
///
/// Web searches use the model's provider, but only at its default base URL and with a model from the catalog. Others might
/// reject the request. With a limit to `hosts`, pages of other hosts are not fetched, and there are no web searches, which
/// the provider makes without this limit.
pub(crate) fn build_run_profile(
    model: &Model,
    choice: &ToolsetChoice,
    hosts: Option<&HostScope>,
    questions: bool,
    is_granted: bool,
) -> Result<ProviderProfile, Failure> {
    let ToolsetChoice { toolset, mode, has_denials, network } = *choice;
    // A search by the provider must not bypass the rules.
    let is_ruled = has_denials || is_granted;
    let ungated_search = matches!(mode, None | Some(Mode::Auto)) && !is_ruled;
    let client = (model.route.base_url.is_none() && model.catalog_entry().is_some()).then_some(&model.client);
    let profile = model.profile();
    let fits_window = model.names_tools() || fits_extra_tools(&profile);
    let network = network || hosts.is_some();
    let extra = ExtraTools { fits_window, ungated_search, questions, network };
    let options = options(&profile, model.toolset(toolset), client, hosts, extra);
    let profile = model.profile_with_tools(toolset, &options);
    if network {
        profile
    } else {
        profile.map_err(|failure| failure.with_hint("web tools need --network on"))
    }
}

/// Returns the toolset options that a run without a terminal would have, for display without a model. `names_tools` is set
/// for a profile that lists its tools.
pub fn display_options(
    profile: &ProviderProfile,
    toolset: Toolset,
    names_tools: bool,
) -> Result<ToolsetOptions, Failure> {
    let client = Client::builder().build().or_failed("cannot list the tools")?;
    let fits_window = names_tools || fits_extra_tools(profile);
    let extra = ExtraTools { fits_window, ungated_search: true, questions: false, network: true };
    Ok(options(profile, toolset, Some(&client), None, extra))
}

/// Returns the names of all tools of all toolsets and models.
pub fn all_names() -> Result<BTreeSet<String>, Failure> {
    let mut names = BTreeSet::from([PresentPlan::NAME.to_owned()]);
    for profile in all_profiles()? {
        names.extend(profile.tools().iter().map(|tool| tool.name.clone()));
    }
    Ok(names)
}

/// Returns the kind of the tool with this name in any toolset; `None` if no toolset has it.
pub fn find_tool_kind(name: &str) -> Result<Option<String>, Failure> {
    let registry = find_registry(name)?;
    Ok(registry.and_then(|registry| registry.get(name).map(|tool| tool.kind().to_owned())))
}

/// Returns the tools of some toolset that has a tool with this name.
pub fn find_registry(name: &str) -> Result<Option<ToolRegistry>, Failure> {
    let registries = all_profiles()?.into_iter().map(|profile| profile.tool_registry);
    Ok(registries.into_iter().find(|registry| registry.get(name).is_some()))
}

/// Returns a profile for each provider and toolset, with all its tools.
fn all_profiles() -> Result<Vec<ProviderProfile>, Failure> {
    let mut profiles = Vec::new();
    for provider in Provider::ALL {
        for toolset in [Toolset::Native, Toolset::Spec] {
            let profile = provider.profile("any");
            let options = display_options(&profile, toolset, true)?;
            let profile = profile.with_toolset_options(toolset, &options);
            profiles.push(profile.as_in_session(SubagentLimits::default()));
        }
    }
    Ok(profiles)
}

fn fits_extra_tools(profile: &ProviderProfile) -> bool {
    profile.context_window_size >= MIN_WINDOW
}

/// Returns the toolset options for a profile.
fn options(
    profile: &ProviderProfile,
    toolset: Toolset,
    client: Option<&Client>,
    hosts: Option<&HostScope>,
    extra: ExtraTools,
) -> ToolsetOptions {
    if !extra.fits_window {
        return ToolsetOptions::default();
    }
    let options = ToolsetOptions::new().with_plan(true).with_background(true).with_questions(extra.questions);
    if !extra.network {
        return options;
    }
    let web = HttpWebClient::new(FetchLimits::default(), AddressRules::public_only()).staying_on_host();
    let web = match hosts {
        Some(hosts) => web.with_hosts(hosts.rules()),
        None => web,
    };
    let options = options.with_web(Arc::new(web));
    if hosts.is_some() {
        return options;
    }
    let engine =
        client.and_then(|client| ProviderSearch::new(client.clone(), &profile.provider, &profile.model));
    let Some(engine) = engine else { return options };
    // Codex does the same. Models of other providers call a tool.
    let is_provider_search =
        extra.ungated_search && toolset == Toolset::Native && profile.provider == Provider::OpenAi.name();
    options.with_search(if is_provider_search {
        SearchBy::Provider
    } else {
        SearchBy::Client(Arc::new(engine))
    })
}

#[cfg(test)]
mod tests {
    use pintle_tools::ToolKind;

    use super::*;

    /// Rules name tools by the names of any toolset.
    #[test]
    fn the_kind_of_each_built_in_tool_is_known_by_its_name() {
        let mut others = BTreeSet::new();
        for profile in all_profiles().unwrap() {
            for tool in profile.tool_registry.names() {
                let kind = profile.tool_registry.get(tool).unwrap().kind();
                let known = ToolKind::of_tool(tool).map(ToolKind::as_str);
                let expected = ToolKind::from_name(kind).map(ToolKind::as_str);
                if known != expected {
                    others.insert(tool.to_owned());
                }
            }
        }
        // A rule with one of these names is about the tool alone, and not about all tools of its kind.
        let alone = [
            "NotebookEdit",
            "Skill",
            "TaskOutput",
            "TaskStop",
            "activate_skill",
            "read_many_files",
            "shell_read",
            "shell_start",
            "shell_stop",
            "shell_write",
            "view_image",
            "write_stdin",
        ];
        assert_eq!(others.into_iter().collect::<Vec<_>>(), alone);
    }
}
