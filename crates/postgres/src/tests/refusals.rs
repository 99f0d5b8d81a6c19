//! What is refused before or while a store connects, and what its errors say.

use std::error::Error as _;
use std::io;

use super::*;

const PASSWORD: &str = "secret-password";

/// Returns the error with its causes, for people and for debugging.
fn shown(error: &StoreError) -> String {
    let cause = error.source().map(ToString::to_string).unwrap_or_default();
    format!("{error}: {cause} {error:?}")
}

#[tokio::test]
async fn strings_that_cannot_be_used_are_refused() {
    for (connection, expected) in [
        ("postgresql://u:secret-password@db.example.com/x", "on another host"),
        ("postgresql://u:secret-password@10.0.0.1/x", "on another host"),
        ("host=localhost hostaddr=10.0.0.1 password=secret-password", "on another host"),
        ("host=localhost,db.example.com password=secret-password", "on another host"),
        ("host=localhost sslmode=require password=secret-password", "asks for `sslmode=require`"),
        ("host=localhost secret-password", "expected `postgresql://"),
        ("postgresql://u:secret-password@localhost:port/x?secret-password=1", "expected `postgresql://"),
    ] {
        let error = PostgresStore::connect(connection, PostgresOptions::new()).await.unwrap_err();
        let shown = shown(&error);
        assert!(shown.contains(expected) && !shown.contains(PASSWORD), "{connection}: {shown}");
    }
    for schema in ["", "Upper", "1st", "a-b", "a\"b", &"x".repeat(41)] {
        let error = PostgresStore::connect("host=localhost", PostgresOptions::new().with_schema(schema))
            .await
            .unwrap_err();
        assert!(shown(&error).contains("cannot use the schema"), "{error:?}");
    }
    let lease = PostgresOptions::new().with_lease(Duration::from_millis(499));
    assert!(PostgresStore::connect("host=localhost", lease).await.is_err());
}

/// A server that does not answer is an error with the kind of its cause.
#[tokio::test]
async fn a_missing_server_is_an_error() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let connection = format!("postgresql://u:{PASSWORD}@127.0.0.1:{port}/x");
    let error = PostgresStore::connect(&connection, PostgresOptions::new()).await.unwrap_err();
    let text = shown(&error);
    assert!(text.contains("cannot connect to the database") && !text.contains(PASSWORD), "{text}");
    assert_eq!(io::Error::from(error).kind(), io::ErrorKind::ConnectionRefused);
}

#[tokio::test]
async fn a_wrong_password_is_not_shown() {
    let Some(schema) = Schema::create() else { return };
    let connection = format!("{} password={PASSWORD}", schema.connection);
    let error = PostgresStore::connect(&connection, schema.options()).await.unwrap_err();
    let text = shown(&error);
    assert!(text.contains("password authentication failed") && !text.contains(PASSWORD), "{text}");
}

#[tokio::test]
async fn a_store_shows_no_connection_string() {
    let Some(schema) = Schema::create() else { return };
    let store = schema.store().await;
    let writer = store.create_writer(&summary()).await.unwrap();
    let password = schema.connection.split_once("password=").unwrap().1.split(' ').next().unwrap();
    for shown in [format!("{store:?}"), format!("{writer:?}"), format!("{:?}", schema.options())] {
        assert!(!shown.contains(password), "{shown}");
    }
}

/// Ids that PostgreSQL or other stores cannot keep are refused alike.
#[tokio::test]
async fn ids_that_cannot_be_stored_are_refused() {
    let Some(schema) = Schema::create() else { return };
    let store = schema.store().await;
    for id in ["", "a\0b", &"x".repeat(201)] {
        let id = SessionId::new(id);
        let summary = Summary::new(id.clone(), Timestamp::from_millis(0));
        assert!(matches!(store.create(summary).await, Err(StoreError::InvalidId(_))));
        assert!(matches!(store.open(&id).await, Err(StoreError::InvalidId(_))));
        assert!(matches!(store.post(&id, "i", "{}".to_owned()).await, Err(StoreError::InvalidId(_))));
    }
}

/// Properties with characters that PostgreSQL does not know are kept, and found by what they are.
#[tokio::test]
async fn any_property_is_found() {
    let Some(schema) = Schema::create() else { return };
    let store = schema.store().await;
    for (id, value) in [("a", "x\0"), ("b", "x\u{fffd}")] {
        let summary =
            Summary::new(SessionId::new(id), Timestamp::from_millis(0)).with_property("p\"\0", value);
        store.create(summary.clone()).await.unwrap();
        assert_eq!(store.summary(&summary.id).await.unwrap(), Some(summary));
    }
    for (value, expected) in [("x\0", "a"), ("x\u{fffd}", "b")] {
        let filter = pintle_store::Filter::default().with_property("p\"\0", value);
        let found = store.list(&filter, &pintle_store::Page::of(1)).await.unwrap();
        assert_eq!(found.iter().map(|summary| summary.id.as_str()).collect::<Vec<_>>(), [expected]);
    }
}

/// A name that means something else in SQL is a name of a schema as well.
#[tokio::test]
async fn a_schema_may_have_any_name() {
    let Some(schema) = Schema::create() else { return };
    let client = schema.client().await;
    let reserved = Schema { connection: schema.connection.clone(), name: "select".to_owned() };
    // Of all tests that use this server, until this connection ends.
    client.batch_execute("SELECT pg_advisory_lock(4711)").await.unwrap();
    client.batch_execute("DROP SCHEMA IF EXISTS \"select\" CASCADE").await.unwrap();
    let store = reserved.store().await;
    let mut writer = store.create_writer(&summary()).await.unwrap();
    append(&mut writer, 0).await.unwrap();
    assert_eq!(all(&store).await, [0]);
}

/// Several stores prepare the same tables at the same time.
#[tokio::test]
async fn tables_are_created_once() {
    let Some(schema) = Schema::create() else { return };
    let (a, b, c, d) = tokio::join!(schema.store(), schema.store(), schema.store(), schema.store());
    drop(a.create_writer(&summary()).await.unwrap());
    for store in [b, c, d] {
        assert!(store.summary(&id()).await.unwrap().is_some());
    }
}
