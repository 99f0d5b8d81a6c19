//! Attachments of the next message: images, and outputs of the user's commands.

use pintle_agent::ImageSummary;
use pintle_host::prompt_commands::PromptText;
use pintle_host::sanitize::sanitize;
use pintle_llm::ImageData;

use super::Conversation;
use crate::render::{Face, StyledLine, expand_tabs, one_line, plural};
use crate::terminal::images::{NamedImage, OutgoingMessage, mention};

/// Maximum number of output lines of a command shown.
const SHOWN_OUTPUT: usize = 20;

/// Maximum length of an image name in its label, in characters.
const MAX_NAME: usize = 40;

impl Conversation {
    /// Inserts pasted text.
    pub(crate) fn paste(&mut self, text: &str) {
        self.history.leave();
        self.editor.paste(text);
    }

    /// Inserts the name of an image that was pasted, or that was dropped as a file with this path.
    pub(crate) fn attach(&mut self, path: Option<&str>, image: ImageData) {
        let label = attachment_label(path, &image);
        let name = self.pasted.keep(path, image);
        self.history.leave();
        self.editor.insert_labelled(&mention(&name), label);
    }

    /// Returns the message of a prompt, with its images.
    pub(crate) fn message_from_prompt(&mut self, prompt: PromptText) -> OutgoingMessage {
        let names = prompt.images.into_iter().map(|image| (self.pasted.keep(None, image.clone()), image));
        let images = names.map(|(name, image)| NamedImage { name, pasted: Some(image) });
        OutgoingMessage { text: prompt.text, images: images.collect(), instruction: None }
    }

    /// Shows the output of a command of the user, and keeps it for the next message.
    pub(crate) fn ran(&mut self, command: &str, ended: &str, output: &str) {
        self.transcript.line(
            &StyledLine::new("! ", Face::BOLD)
                .and(summary_of(command), Face::BOLD)
                .and(format!(" {ended}"), Face::DIM),
        );
        let lines: Vec<&str> = output.lines().collect();
        let first = lines.len().saturating_sub(SHOWN_OUTPUT);
        let shown = lines.get(first..).unwrap_or_default().iter();
        let shown: Vec<StyledLine> =
            shown.map(|line| StyledLine::new(expand_tabs(&sanitize(line)), Face::DIM)).collect();
        if first > 0 {
            let more = plural(first as u64, "more line");
            self.transcript.below([StyledLine::new(format!("… {more} before"), Face::DIM)]);
        }
        self.transcript.below(shown);
        self.outputs.push(format!("I ran `{command}` ({ended}):\n\n```\n{}\n```\n\n", output.trim_end()));
    }

    /// Returns a message with the images that it names, and with the outputs of the user's commands since the previous
    /// message.
    pub(crate) fn compose_message(&mut self, text: &str) -> OutgoingMessage {
        let images = self.pasted.named_in(text);
        let outputs: String = self.outputs.drain(..).collect();
        OutgoingMessage { text: format!("{outputs}{text}"), images, instruction: None }
    }
}

/// Returns the label that represents an image in the editor.
fn attachment_label(path: Option<&str>, image: &ImageData) -> String {
    let size = ImageSummary::from_image(image).bytes.unwrap_or_default();
    let size = format!("{} KB", size.div_ceil(1_000));
    let name = path.and_then(|path| path.rsplit('/').next()).unwrap_or("from the clipboard");
    format!("[image {}, {size}]", one_line(name, MAX_NAME))
}

/// Returns the first line of a command.
fn summary_of(command: &str) -> String {
    let first = command.lines().next().unwrap_or_default();
    let more = if command.lines().count() > 1 { " …" } else { "" };
    format!("{}{more}", expand_tabs(&sanitize(first)))
}
