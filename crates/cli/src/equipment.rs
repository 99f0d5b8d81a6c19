//! What the command brings for the tools of a model: the web, searches, questions to whoever sits at the terminal.

use std::sync::Arc;

use pintle_agent::{ProviderProfile, SearchBy, Toolset, ToolsetOptions};
use pintle_llm::Client;
use pintle_web::{AddressRules, FetchLimits, HttpWebClient, ProviderSearch};

use crate::args::{ApproveName, RunArgs};
use crate::failure::Failure;
use crate::model::Model;
use crate::provider::Provider;

/// The smallest window, in tokens, in which more tools than those of the toolset leave room for the work.
const SMALLEST_WINDOW: u64 = 16_384;

/// What there is beyond the toolset.
#[derive(Clone, Copy, Debug)]
struct Equipment {
    /// Whether there is room for more tools than those of the toolset.
    roomy: bool,
    /// Whether searches may be made within the model's answers, where no gate sees them.
    ungated_search: bool,
    /// Whether somebody answers questions.
    questions: bool,
    /// Whether pages and searches may be had.
    network: bool,
}

/// The profile of a run, with the toolset and what goes with it.
///
/// Searches go to the model's provider, and only to its own address with a model that is known: others might refuse
/// the request.
///
/// # Errors
///
/// A usage failure for a profile of the user's own that names a tool which there is not.
pub(crate) fn of_run(model: &Model, args: &RunArgs, questions: bool) -> Result<ProviderProfile, Failure> {
    let toolset = Toolset::from(args.toolset);
    let ungated_search = match args.approve {
        ApproveName::Never | ApproveName::Writes | ApproveName::Commands => true,
        ApproveName::All => false,
    };
    let client = (model.route.base_url.is_none() && model.priced().is_some()).then_some(&model.client);
    let profile = model.profile();
    let roomy = model.names_tools() || has_room(&profile);
    let network = args.confinement.has_network();
    let equipment = Equipment { roomy, ungated_search, questions, network };
    let options = options(&profile, model.toolset(toolset), client, equipment);
    model.equipped(toolset, &options)
}

/// What goes with the tools of a model that nobody reaches, as it would in a run without a terminal. Who has named the
/// tools has those.
///
/// # Errors
///
/// None is expected: a client without providers can always be made.
pub(crate) fn shown(
    profile: &ProviderProfile,
    toolset: Toolset,
    names_tools: bool,
) -> Result<ToolsetOptions, Failure> {
    let nobody = Client::builder()
        .build()
        .map_err(|error| Failure::failed("the tools cannot be shown").because(&error))?;
    let roomy = names_tools || has_room(profile);
    let equipment = Equipment { roomy, ungated_search: true, questions: false, network: true };
    Ok(options(profile, toolset, Some(&nobody), equipment))
}

fn has_room(profile: &ProviderProfile) -> bool {
    profile.context_window_size >= SMALLEST_WINDOW
}

/// What the command has for the tools of this profile.
fn options(
    profile: &ProviderProfile,
    toolset: Toolset,
    client: Option<&Client>,
    equipment: Equipment,
) -> ToolsetOptions {
    if !equipment.roomy {
        return ToolsetOptions::default();
    }
    let options =
        ToolsetOptions::new().with_plan(true).with_background(true).with_questions(equipment.questions);
    if !equipment.network {
        return options;
    }
    let web = HttpWebClient::new(FetchLimits::default(), AddressRules::public_only());
    let options = options.with_web(Arc::new(web));
    let engine =
        client.and_then(|client| ProviderSearch::new(client.clone(), &profile.provider, &profile.model));
    let Some(engine) = engine else { return options };
    // As codex does it; other families call a tool for it.
    let within =
        equipment.ungated_search && toolset == Toolset::Native && profile.provider == Provider::OpenAi.name();
    options.with_search(if within { SearchBy::Provider } else { SearchBy::Client(Arc::new(engine)) })
}
