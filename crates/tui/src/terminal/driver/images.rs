//! Takes images from the clipboard, and files that were dropped on the terminal.

use std::path::{Path, PathBuf};

use pintle_host::process_env::ProcessEnv;
use pintle_llm::ImageData;
use pintle_tools::builtin::{ImageError, read_image};

use super::{BackgroundResult, Driver};
use crate::terminal::clipboard;
use crate::terminal::images::{READ_TIME, SLOW};

impl Driver<'_> {
    /// Attaches the image on the clipboard.
    pub(super) fn take_clipboard(&mut self) {
        let process_env = self.process_env;
        self.run_in_background(async move { BackgroundResult::Pasted(clipboard::image(process_env).await) });
    }

    /// Attaches files that were dropped on the terminal as images, or inserts the paste as text.
    pub(super) async fn take_dropped(&mut self, paths: &[String], paste: &str) {
        let mut images = Vec::new();
        for path in paths {
            match dropped_image(path, self.process_env).await {
                Ok(image) => images.push((path, image)),
                Err(problem) => {
                    if let Some(problem) = problem {
                        self.display.hint(format!("no image was taken: {problem}"));
                    }
                    return self.display.conversation.paste(paste);
                }
            }
        }
        for (path, image) in images {
            self.display.conversation.attach(Some(path), image);
        }
    }
}

/// Reads an image of this machine that was dropped on the terminal.
///
/// The error is `None` if no file has this path, otherwise the reason why it cannot be sent.
async fn dropped_image(path: &str, process_env: &ProcessEnv) -> Result<ImageData, Option<String>> {
    let path = match path.strip_prefix("~/") {
        Some(rest) => process_env.home().ok_or(None)?.join(rest),
        None => PathBuf::from(path),
    };
    let machine = process_env.local_environment(Path::new("/")).map_err(|_| None)?;
    match tokio::time::timeout(READ_TIME, read_image(&machine, &path)).await {
        Ok(Err(ImageError::Read(_))) => Err(None),
        Ok(read) => read.map_err(|error| Some(error.to_string())),
        Err(_elapsed) => Err(Some(SLOW.to_owned())),
    }
}
