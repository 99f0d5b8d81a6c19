//! The web console, whose files are embedded in the server, compressed.

use std::io::Read as _;
use std::sync::LazyLock;

use axum::extract::{OriginalUri, Path};
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH, LOCATION, VARY,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use flate2::read::GzDecoder;

use crate::problem::{NOT_FOUND, Problem};

/// File of the console.
struct ConsoleFile {
    name: &'static str,
    /// The contents in the gzip format. `cargo xtask generate` writes them, also for a file that the list below lacks.
    compressed: &'static [u8],
}

impl ConsoleFile {
    fn contents(&self) -> std::io::Result<Vec<u8>> {
        let mut contents = Vec::new();
        GzDecoder::new(self.compressed).read_to_end(&mut contents)?;
        Ok(contents)
    }
}

macro_rules! file {
    ($name:literal) => {
        ConsoleFile { name: $name, compressed: include_bytes!(concat!("../console-gzip/", $name, ".gz")) }
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

/// Entity tags of the files, in the same order. They are weak: the compressed and the plain file have the same tag.
static TAGS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let tag = |file: &ConsoleFile| {
        format!("W/\"{}\"", blake3::hash(file.compressed).to_hex().get(..16).unwrap_or_default())
    };
    FILES.iter().map(tag).collect()
});

/// Serves the page, whose links are relative. The path of the mounted router is redirected to the same path with a slash at
/// its end.
pub(crate) async fn page(OriginalUri(uri): OriginalUri, headers: HeaderMap) -> Response {
    match uri.path().rsplit_once('/') {
        Some((_, last)) if !last.is_empty() => {
            let location = HeaderValue::from_str(&format!("./{last}/"));
            location.map_or_else(
                |_| StatusCode::NOT_FOUND.into_response(),
                |location| (StatusCode::TEMPORARY_REDIRECT, [(LOCATION, location)]).into_response(),
            )
        }
        _ => serve("index.html", &headers),
    }
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
        contents(file, accepts_gzip(headers))
    };
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response.headers_mut().insert(VARY, HeaderValue::from_static("accept-encoding"));
    if let Ok(tag) = HeaderValue::from_str(tag) {
        response.headers_mut().insert(ETAG, tag);
    }
    response
}

/// Returns the response with the contents of a file.
fn contents(file: &ConsoleFile, is_compressed: bool) -> Response {
    let media_type = (CONTENT_TYPE, HeaderValue::from_static(media_type(file.name)));
    if is_compressed {
        let encoding = (CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        return ([media_type, encoding], file.compressed).into_response();
    }
    match file.contents() {
        Ok(contents) => ([media_type], contents).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// Returns whether the client accepts gzip: it lists it, and not with the weight 0.
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let is_gzip = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        let is_refused = |part: &str| {
            part.strip_prefix("q=")
                .is_some_and(|weight| weight.parse::<f32>().is_ok_and(|weight| weight <= 0.0))
        };
        is_gzip && !parts.any(is_refused)
    })
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
    #![expect(
        clippy::disallowed_methods,
        reason = "the directories of this crate are read, and written when asked for"
    )]

    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    /// Returns the names of the files in a directory of this crate, in order.
    fn names_in(directory: &str) -> Vec<String> {
        let names = std::fs::read_dir(format!("{}/{directory}", env!("CARGO_MANIFEST_DIR")))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| name != "tsconfig.json").collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn every_file_of_the_console_is_served() {
        assert_eq!(names_in("console"), FILES.iter().map(|file| file.name).collect::<Vec<_>>());
    }

    #[test]
    fn the_compressed_files_are_those_of_the_console() {
        let root = env!("CARGO_MANIFEST_DIR");
        let names = names_in("console");
        if std::env::var_os("WRITE_CONSOLE").is_some() {
            for name in &names {
                let contents = std::fs::read(format!("{root}/console/{name}")).unwrap();
                let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
                encoder.write_all(&contents).unwrap();
                let compressed = encoder.finish().unwrap();
                std::fs::write(format!("{root}/console-gzip/{name}.gz"), compressed).unwrap();
            }
        }
        let compressed_names = names.iter().map(|name| format!("{name}.gz"));
        assert_eq!(names_in("console-gzip"), compressed_names.collect::<Vec<_>>());
        for name in &names {
            let compressed = std::fs::read(format!("{root}/console-gzip/{name}.gz")).unwrap();
            let mut contents = Vec::new();
            GzDecoder::new(compressed.as_slice()).read_to_end(&mut contents).unwrap();
            let is_current = contents == std::fs::read(format!("{root}/console/{name}")).unwrap();
            assert!(is_current, "{name}.gz is outdated; to write it: cargo xtask generate");
        }
    }

    #[tokio::test]
    async fn a_client_gets_the_encoding_that_it_accepts() {
        let plain = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/console/index.html")).unwrap();
        for (accepted, is_compressed) in [
            (None, false),
            (Some("identity"), false),
            (Some("gzip"), true),
            (Some("br, GZIP;q=0.5"), true),
            (Some("gzip; q=0, br"), false),
            (Some("gzip;q=0.000"), false),
            (Some("x-gzipped"), false),
        ] {
            let accepted_header = accepted.map(|value| (ACCEPT_ENCODING, HeaderValue::from_static(value)));
            let response = serve("index.html", &HeaderMap::from_iter(accepted_header));
            assert_eq!(response.headers()[CONTENT_TYPE], "text/html; charset=utf-8");
            assert_eq!(response.headers()[VARY], "accept-encoding");
            let encoding = response.headers().get(CONTENT_ENCODING).cloned();
            assert_eq!(encoding, is_compressed.then(|| HeaderValue::from_static("gzip")), "{accepted:?}");
            let mut body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap().to_vec();
            if is_compressed {
                let mut contents = Vec::new();
                GzDecoder::new(body.as_slice()).read_to_end(&mut contents).unwrap();
                body = contents;
            }
            assert!(body == plain, "{accepted:?}");
        }
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
