//! Store of the sessions: files of the user, or a database that several hosts share.

use std::path::{Path, PathBuf};
use std::sync::Arc;
#[cfg(feature = "postgres")]
use std::time::Duration;

use pintle_agent::Ledgers;
use pintle_store::{FileStore, SessionStore};

use crate::failure::Failure;
use crate::process_env::{self, ProcessEnv};

/// Variable with the address of a database that replaces the user's files.
pub(crate) const STORE_VARIABLE: &str = "PINTLE_STORE";

/// Variable with the path of a file that has the password of the database.
const PASSWORD_FILE_VARIABLE: &str = "PINTLE_STORE_PASSWORD_FILE";

/// Variable with the seconds after which a session of a lost process can be taken over.
#[cfg(feature = "postgres")]
const LEASE_VARIABLE: &str = "PINTLE_STORE_LEASE";

/// Variable with the schema that has the tables, by default `pintle`.
#[cfg(feature = "postgres")]
const SCHEMA_VARIABLE: &str = "PINTLE_STORE_SCHEMA";

/// Default of [`LEASE_VARIABLE`].
#[cfg(feature = "postgres")]
const LEASE: Duration = Duration::from_secs(30);

/// Store of the sessions, and its daily ledgers.
#[derive(Clone, Debug)]
pub struct StoreBackend {
    /// Store of the sessions.
    pub store: Arc<dyn SessionStore>,
    /// Spending of each day.
    pub ledgers: Arc<dyn Ledgers>,
}

impl From<FileStore> for StoreBackend {
    fn from(store: FileStore) -> Self {
        Self { store: Arc::new(store.clone()), ledgers: Arc::new(store) }
    }
}

/// Returns the address of the database; `None` if the sessions are stored in files.
pub fn database_address(process_env: &ProcessEnv) -> Option<String> {
    process_env.variable(STORE_VARIABLE)
}

/// Returns the time after which a session of a lost process can be taken over.
#[cfg(feature = "postgres")]
pub fn lease(process_env: &ProcessEnv) -> Result<Duration, Failure> {
    let Some(text) = process_env.variable(LEASE_VARIABLE) else { return Ok(LEASE) };
    let seconds = text.parse().ok().filter(|seconds| (1..=3_600).contains(seconds));
    seconds
        .map(Duration::from_secs)
        .ok_or_else(|| Failure::usage(format!("{LEASE_VARIABLE}: expected 1 to 3600 seconds, not `{text}`")))
}

/// Returns the passwords of the database, for redaction.
pub(crate) fn store_secrets(process_env: &ProcessEnv) -> Vec<String> {
    let Some(address) = database_address(process_env) else { return Vec::new() };
    let mut secrets: Vec<String> = password_in_address(&address).map(str::to_owned).into_iter().collect();
    secrets.extend(read_password(process_env).ok().flatten());
    secrets
}

/// Returns the password in an address such as `postgres://user:password@host/database`, in its encoded form.
fn password_in_address(address: &str) -> Option<&str> {
    let (_, rest) = address.split_once("://")?;
    let authority = rest.split(['/', '?']).next()?;
    let (user, _) = authority.rsplit_once('@')?;
    user.split_once(':').map(|(_, password)| password).filter(|password| !password.is_empty())
}

/// Returns the file with the password, if any.
pub(crate) fn password_file(process_env: &ProcessEnv) -> Option<PathBuf> {
    process_env.variable(PASSWORD_FILE_VARIABLE).map(PathBuf::from).filter(|path| path.is_absolute())
}

fn read_password(process_env: &ProcessEnv) -> Result<Option<String>, Failure> {
    let Some(path) = process_env.variable(PASSWORD_FILE_VARIABLE) else { return Ok(None) };
    let text = process_env::read_text("password of the database", Path::new(&path))?;
    // An editor ends the last line.
    Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()))
}

/// Connects to the database, once in a process.
#[cfg(feature = "postgres")]
pub async fn connect(address: &str, process_env: &ProcessEnv) -> Result<StoreBackend, Failure> {
    use std::collections::BTreeMap;

    use pintle_postgres::{PostgresOptions, PostgresStore};

    use crate::failure::OrFailure as _;

    /// Stores by their addresses and schemas. A connection belongs to the runtime of the process.
    static CONNECTED: tokio::sync::Mutex<BTreeMap<(String, String), StoreBackend>> =
        tokio::sync::Mutex::const_new(BTreeMap::new());

    let schema = process_env.variable(SCHEMA_VARIABLE);
    let key = (address.to_owned(), schema.clone().unwrap_or_default());
    let mut connected = CONNECTED.lock().await;
    if let Some(known) = connected.get(&key) {
        return Ok(known.clone());
    }
    let mut options = PostgresOptions::new().with_lease(lease(process_env)?);
    if let Some(password) = read_password(process_env)?.or_else(|| process_env.variable("PGPASSWORD")) {
        options = options.with_password(password);
    }
    if let Some(schema) = schema {
        options = options.with_schema(schema);
    }
    let store = PostgresStore::connect(address, options).await;
    let store = store.or_failed(&format!("cannot use the database of {STORE_VARIABLE}"))?;
    let backend = StoreBackend { store: Arc::new(store.clone()), ledgers: Arc::new(store) };
    connected.insert(key, backend.clone());
    Ok(backend)
}

/// Refuses a database, which this build cannot use.
#[cfg(not(feature = "postgres"))]
#[expect(clippy::unused_async, reason = "with the feature, it connects")]
pub async fn connect(_address: &str, _process_env: &ProcessEnv) -> Result<StoreBackend, Failure> {
    Err(Failure::usage(format!("{STORE_VARIABLE}: this pintle was built without the feature `postgres`")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_of_addresses_are_secrets() {
        for (address, expected) in [
            ("postgres://ann:s3cret@localhost/pintle", Some("s3cret")),
            ("postgres://ann:p%40ss@db:5432?sslmode=disable", Some("p%40ss")),
            ("postgres://ann:p@ss@db/pintle", Some("p@ss")),
            ("postgres://ann@localhost/pintle", None),
            ("postgres://ann:@localhost/pintle", None),
            ("postgres:///pintle?host=/run/postgresql", None),
            ("host=/run/postgresql user=ann", None),
        ] {
            assert_eq!(password_in_address(address), expected, "{address}");
        }
    }
}
