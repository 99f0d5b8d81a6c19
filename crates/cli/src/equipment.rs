//! What the command brings for the tools of a model: the web, searches, questions to whoever sits at the terminal.

use std::sync::Arc;

use pintle_agent::{ProviderProfile, SearchBy, Toolset, ToolsetOptions};
use pintle_llm::{Client, Error};
use pintle_web::{AddressRules, FetchLimits, HttpWebClient, ProviderSearch};

use crate::args::ApproveName;
use crate::model::Model;
use crate::provider::Provider;

/// The smallest window, in tokens, in which more tools than those of the toolset leave room for the work.
const SMALLEST_WINDOW: u64 = 16_384;

/// What there is beyond the toolset.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Equipment {
    /// Whether searches may be made within the model's answers, where no gate sees them.
    pub(crate) ungated_search: bool,
    /// Whether somebody answers questions.
    pub(crate) questions: bool,
}

/// The profile of a run, with the toolset and what goes with it.
///
/// Searches go to the model's provider, and only to its own address with a model that is known: others might refuse
/// the request.
pub(crate) fn of_run(
    model: &Model,
    toolset: Toolset,
    approve: ApproveName,
    questions: bool,
) -> ProviderProfile {
    let ungated_search = match approve {
        ApproveName::Never | ApproveName::Writes | ApproveName::Commands => true,
        ApproveName::All => false,
    };
    let client = (model.route.base_url.is_none() && model.priced().is_some()).then_some(&model.client);
    equipped(model.profile(), toolset, client, Equipment { ungated_search, questions })
}

/// The profile of a model that nobody reaches, as it would be in a run without a terminal.
///
/// # Errors
///
/// None is expected: a client without providers can always be made.
pub(crate) fn shown(profile: ProviderProfile, toolset: Toolset) -> Result<ProviderProfile, Error> {
    let nobody = Client::builder().build()?;
    Ok(equipped(profile, toolset, Some(&nobody), Equipment { ungated_search: true, questions: false }))
}

fn equipped(
    profile: ProviderProfile,
    toolset: Toolset,
    client: Option<&Client>,
    equipment: Equipment,
) -> ProviderProfile {
    if profile.context_window_size < SMALLEST_WINDOW {
        return profile.with_toolset(toolset);
    }
    let web = HttpWebClient::new(FetchLimits::default(), AddressRules::public_only());
    let mut options = ToolsetOptions::new()
        .with_web(Arc::new(web))
        .with_plan(true)
        .with_background(true)
        .with_questions(equipment.questions);
    let engine =
        client.and_then(|client| ProviderSearch::new(client.clone(), &profile.provider, &profile.model));
    if let Some(engine) = engine {
        // As codex does it; other families call a tool for it.
        let within = equipment.ungated_search
            && toolset == Toolset::Native
            && profile.provider == Provider::OpenAi.name();
        let search = if within { SearchBy::Provider } else { SearchBy::Client(Arc::new(engine)) };
        options = options.with_search(search);
    }
    profile.with_toolset_and(toolset, &options)
}
