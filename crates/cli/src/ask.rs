//! `pintle ask`: one answer of a model, without tools and without a session.

use std::time::Duration;

use futures_util::StreamExt as _;
use pintle_llm::{Finish, Message, ReasoningEffort, Request, Response, StreamEvent};

use crate::answer::AnswerView;
use crate::args::AskArgs;
use crate::console::{self, Console};
use crate::exit::Exit;
use crate::explain;
use crate::failure::Failure;
use crate::host::Host;
use crate::interrupt::Interrupts;
use crate::model::Model;
use crate::prompt_source;
use crate::timeout;

/// How long the end of an unfinished line waits for a reader.
const PATIENCE: Duration = Duration::from_secs(1);

/// Asks and shows the answer.
///
/// # Errors
///
/// Everything but a whole answer, with the sentence and the exit code for it.
pub(crate) async fn ask(args: AskArgs, host: &Host) -> Result<Exit, Failure> {
    // While standard input is read, a signal simply ends the process.
    let prompt = prompt_source::read(&args.prompt)?;
    let interrupts = Interrupts::listen()?;
    let model = Model::of(&args.model, host).await?;
    let request = request(&args, &model, prompt);
    let mut view = AnswerView::new(args.output, console::style(host), console::size().columns);
    let mut console = Console::new();
    let answered = interrupts.unless(answer(&model, request, &mut view, &mut console)).await;
    if answered.is_err() {
        // What stands there already should not run into the shell's prompt; a reader who does not read has no prompt.
        let _ = tokio::time::timeout(PATIENCE, console.write(&view.end())).await;
    }
    let response = answered?;
    for warning in &response.warnings {
        console::notice(&warning.message);
    }
    // The response, which says the same, is written.
    ended(response.finish_reason.reason).map_err(Failure::in_output)
}

/// How the command ends after an answer that ended so.
fn ended(finish: Finish) -> Result<Exit, Failure> {
    match finish {
        Finish::Stop | Finish::ToolCalls | Finish::Other => Ok(Exit::Done),
        Finish::Length => Err(Failure::new(Exit::LimitReached, "the answer was cut off by the output limit")),
        Finish::ContentFilter => Err(Failure::failed("the model, or a filter before it, refused")),
        Finish::Error => Err(Failure::failed("the model failed in the middle of its answer")),
    }
}

fn request(args: &AskArgs, model: &Model, prompt: String) -> Request {
    let system = args.system.clone().map(Message::system);
    let messages = system.into_iter().chain([Message::user(prompt)]);
    let limits = timeout::limits(args.model.timeout);
    let request = Request::new(&model.route.model, messages).with_timeout(limits);
    match args.model.reasoning_effort.clone() {
        Some(effort) => request.with_reasoning_effort(ReasoningEffort::from(effort)),
        None => request,
    }
}

/// Streams the answer to the console and gives it whole.
async fn answer(
    model: &Model,
    request: Request,
    view: &mut AnswerView,
    console: &mut Console,
) -> Result<Response, Failure> {
    let mut events = match model.client.stream(request).await {
        Ok(events) => events,
        Err(error) => return Err(explain::model_error(error.info(), &model.route)),
    };
    while let Some(event) = events.next().await {
        let event = match event {
            Ok(event) => event,
            Err(error) => return Err(explain::model_error(error.info(), &model.route)),
        };
        console.write(&view.event(&event)?).await?;
        if let StreamEvent::Finish { response, .. } = event {
            return Ok(*response);
        }
    }
    Err(Failure::failed("the answer ended without its last event"))
}
