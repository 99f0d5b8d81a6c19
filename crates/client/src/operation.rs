//! Operations of the server. A test compares them with the server's API description.

use reqwest::{Method, Url};

use crate::error::ClientError;

/// Operation of the server.
#[derive(Clone, Debug)]
pub(crate) struct ApiOperation {
    pub(crate) method: Method,
    /// Path with its parameters in braces.
    pub(crate) path: &'static str,
}

const fn get(path: &'static str) -> ApiOperation {
    ApiOperation { method: Method::GET, path }
}

const fn post(path: &'static str) -> ApiOperation {
    ApiOperation { method: Method::POST, path }
}

pub(crate) const HEALTH: ApiOperation = get("/v1/health");
pub(crate) const READ_COSTS: ApiOperation = get("/v1/costs");
pub(crate) const FOLLOW_SESSIONS: ApiOperation = get("/v1/events");
pub(crate) const READ_METRICS: ApiOperation = get("/v1/metrics");
pub(crate) const LIST_MODELS: ApiOperation = get("/v1/models");
pub(crate) const LIST_SESSIONS: ApiOperation = get("/v1/sessions");
pub(crate) const CREATE_SESSION: ApiOperation = post("/v1/sessions");
pub(crate) const READ_SESSION: ApiOperation = get("/v1/sessions/{id}");
pub(crate) const CHANGE_SESSION: ApiOperation =
    ApiOperation { method: Method::PATCH, path: "/v1/sessions/{id}" };
pub(crate) const DELETE_SESSION: ApiOperation =
    ApiOperation { method: Method::DELETE, path: "/v1/sessions/{id}" };
pub(crate) const ABORT: ApiOperation = post("/v1/sessions/{id}/abort");
pub(crate) const LIST_APPROVALS: ApiOperation = get("/v1/sessions/{id}/approvals");
pub(crate) const DECIDE: ApiOperation = post("/v1/sessions/{id}/approvals/{call_id}");
pub(crate) const AUDIT_SESSION: ApiOperation = get("/v1/sessions/{id}/audit");
pub(crate) const READ_BLOB: ApiOperation = get("/v1/sessions/{id}/blobs/{hash}");
pub(crate) const LIST_CHECKPOINTS: ApiOperation = get("/v1/sessions/{id}/checkpoints");
pub(crate) const COMPACT: ApiOperation = post("/v1/sessions/{id}/compact");
pub(crate) const DIFF: ApiOperation = get("/v1/sessions/{id}/diff");
pub(crate) const FOLLOW_SESSION: ApiOperation = get("/v1/sessions/{id}/events");
pub(crate) const EXPORT_SESSION: ApiOperation = get("/v1/sessions/{id}/export");
pub(crate) const FOLLOW_UP: ApiOperation = post("/v1/sessions/{id}/follow-up");
pub(crate) const FORK_SESSION: ApiOperation = post("/v1/sessions/{id}/fork");
pub(crate) const READ_HISTORY: ApiOperation = get("/v1/sessions/{id}/history");
pub(crate) const INTERRUPT: ApiOperation = post("/v1/sessions/{id}/interrupt");
pub(crate) const READ_JOURNAL: ApiOperation = get("/v1/sessions/{id}/journal");
pub(crate) const RESTORE: ApiOperation = post("/v1/sessions/{id}/restore");
pub(crate) const REWIND: ApiOperation = post("/v1/sessions/{id}/rewind");
pub(crate) const SAY: ApiOperation = post("/v1/sessions/{id}/say");
pub(crate) const STEER: ApiOperation = post("/v1/sessions/{id}/steer");
pub(crate) const LIST_TOOLS: ApiOperation = get("/v1/sessions/{id}/tools");
pub(crate) const SUBMIT: ApiOperation = post("/v1/sessions/{id}/submit");
pub(crate) const LIST_TASKS: ApiOperation = get("/v1/tasks");
pub(crate) const READ_TASK: ApiOperation = get("/v1/tasks/{id}");
pub(crate) const CANCEL_TASK: ApiOperation = post("/v1/tasks/{id}/cancel");
pub(crate) const DIFF_CANDIDATE: ApiOperation = get("/v1/tasks/{id}/candidates/{candidate}/diff");
pub(crate) const DECIDE_TASK: ApiOperation = post("/v1/tasks/{id}/decide");
pub(crate) const FOLLOW_TASK: ApiOperation = get("/v1/tasks/{id}/events");
pub(crate) const REPORT_TASK: ApiOperation = get("/v1/tasks/{id}/report");
pub(crate) const STEER_TASK: ApiOperation = post("/v1/tasks/{id}/steer");

impl ApiOperation {
    /// Returns the URL with the values of the path parameters, in the order of the path.
    pub(crate) fn url(&self, base: &Url, values: &[&str]) -> Result<Url, ClientError> {
        let mut values = values.iter();
        let mut url = base.clone();
        {
            let no_base =
                |()| ClientError::InvalidUrl { url: base.to_string(), reason: "it has no path".to_owned() };
            let mut segments = url.path_segments_mut().map_err(no_base)?;
            segments.pop_if_empty();
            for segment in self.path.trim_start_matches('/').split('/') {
                let segment = if segment.starts_with('{') { id(values.next())? } else { segment };
                segments.push(segment);
            }
        }
        Ok(url)
    }
}

/// Returns an id that is one segment of a path.
fn id<'a>(value: Option<&&'a str>) -> Result<&'a str, ClientError> {
    let value = value.copied().unwrap_or_default();
    // These would name another path.
    if matches!(value, "" | "." | "..") {
        return Err(ClientError::InvalidId(value.to_owned()));
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_one_segment_of_the_path() {
        let base = Url::parse("https://host/below/").unwrap();
        let url = |values: &[&str]| DECIDE.url(&base, values).map(|url| url.to_string());
        assert_eq!(url(&["s", "c"]).unwrap(), "https://host/below/v1/sessions/s/approvals/c");
        let odd = url(&["a/b", "ü?#%"]).unwrap();
        assert_eq!(odd, "https://host/below/v1/sessions/a%2Fb/approvals/%C3%BC%3F%23%25");
        for wrong in [&["", "c"][..], &[".", "c"], &["s", ".."], &["s"]] {
            assert!(matches!(url(wrong), Err(ClientError::InvalidId(_))), "{wrong:?}");
        }
    }
}
