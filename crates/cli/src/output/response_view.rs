//! Formats a streamed response for standard output.

use pintle_host::failure::Failure;
use pintle_host::sanitize::json_line;
use pintle_llm::StreamEvent;
use pintle_tui::render::{Style, WordWrapper};

use crate::arguments::OutputFormat;

/// Formats the events of a response.
#[derive(Debug)]
pub(crate) struct ResponseView {
    format: OutputFormat,
    style: Style,
    is_line_open: bool,
    wrapper: WordWrapper,
}

impl ResponseView {
    /// Creates an empty view. On a terminal, lines are wrapped at `columns`.
    pub(crate) fn new(format: OutputFormat, style: Style, columns: usize) -> Self {
        let mut wrapper = WordWrapper::default();
        wrapper.set_columns(columns.checked_sub(1));
        Self { format, style, is_line_open: false, wrapper }
    }

    /// Returns the output for an event.
    pub(crate) fn event(&mut self, event: &StreamEvent) -> Result<String, Failure> {
        match self.format {
            OutputFormat::Text => Ok(self.text(event)),
            OutputFormat::Json => {
                if let StreamEvent::Finish { response, .. } = event {
                    json_line(response)
                } else {
                    Ok(String::new())
                }
            }
            OutputFormat::StreamJson => json_line(event),
        }
    }

    fn text(&mut self, event: &StreamEvent) -> String {
        if let StreamEvent::TextDelta { delta, .. } = event {
            if !delta.is_empty() {
                self.is_line_open = !delta.ends_with('\n');
            }
            if self.style.terminal { self.wrapper.push(delta) } else { delta.clone() }
        } else if matches!(event, StreamEvent::TextEnd { .. } | StreamEvent::Finish { .. }) {
            self.end()
        } else {
            String::new()
        }
    }

    /// Ends an open line of text.
    pub(crate) fn end(&mut self) -> String {
        let mut output = self.wrapper.end();
        if std::mem::take(&mut self.is_line_open) {
            output.push('\n');
        }
        output
    }
}

#[cfg(test)]
mod tests {
    use pintle_llm::{Message, Response};

    use super::*;

    fn output(format: OutputFormat) -> String {
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
        let mut view = ResponseView::new(format, Style::PLAIN, 80);
        events.iter().map(|event| view.event(event).unwrap()).collect()
    }

    #[test]
    fn text_ends_with_a_newline() {
        assert_eq!(output(OutputFormat::Text), "Hi\nthere\n");
    }

    #[test]
    fn json_is_the_response() {
        let text = output(OutputFormat::Json);
        let response: Response = serde_json::from_str(&text).unwrap();
        assert_eq!((response.text().as_str(), text.lines().count()), ("Hi\nthere", 1));
    }

    #[test]
    fn stream_events_are_named_as_specified() {
        let text = output(OutputFormat::StreamJson);
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let types: Vec<&str> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
        assert_eq!(types, ["TEXT_START", "TEXT_DELTA", "TEXT_DELTA", "TEXT_END", "FINISH"]);
        assert_eq!(lines[1]["delta"], "Hi\n");
    }
}
