//! The web console, whose files are embedded in the server.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};

use crate::problem::{NOT_FOUND, Problem};

/// File of the console.
struct ConsoleFile {
    name: &'static str,
    bytes: &'static [u8],
}

macro_rules! file {
    ($name:literal) => {
        ConsoleFile { name: $name, bytes: include_bytes!(concat!("../console/", $name)) }
    };
}

/// All files. A test compares them with the directory.
const FILES: &[ConsoleFile] = &[
    file!("activity.js"),
    file!("ansi.js"),
    file!("api.js"),
    file!("app.js"),
    file!("approvals.js"),
    file!("call-view.js"),
    file!("card.js"),
    file!("composer.js"),
    file!("dialogs.js"),
    file!("diff-view.js"),
    file!("diff.js"),
    file!("dom.js"),
    file!("entry-view.js"),
    file!("export.js"),
    file!("filter.js"),
    file!("format.js"),
    file!("gate.js"),
    file!("heights.js"),
    file!("inbox.js"),
    file!("index.html"),
    file!("inline.js"),
    file!("keys.js"),
    file!("lanes.js"),
    file!("markdown.js"),
    file!("panel.js"),
    file!("questions.js"),
    file!("reduce-calls.js"),
    file!("reduce-notices.js"),
    file!("reducer.js"),
    file!("replay-bar.js"),
    file!("replay.js"),
    file!("routes.js"),
    file!("rows.js"),
    file!("scopes.js"),
    file!("serialize.js"),
    file!("session-actions.js"),
    file!("session-head.js"),
    file!("session-list.js"),
    file!("session-view.js"),
    file!("shared-streams.js"),
    file!("state.js"),
    file!("status-line.js"),
    file!("stream-hub.js"),
    file!("stream-worker.js"),
    file!("stream.js"),
    file!("style.css"),
    file!("syntax.js"),
    file!("task-lane.js"),
    file!("task-list.js"),
    file!("task-view.js"),
    file!("tasks.js"),
    file!("text-view.js"),
    file!("text.js"),
    file!("theme.js"),
    file!("timeline.js"),
    file!("turns.js"),
    file!("types.js"),
];

/// Entity tags of the files, in the same order.
static TAGS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let tag = |file: &ConsoleFile| {
        format!("\"{}\"", blake3::hash(file.bytes).to_hex().get(..16).unwrap_or_default())
    };
    FILES.iter().map(tag).collect()
});

/// Serves the page.
pub(crate) async fn page(headers: HeaderMap) -> Response {
    serve("index.html", &headers)
}

/// Serves a file that the page references.
pub(crate) async fn file(Path(name): Path<String>, headers: HeaderMap) -> Response {
    serve(&name, &headers)
}

fn serve(name: &str, headers: &HeaderMap) -> Response {
    let found = FILES.iter().zip(TAGS.iter()).find(|(file, _)| file.name == name);
    let Some((file, tag)) = found else {
        return Problem::new(NOT_FOUND, "the console has no such file").into_response();
    };
    // Browsers revalidate a cached file, so that the console matches the server.
    let mut response = if headers.get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes()) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        ([(CONTENT_TYPE, HeaderValue::from_static(media_type(name)))], file.bytes).into_response()
    };
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if let Ok(tag) = HeaderValue::from_str(tag) {
        response.headers_mut().insert(ETAG, tag);
    }
    response
}

fn media_type(name: &str) -> &'static str {
    match name.rsplit_once('.') {
        Some((_, "html")) => "text/html; charset=utf-8",
        Some((_, "css")) => "text/css; charset=utf-8",
        _ => "text/javascript; charset=utf-8",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the directory of this crate is read")]
    fn every_file_of_the_console_is_served() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/console");
        let names = std::fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| name != "tsconfig.json").collect();
        names.sort_unstable();
        assert_eq!(names, FILES.iter().map(|file| file.name).collect::<Vec<_>>());
    }

    #[test]
    fn files_are_sent_again_only_if_they_have_changed() {
        let first = serve("index.html", &HeaderMap::new());
        assert_eq!(first.headers()[CONTENT_TYPE], "text/html; charset=utf-8");
        let tag = first.headers()[ETAG].clone();
        let again = serve("index.html", &HeaderMap::from_iter([(IF_NONE_MATCH, tag)]));
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
        assert_eq!(serve("../Cargo.toml", &HeaderMap::new()).status(), StatusCode::NOT_FOUND);
    }
}
