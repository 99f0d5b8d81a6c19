//! How one answer looks on standard output.

use pintle_llm::StreamEvent;

use crate::args::OutputFormat;
use crate::failure::Failure;
use crate::render::{self, Prose, Style};

/// Turns the events of an answer into text.
#[derive(Debug)]
pub(crate) struct AnswerView {
    format: OutputFormat,
    style: Style,
    is_line_open: bool,
    prose: Prose,
}

impl AnswerView {
    /// Nothing shown yet. On a terminal, lines are broken between words at so many columns.
    pub(crate) fn new(format: OutputFormat, style: Style, columns: usize) -> Self {
        let mut prose = Prose::default();
        prose.set_columns(columns.checked_sub(1));
        Self { format, style, is_line_open: false, prose }
    }

    /// What an event adds: the text itself, the answer as one object at its end, or the event.
    ///
    /// # Errors
    ///
    /// Those of [`render::line`].
    pub(crate) fn event(&mut self, event: &StreamEvent) -> Result<String, Failure> {
        match self.format {
            OutputFormat::Text => Ok(self.text(event)),
            OutputFormat::Json => {
                if let StreamEvent::Finish { response, .. } = event {
                    render::line(response)
                } else {
                    Ok(String::new())
                }
            }
            OutputFormat::StreamJson => render::line(event),
        }
    }

    fn text(&mut self, event: &StreamEvent) -> String {
        if let StreamEvent::TextDelta { delta, .. } = event {
            if !delta.is_empty() {
                self.is_line_open = !delta.ends_with('\n');
            }
            if self.style.terminal { self.prose.push(delta) } else { delta.clone() }
        } else if matches!(event, StreamEvent::TextEnd { .. } | StreamEvent::Finish { .. }) {
            self.end()
        } else {
            String::new()
        }
    }

    /// Ends a line of text that is open.
    pub(crate) fn end(&mut self) -> String {
        let mut shown = self.prose.end();
        if std::mem::take(&mut self.is_line_open) {
            shown.push('\n');
        }
        shown
    }
}

#[cfg(test)]
mod tests {
    use pintle_llm::{Message, Response};

    use super::*;

    fn shown(format: OutputFormat) -> String {
        let response = Response::new("openai", "m", Message::assistant("Hi\nthere"));
        let delta = |delta: &str| StreamEvent::TextDelta { text_id: "0".to_owned(), delta: delta.to_owned() };
        let events = [
            StreamEvent::TextStart { text_id: "0".to_owned() },
            delta("Hi\n"),
            delta("there"),
            StreamEvent::TextEnd { text_id: "0".to_owned(), signature: None },
            StreamEvent::Finish {
                finish_reason: response.finish_reason.clone(),
                usage: response.usage.clone(),
                response: Box::new(response),
            },
        ];
        let mut view = AnswerView::new(format, Style::PLAIN, 80);
        events.iter().map(|event| view.event(event).unwrap()).collect()
    }

    #[test]
    fn text_is_streamed_and_its_last_line_ended() {
        assert_eq!(shown(OutputFormat::Text), "Hi\nthere\n");
    }

    #[test]
    fn json_is_the_answer_alone() {
        let text = shown(OutputFormat::Json);
        let response: Response = serde_json::from_str(&text).unwrap();
        assert_eq!((response.text().as_str(), text.lines().count()), ("Hi\nthere", 1));
    }

    #[test]
    fn a_stream_has_the_names_of_the_specification() {
        let text = shown(OutputFormat::StreamJson);
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let types: Vec<&str> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
        assert_eq!(types, ["TEXT_START", "TEXT_DELTA", "TEXT_DELTA", "TEXT_END", "FINISH"]);
        assert_eq!(lines[1]["delta"], "Hi\n");
    }
}
