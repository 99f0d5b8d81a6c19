//! The clipboard: text is copied through the terminal, and images are read through a desktop program.

use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use pintle_env::EnvError;
use pintle_host::host_command::{self, ProgramOutcome};
use pintle_host::process_env::ProcessEnv;
use pintle_llm::ImageData;
use pintle_tools::builtin::{MAX_IMAGE, image_of};

/// Programs that print the image on the clipboard, each with the variable that identifies its desktop, and the package that
/// contains it.
const READERS: [(&str, &[&str], &str); 2] = [
    ("WAYLAND_DISPLAY", &["wl-paste", "--type", "image/png"], "wl-clipboard"),
    ("DISPLAY", &["xclip", "-selection", "clipboard", "-target", "image/png", "-out"], "xclip"),
];

/// Time limit of a program.
const TIME_LIMIT: Duration = Duration::from_secs(5);

/// Returns the output that makes the terminal copy a text to the clipboard, if the terminal allows it (OSC 52).
pub(super) fn put(text: &str) -> String {
    format!("\x1b]52;c;{}\x07", BASE64_STANDARD.encode(text))
}

/// Returns the image on the clipboard.
///
/// The error is a message for the user.
pub(super) async fn image(process_env: &ProcessEnv) -> Result<ImageData, String> {
    let mut problem =
        "no desktop to paste from (WAYLAND_DISPLAY and DISPLAY are not set); paste the path of an image instead"
            .to_owned();
    let most = usize::try_from(MAX_IMAGE).unwrap_or(usize::MAX).saturating_add(1);
    for (variable, words, package) in READERS {
        if process_env.variable(variable).is_none() {
            continue;
        }
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        problem = match host_command::run_as_user(most, process_env, &words, TIME_LIMIT).await {
            Ok(ProgramOutcome::Exited { code: 0, stdout, .. }) if !stdout.is_empty() => {
                return image_of(stdout).map_err(|error| format!("not pasted: {error}"));
            }
            Ok(ProgramOutcome::Exited { code: 127, .. }) | Err(EnvError::NotFound { .. }) => {
                format!("install {package} to paste images")
            }
            Ok(ProgramOutcome::Exited { .. }) => "there is no image on the clipboard".to_owned(),
            Ok(ProgramOutcome::TimedOut) => "the clipboard does not answer".to_owned(),
            Err(error) => format!("the clipboard cannot be read: {error}"),
        };
    }
    Err(problem)
}
