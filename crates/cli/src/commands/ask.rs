//! `pintle ask`: asks a model one question, without tools or a session.

use std::time::Duration;

use futures_util::StreamExt as _;
use pintle_host::failure::{Failure, FailureKind};
use pintle_host::model::Model;
use pintle_host::process_env::ProcessEnv;
use pintle_host::{explain, timeout};
use pintle_llm::{Finish, FinishReason, Message, ReasoningEffort, Request, Response, StreamEvent};
use pintle_tui::console::{self, Console};
use pintle_tui::interrupt::Interrupts;

use crate::arguments::AskArgs;
use crate::exit::Exit;
use crate::exit::command_failure::CommandFailure;
use crate::input::prompt_source;
use crate::output::response_view::ResponseView;

/// How long to wait for a reader to accept the end of an unfinished line.
const FINAL_WRITE_TIMEOUT: Duration = Duration::from_secs(1);

/// Asks the question and streams the response to standard output.
pub(crate) async fn ask(args: AskArgs, process_env: &ProcessEnv) -> Result<Exit, CommandFailure> {
    // Until the handlers are installed, a signal terminates the process, also while it reads standard input.
    let prompt = prompt_source::read(&args.prompt)?;
    let interrupts = Interrupts::listen()?;
    let model = interrupts.race(Model::choose(&(&args.model).into(), process_env)).await?;
    process_env.notices().report_all(model.unknown_model());
    let request = request(&args, &model, prompt);
    let mut view = ResponseView::new(args.output, console::style(process_env), console::size().columns);
    let mut console = Console::new();
    let result = interrupts.race(stream_response(&model, request, &mut view, &mut console)).await;
    if result.is_err() {
        // End the partial line so that the shell's prompt starts on its own.
        let _ = tokio::time::timeout(FINAL_WRITE_TIMEOUT, console.write(&view.end())).await;
    }
    let response = result?;
    for warning in &response.warnings {
        console::notice(&warning.message);
    }
    if let FinishReason { reason: Finish::Other, raw: Some(raw) } = &response.finish_reason {
        console::notice(&format!("the response ended for an unknown reason, `{raw}`; it may be incomplete"));
    }
    // The response, which has the finish reason, is already written.
    check_finish(response.finish_reason.reason).map_err(CommandFailure::already_in_output)
}

/// Returns the exit status for a finish reason.
fn check_finish(finish: Finish) -> Result<Exit, Failure> {
    match finish {
        Finish::Stop | Finish::ToolCalls | Finish::Other => Ok(Exit::Done),
        Finish::Length => {
            Err(Failure::new(FailureKind::LimitReached, "the response was cut off at the output limit"))
        }
        Finish::ContentFilter => Err(Failure::failed("the model or a content filter refused the request")),
        Finish::Error => Err(Failure::failed("the model failed in the middle of its response")),
    }
}

fn request(args: &AskArgs, model: &Model, prompt: String) -> Request {
    let system = args.system.clone().map(Message::system);
    let messages = system.into_iter().chain([Message::user(prompt)]);
    let limits = timeout::adapter_timeout(args.model.timeout);
    let request = Request::new(&model.route.model, messages).with_timeout(limits);
    match args.model.reasoning_effort.clone() {
        Some(effort) => request.with_reasoning_effort(ReasoningEffort::from(effort)),
        None => request,
    }
}

/// Streams the response to the console and returns it.
async fn stream_response(
    model: &Model,
    request: Request,
    view: &mut ResponseView,
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
    Err(Failure::failed("the response stream ended without a final event"))
}
