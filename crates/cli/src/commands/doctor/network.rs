//! Checks whether the providers with a key can be reached.

use std::time::Duration;

use futures_util::future::join_all;
use pintle_host::process_env::ProcessEnv;
use pintle_host::provider::Provider;
use pintle_web::Url;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::report::{CheckStatus, DoctorCheck};

/// How long a connection may take.
const TIME_LIMIT: Duration = Duration::from_secs(3);

/// Variables with a proxy for HTTPS.
const PROXIES: [&str; 4] = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];

/// Remedy for a host that does not answer.
const REMEDY: &str = "check the network, the proxy and the base URL; --offline skips this check";

/// Opens a connection to each provider, or to the proxy before it, and closes it. Sends nothing.
pub(super) async fn checks(providers: &[Provider], process_env: &ProcessEnv) -> Vec<DoctorCheck> {
    let urls = providers.iter().filter_map(|provider| base_url(*provider, process_env));
    let mut checks = join_all(urls.map(|url| check(url, process_env))).await;
    if checks.is_empty() {
        return vec![DoctorCheck::ok("network", "nothing to connect to")];
    }
    // One provider that answers is enough to work.
    if checks.iter().any(|check| check.status == CheckStatus::Ok) {
        for check in &mut checks {
            check.status = check.status.min(CheckStatus::Warning);
        }
    }
    checks
}

/// Returns the base URL of a provider; `None` for a compatible server that no variable names.
fn base_url(provider: Provider, process_env: &ProcessEnv) -> Option<String> {
    let default = match provider {
        Provider::OpenAi => Some("https://api.openai.com/v1"),
        Provider::Anthropic => Some("https://api.anthropic.com"),
        Provider::Gemini => Some("https://generativelanguage.googleapis.com"),
        Provider::OpenAiCompatible => None,
    };
    process_env.variable(provider.variables().base_url).or_else(|| default.map(str::to_owned))
}

async fn check(base_url: String, process_env: &ProcessEnv) -> DoctorCheck {
    let Some((host, target)) = Url::parse(&base_url).ok().and_then(|url| Some((endpoint(&url)?, url))) else {
        return DoctorCheck::problem(
            "network",
            "invalid base URL",
            "expected https://… or http://… in the variable",
        );
    };
    let (to, through) = match proxy(&target, process_env) {
        Some(proxy) => (proxy.clone(), format!(" through the proxy {}:{}", proxy.0, proxy.1)),
        None => (host.clone(), String::new()),
    };
    let name = format!("{}:{}{through}", host.0, host.1);
    let address = (to.0.trim_matches(['[', ']']).to_owned(), to.1);
    match timeout(TIME_LIMIT, TcpStream::connect(address)).await {
        Ok(Ok(_connection)) => DoctorCheck::ok("network", format!("{name} answers")),
        Ok(Err(error)) => {
            DoctorCheck::problem("network", format!("{name} cannot be reached: {error}"), REMEDY)
        }
        Err(_elapsed) => {
            let seconds = TIME_LIMIT.as_secs();
            DoctorCheck::problem("network", format!("{name} does not answer within {seconds} s"), REMEDY)
        }
    }
}

/// Returns host and port of a URL.
fn endpoint(url: &Url) -> Option<(String, u16)> {
    Some((url.host_str()?.to_owned(), url.port_or_known_default()?))
}

/// Returns host and port of the proxy of a URL. Local servers have no proxy.
fn proxy(target: &Url, process_env: &ProcessEnv) -> Option<(String, u16)> {
    let is_local = target.host_str().is_some_and(|host| matches!(host, "localhost" | "127.0.0.1" | "[::1]"));
    if target.scheme() != "https" || is_local {
        return None;
    }
    let proxy = PROXIES.iter().find_map(|name| process_env.variable(name))?;
    let proxy = if proxy.contains("://") { proxy } else { format!("http://{proxy}") };
    endpoint(&Url::parse(&proxy).ok()?)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use tokio::net::TcpListener;

    use super::*;

    async fn checked(variables: &[(&str, &str)], providers: &[Provider]) -> Vec<DoctorCheck> {
        let variables = variables.iter().map(|(name, value)| (*name, OsStr::new(*value)));
        checks(providers, &ProcessEnv::from_variables(variables)).await
    }

    #[tokio::test]
    async fn unreachable_provider_is_a_problem_unless_another_answers() {
        let open = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let open_url = format!("http://{}/v1", open.local_addr().unwrap());
        let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let closed_url = format!("http://{closed}");
        let variables = [("OPENAI_BASE_URL", open_url.as_str()), ("ANTHROPIC_BASE_URL", closed_url.as_str())];
        let cases: [(&[Provider], &[CheckStatus]); 4] = [
            (&[], &[CheckStatus::Ok]),
            (&[Provider::OpenAi], &[CheckStatus::Ok]),
            (&[Provider::Anthropic], &[CheckStatus::Problem]),
            (&[Provider::Anthropic, Provider::OpenAi], &[CheckStatus::Warning, CheckStatus::Ok]),
        ];
        for (providers, expected) in cases {
            let found: Vec<CheckStatus> =
                checked(&variables, providers).await.iter().map(|check| check.status).collect();
            assert_eq!(found, expected, "{providers:?}");
        }
        // Without a variable, a compatible server has no address.
        assert_eq!(checked(&[], &[Provider::OpenAiCompatible]).await.len(), 1);
        assert_eq!(
            checked(&[("GEMINI_BASE_URL", "nonsense")], &[Provider::Gemini]).await[0].status,
            CheckStatus::Problem
        );
    }

    #[test]
    fn proxies_are_for_remote_hosts() {
        let cases = [
            (
                "https://api.example",
                &[("HTTPS_PROXY", "http://me:secret@proxy.example:3128")][..],
                Some(3128),
            ),
            ("https://api.example", &[("all_proxy", "proxy.example:8000")], Some(8000)),
            ("https://api.example", &[], None),
            ("https://localhost:1", &[("HTTPS_PROXY", "http://proxy.example:3128")], None),
            ("http://api.example", &[("HTTPS_PROXY", "http://proxy.example:3128")], None),
        ];
        for (url, variables, expected) in cases {
            let variables = variables.iter().map(|(name, value)| (*name, OsStr::new(*value)));
            let found = proxy(&Url::parse(url).unwrap(), &ProcessEnv::from_variables(variables));
            assert_eq!(found, expected.map(|port| ("proxy.example".to_owned(), port)), "{url}");
        }
    }
}
