//! Sessions, from their creation to their deletion.

use pintle_agent::{Barrier, PostedInput, SessionId};
use pintle_llm::{Finish, Message};
use pintle_store::{SessionStore as _, Summary, post_input};
use serde_json::json;

use super::harness::{Frame, PATIENCE, Request, Setup, runs, scripted};
use crate::problem::ENDED;
use crate::{AccessToken, AccessTokens, TokenScope};

#[tokio::test]
async fn a_session_is_created_once_for_each_key() {
    let mut fixture = Setup::new(scripted().answer("Hello.")).start().await;
    let request = Request::new("POST", "/v1/sessions")
        .json(&json!({"message": {"text": "Hello"}}))
        .header("idempotency-key", "first");
    let created = fixture.send(request.clone()).await;
    assert_eq!(created.status, 201, "{created:?}");
    let id = created.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(created.header("location"), format!("sessions/{id}"));
    fixture.follow(&id, None).await.until_kind("PROCESSING_END").await;
    let again = fixture.send(request.clone()).await;
    assert_eq!((again.status, again.json()["id"].as_str()), (200, Some(id.as_str())));
    fixture.restart().await;
    let again = fixture.send(request).await;
    assert_eq!((again.status, again.json()["id"].as_str()), (200, Some(id.as_str())));
    assert_eq!(fixture.host.adapter.requests().len(), 1, "the message counts once");
    let listed = fixture.get("/v1/sessions").await.json();
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(listed["sessions"][0]["title"], "Hello");
}

#[tokio::test]
async fn the_end_of_a_run_has_its_outcome() {
    let cut = |text: &str| (Message::assistant(text), Finish::Length);
    let whole = |text: &str| (Message::assistant(text), Finish::Stop);
    let refused = (Message::assistant("I will not."), Finish::ContentFilter);
    for (responses, expected) in [
        (vec![whole("Done.")], "completed"),
        (vec![whole("Which one?")], "awaiting_input"),
        (vec![cut("one, "), cut("two, "), cut("three")], "output_limit"),
        (vec![refused], "refused"),
    ] {
        let adapter = responses
            .into_iter()
            .fold(scripted(), |adapter, (message, finish)| adapter.finished(message, finish));
        let mut fixture = Setup::new(adapter).start().await;
        let id = fixture.create_with("Go").await;
        for process in ["the first", "a later"] {
            let frames = fixture.follow(&id, None).await.until_kind("PROCESSING_END").await;
            let outcome = &frames.last().unwrap().data["data"]["outcome"];
            assert_eq!(outcome, expected, "{process} process");
            fixture.restart().await;
        }
    }
}

#[tokio::test]
async fn messages_are_taken_once_and_in_order() {
    let adapter = scripted().answer("One.").answer("Two.");
    let fixture = Setup::new(adapter).start().await;
    let id = fixture.create().await;
    let path = format!("/v1/sessions/{id}/submit");
    let request =
        |text: &str| Request::new("POST", &path).json(&json!({"text": text})).header("idempotency-key", text);
    for text in ["first", "first", "second", "first"] {
        let answer = fixture.send(request(text)).await;
        assert_eq!(answer.status, 202, "{answer:?}");
    }
    let mut stream = fixture.follow(&id, None).await;
    stream
        .until(|frame| frame.data.to_string().contains("Two.") && frame.data["kind"] == "ASSISTANT_TEXT_END")
        .await;
    let history = fixture.get(&format!("/v1/sessions/{id}/history")).await.json();
    let texts: Vec<&str> =
        history["turns"].as_array().unwrap().iter().filter_map(|turn| turn["text"].as_str()).collect();
    assert_eq!(texts, ["first", "One.", "second", "Two."]);
}

#[tokio::test]
async fn entries_of_the_history_name_the_events_that_added_them() {
    let adapter = scripted().message(runs("c1", "ls")).answer("One.").answer("Two.");
    let fixture = Setup::new(adapter).start().await;
    let id = fixture.create_with("first").await;
    let mut stream = fixture.follow(&id, None).await;
    let mut frames = stream.until_kind("PROCESSING_END").await;
    fixture.post(&format!("/v1/sessions/{id}/submit"), &json!({"text": "second"})).await;
    frames.extend(stream.until_kind("PROCESSING_END").await);
    let kinds_of = |history: &serde_json::Value| -> Vec<(String, String)> {
        let turns = history["turns"].as_array().unwrap().iter();
        turns
            .map(|turn| {
                let is_it = |frame: &&Frame| frame.id.is_some() && frame.data["seq"] == turn["event"];
                let event = frames.iter().find(is_it).map(|frame| frame.data["kind"].to_string());
                (turn["kind"].as_str().unwrap().to_owned(), event.unwrap_or_default().replace('"', ""))
            })
            .collect()
    };
    let expected = [
        ("user", "USER_INPUT"),
        ("assistant", "MODEL_RESPONSE"),
        ("tool_results", "TOOL_CALL_END"),
        ("assistant", "MODEL_RESPONSE"),
        ("user", "USER_INPUT"),
        ("assistant", "MODEL_RESPONSE"),
    ]
    .map(|(kind, event)| (kind.to_owned(), event.to_owned()));
    let path = format!("/v1/sessions/{id}/history");
    assert_eq!(kinds_of(&fixture.get(&path).await.json()), expected);
    fixture.post(&format!("/v1/sessions/{id}/rewind"), &json!({"turns": 4})).await;
    assert_eq!(kinds_of(&fixture.get(&path).await.json()), expected[..4]);
}

#[tokio::test]
async fn requests_with_a_key_are_carried_out_once() {
    let fixture = Setup::new(scripted().answer("One.").answer("Two.")).start().await;
    let id = fixture.create_with("first").await;
    let mut stream = fixture.follow(&id, None).await;
    stream.until_kind("PROCESSING_END").await;
    let path = format!("/v1/sessions/{id}/rewind");
    let rewind = || Request::new("POST", &path).json(&json!({"turns": 0})).header("idempotency-key", "r");
    let (one, two) = tokio::join!(fixture.send(rewind()), fixture.send(rewind()));
    assert_eq!((one.status, two.status), (202, 202));
    fixture.post(&format!("/v1/sessions/{id}/submit"), &json!({"text": "again"})).await;
    stream.until_kind("PROCESSING_END").await;
    assert_eq!(fixture.send(rewind()).await.status, 202);
    let history = fixture.get(&format!("/v1/sessions/{id}/history")).await.json();
    assert_eq!(history["turns"].as_array().unwrap().len(), 2, "what followed the first one stays: {history}");
    let delete = || Request::new("DELETE", &format!("/v1/sessions/{id}")).header("idempotency-key", "d");
    assert_eq!(fixture.send(delete()).await.status, 204);
    assert_eq!(fixture.send(delete()).await.status, 204);
}

#[tokio::test]
async fn a_key_is_for_one_request() {
    let fixture = Setup::new(scripted().answer("One.").answer("Two.")).start().await;
    let post = |path: &str, body: &serde_json::Value| {
        Request::new("POST", path).json(body).header("idempotency-key", "k")
    };
    let created = fixture.send(post("/v1/sessions", &json!({"message": {"text": "Hi"}}))).await;
    assert_eq!(created.status, 201);
    let id = created.json()["id"].as_str().unwrap().to_owned();
    let submit = format!("/v1/sessions/{id}/submit");
    assert_eq!(fixture.send(post(&submit, &json!({"text": "More"}))).await.status, 202);
    for (path, other) in
        [("/v1/sessions", json!({"message": {"text": "Ho"}})), (submit.as_str(), json!({"text": "Less"}))]
    {
        let refused = fixture.send(post(path, &other)).await;
        assert_eq!(refused.status, 422, "{path}");
        assert_eq!(refused.json()["type"], "/problems/key");
    }
    // The same key is another one for another operation.
    fixture.follow(&id, None).await.until_kind("PROCESSING_END").await;
    let aborted = fixture.send(post(&format!("/v1/sessions/{id}/abort"), &json!({}))).await;
    assert_eq!(aborted.status, 202, "{aborted:?}");
    let end = tokio::time::Instant::now() + PATIENCE;
    while fixture.get(&format!("/v1/sessions/{id}")).await.json()["state"] != "CLOSED" {
        assert!(tokio::time::Instant::now() < end, "it was aborted");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    // What failed was no use of the key.
    let fork = format!("/v1/sessions/{id}/fork");
    assert_eq!(fixture.send(post(&fork, &json!({"turns": "many"}))).await.status, 400);
    assert_eq!(fixture.send(post(&fork, &json!({"turns": 0}))).await.status, 201);
}

#[tokio::test]
async fn an_input_does_not_open_a_session_that_has_ended() {
    let fixture = Setup::new(scripted().answer("Hello.")).start().await;
    let id = fixture.create_with("Hello").await;
    fixture.follow(&id, None).await.until_kind("PROCESSING_END").await;
    let (hub, session) = (fixture.hub.clone().unwrap(), SessionId::new(id.as_str()));
    let live = hub.live(&session).unwrap();
    live.handle.close().unwrap();
    tokio::time::timeout(PATIENCE, live.wait_until_ended()).await.expect("it ends");
    hub.open_after_post(&session, &session).await.expect("the message was taken");
    post_input(hub.store.as_ref(), &session, "late", PostedInput::Abort { by: None }).await.unwrap();
    let problem = hub.open_after_post(&session, &session).await.unwrap_err();
    assert!(problem.is(ENDED), "{problem:?}");
}

#[tokio::test]
async fn requests_of_clients_that_go_away_are_carried_out() {
    let adapter = (0..200).fold(scripted(), |adapter, _| adapter.answer("Hello."));
    let mut fixture = Setup::new(adapter).start().await;
    for milliseconds in 0..20 {
        let request = Request::new("POST", "/v1/sessions").json(&json!({"message": {"text": "Hi"}}));
        fixture.send_and_leave(request, std::time::Duration::from_millis(milliseconds)).await;
    }
    // Requests that were begun are carried out before the server ends, and messages are taken by the next one.
    fixture.restart().await;
    let end = tokio::time::Instant::now() + PATIENCE;
    loop {
        let list = fixture.get("/v1/sessions").await.json();
        let sessions = list["sessions"].as_array().unwrap();
        // A request to a model that was cut off by the restart is sent again, so that requests do not count.
        let is_answered = |view: &&serde_json::Value| {
            view["title"] == "Hi" && view["state"] == "IDLE" && view["tokens"].as_u64() > Some(0)
        };
        let answered = sessions.iter().filter(is_answered).count();
        if answered == sessions.len() {
            assert!(answered > 0, "a client stayed long enough");
            break;
        }
        assert!(tokio::time::Instant::now() < end, "half of a request is left: {list}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_session_that_has_ended_takes_nothing() {
    let fixture = Setup::new(scripted().answer("Hello.")).start().await;
    let create = || {
        let request = Request::new("POST", "/v1/sessions").header("idempotency-key", "c");
        request.json(&json!({"message": {"text": "Hi"}}))
    };
    let id = fixture.send(create()).await.json()["id"].as_str().unwrap().to_owned();
    fixture.follow(&id, None).await.until_kind("PROCESSING_END").await;
    let to = |path: &str| format!("/v1/sessions/{id}/{path}");
    assert_eq!(fixture.post(&to("abort"), &json!({})).await.status, 202);
    let end = tokio::time::Instant::now() + PATIENCE;
    while fixture.get(&format!("/v1/sessions/{id}")).await.json()["live"] == json!(true) {
        assert!(tokio::time::Instant::now() < end);
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(fixture.post(&to("abort"), &json!({})).await.status, 202, "it has ended");
    for (path, body) in [
        ("submit", json!({"text": "Hello?"})),
        ("steer", json!({"text": "Hello?"})),
        ("compact", json!({})),
        ("rewind", json!({"turns": 0})),
        ("restore", json!({"turns": 0})),
    ] {
        let answer = fixture.post(&to(path), &body).await;
        assert_eq!(answer.status, 409, "{path}: {answer:?}");
        assert!(answer.text().contains("has ended"), "{path}: {answer:?}");
    }
    let again = fixture.send(create()).await;
    assert_eq!((again.status, again.json()["state"].as_str()), (200, Some("CLOSED")));
    let change = Request::new("PATCH", &format!("/v1/sessions/{id}")).json(&json!({"mode": "auto"}));
    assert_eq!(fixture.send(change).await.status, 409);
}

#[tokio::test]
async fn a_run_is_interrupted_and_the_session_goes_on() {
    let adapter = scripted().message(runs("c1", "sleep 100")).answer("Still here.");
    let fixture = Setup::new(adapter).start().await;
    let id = fixture.create_with("Sleep").await;
    let mut stream = fixture.follow(&id, None).await;
    stream.until_kind("TOOL_CALL_START").await;
    let answer = fixture.post(&format!("/v1/sessions/{id}/interrupt"), &json!({})).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    stream.until_kind("PROCESSING_END").await;
    fixture.post(&format!("/v1/sessions/{id}/submit"), &json!({"text": "Hello?"})).await;
    let frames = stream.until_kind("PROCESSING_END").await;
    assert!(frames.iter().any(|frame| frame.data.to_string().contains("Still here.")), "{frames:#?}");
}

#[tokio::test]
async fn lists_are_searched_filtered_and_paged() {
    let fixture = Setup::new(scripted().answer("a").answer("b").answer("c")).start().await;
    for text in ["Mend the pump", "Paint the door", "Mend the roof"] {
        let id = fixture.create_with(text).await;
        fixture.follow(&id, None).await.until_kind("PROCESSING_END").await;
    }
    let titles = |answer: &super::harness::Answer| -> Vec<String> {
        let list = answer.json();
        let sessions = list["sessions"].as_array().unwrap().clone();
        sessions.iter().map(|session| session["title"].as_str().unwrap().to_owned()).collect()
    };
    let found = fixture.get("/v1/sessions?search=MEND").await;
    assert_eq!(titles(&found), ["Mend the roof", "Mend the pump"]);
    let mut all = Vec::new();
    let mut path = "/v1/sessions?limit=1".to_owned();
    loop {
        let page = fixture.get(&path).await;
        all.extend(titles(&page));
        let Some(next) = page.json()["next"].as_str().map(str::to_owned) else { break };
        path = format!("/v1/sessions?limit=1&cursor={next}");
    }
    assert_eq!(all, ["Mend the roof", "Paint the door", "Mend the pump"]);
    assert_eq!(titles(&fixture.get("/v1/sessions?state=PROCESSING").await), [""; 0]);
    assert_eq!(titles(&fixture.get("/v1/sessions?state=IDLE").await).len(), 3);
}

#[tokio::test]
async fn settings_change_unless_somebody_else_was_first() {
    let fixture = Setup::new(scripted()).start().await;
    let id = fixture.create().await;
    // The first event of a session is recorded after the answer to its creation, and changes its tag.
    fixture.follow(&id, None).await.until_kind("SESSION_START").await;
    let path = format!("/v1/sessions/{id}");
    let read = fixture.get(&path).await;
    let tag = read.header("etag").to_owned();
    let unchanged = fixture.send(Request::new("GET", &path).header("if-none-match", &tag)).await;
    assert_eq!((unchanged.status, unchanged.body.len()), (304, 0));
    let patch =
        |mode: &str| Request::new("PATCH", &path).json(&json!({"mode": mode})).header("if-match", &tag);
    let changed = fixture.send(patch("auto")).await;
    assert_eq!((changed.status, &changed.json()["mode"]), (200, &json!("auto")));
    assert_eq!(fixture.send(patch("ask")).await.status, 412);
    let wrong = fixture.send(Request::new("PATCH", &path).json(&json!({"mode": "fast"}))).await;
    assert_eq!((wrong.status, &wrong.json()["detail"]), (400, &json!("there is no mode `fast`")));
}

#[tokio::test]
async fn forks_have_the_beginning_and_deleted_sessions_are_gone() {
    let fixture = Setup::new(scripted().answer("One.").answer("Other.")).start().await;
    let id = fixture.create_with("First").await;
    fixture.follow(&id, None).await.until_kind("PROCESSING_END").await;
    let forked = fixture.post(&format!("/v1/sessions/{id}/fork"), &json!({"turns": 1})).await;
    assert_eq!(forked.status, 201, "{forked:?}");
    let fork = forked.json()["id"].as_str().unwrap().to_owned();
    let history = fixture.get(&format!("/v1/sessions/{fork}/history")).await.json();
    assert_eq!(history["turns"].as_array().unwrap().len(), 1, "{history}");
    let many = fixture.post(&format!("/v1/sessions/{id}/fork"), &json!({"turns": 9})).await;
    assert_eq!(many.status, 400, "{many:?}");

    let path = format!("/v1/sessions/{id}");
    let mut stream = fixture.follow(&id, None).await;
    stream.until(|frame| frame.name.as_deref() == Some("ready")).await;
    assert_eq!(fixture.send(Request::new("DELETE", &path)).await.status, 204);
    let last = stream.until(|frame| frame.name.as_deref() == Some("problem")).await;
    assert_eq!(last.last().unwrap().data["status"], 404, "the stream says so and ends");
    assert!(stream.next().await.is_none());
    assert_eq!(fixture.get(&path).await.status, 404);
    assert_eq!(fixture.send(Request::new("DELETE", &path)).await.status, 404);
    assert_eq!(fixture.get(&format!("/v1/sessions/{fork}")).await.status, 200, "the fork stays");
}

#[tokio::test]
async fn the_journal_is_read_by_lines() {
    let fixture = Setup::new(scripted().answer("One.")).start().await;
    let id = fixture.create_with("First").await;
    fixture.follow(&id, None).await.until_kind("PROCESSING_END").await;
    let all = fixture.get(&format!("/v1/sessions/{id}/journal")).await.text();
    let lines: Vec<&str> = all.lines().collect();
    assert!(
        lines.len() > 4 && lines.iter().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok())
    );
    let some = fixture.get(&format!("/v1/sessions/{id}/journal?from=2&to=3")).await.text();
    assert_eq!(some.lines().collect::<Vec<_>>(), lines[1..3]);
    assert_eq!(fixture.get(&format!("/v1/sessions/{id}/journal?from=0")).await.status, 400);
}

#[tokio::test]
async fn a_fork_that_was_just_made_can_be_deleted() {
    let fixture = Setup::new(scripted().answer("Hello.")).start().await;
    let id = fixture.create_with("Hello").await;
    fixture.follow(&id, None).await.until_kind("PROCESSING_END").await;
    for _ in 0..20 {
        let forked = fixture.post(&format!("/v1/sessions/{id}/fork"), &json!({"turns": 1})).await;
        let fork = forked.json()["id"].as_str().unwrap().to_owned();
        let deleted = fixture.send(Request::new("DELETE", &format!("/v1/sessions/{fork}"))).await;
        assert_eq!(deleted.status, 204, "{deleted:?}");
    }
}

/// Something else in the same store, such as a task, is no session, also with something in its inbox.
#[tokio::test]
async fn only_sessions_are_shown_and_opened() {
    let mut fixture = Setup::new(scripted().answer("Hello.")).start().await;
    let id = pintle_agent::SessionId::new("other");
    let now = pintle_agent::Clock::now(&pintle_agent::SystemClock);
    let summary = Summary::new(id.clone(), now).with_property(Summary::KIND, "task");
    let mut writer = fixture.host.store.create(summary).await.unwrap();
    writer.append(vec!["{\"task\": 1}".to_owned()], Barrier::Synced).await.unwrap();
    writer.close().await.unwrap();
    drop(writer);
    fixture.host.store.post(&id, "x", "{}".to_owned()).await.unwrap();
    fixture.restart().await;
    let listed = fixture.get("/v1/sessions").await.json();
    assert_eq!(listed["sessions"], json!([]));
    assert_eq!(fixture.get("/v1/sessions/other").await.status, 404);
    assert!(fixture.host.store.has_posted(&id).await.unwrap(), "its inbox is its own");
}

#[tokio::test]
async fn deleted_sessions_have_their_cost() {
    let (ann, of_ann) = AccessToken::generate("ann", TokenScope::ALL).unwrap();
    let (ben, of_ben) = AccessToken::generate("ben", TokenScope::ALL).unwrap();
    let tokens = AccessTokens::new([ann.with_tenant("a"), ben.with_tenant("b")]);
    let mut fixture = Setup::new(scripted().answer("One.").answer("Two.")).with_tokens(tokens).start().await;
    let by = |token: &str, request: Request| request.header("authorization", &format!("Bearer {token}"));
    let create = Request::new("POST", "/v1/sessions").json(&json!({"message": {"text": "Hello"}}));
    let created = fixture.send(by(&of_ann, create)).await.json();
    let id = created["id"].as_str().unwrap().to_owned();
    let follow = by(&of_ann, Request::new("GET", &format!("/v1/sessions/{id}/events")));
    fixture.stream_of(follow).await.until_kind("PROCESSING_END").await;
    // A session without a response has no cost.
    let create = Request::new("POST", "/v1/sessions").json(&json!({}));
    let empty = fixture.send(by(&of_ann, create)).await.json();
    let costs = |token: &str| by(token, Request::new("GET", "/v1/costs?days=2"));
    let before = fixture.send(costs(&of_ann)).await.json();
    assert_eq!((&before["days"][0]["responses"], &before["sessions"]), (&json!(1), &json!(1)), "{before}");
    let delete_empty = format!("/v1/sessions/{}", empty["id"].as_str().unwrap());
    assert_eq!(fixture.send(by(&of_ann, Request::new("DELETE", &delete_empty))).await.status, 204);
    let delete = || by(&of_ann, Request::new("DELETE", &format!("/v1/sessions/{id}")));
    assert_eq!(fixture.send(delete()).await.status, 204);
    assert_eq!(fixture.send(delete()).await.status, 404);
    assert_eq!(fixture.send(costs(&of_ann)).await.json(), before);
    fixture.restart().await;
    assert_eq!(fixture.send(costs(&of_ann)).await.json(), before);
    assert_eq!(fixture.send(costs(&of_ben)).await.json()["days"], json!([]), "tenants see their own");
    for path in ["/v1/sessions", "/v1/sessions?search=cost"] {
        let listed = fixture.send(by(&of_ann, Request::new("GET", path))).await.json();
        assert_eq!(listed["sessions"], json!([]), "{path}");
    }
    let kept = by(&of_ann, Request::new("GET", &format!("/v1/sessions/cost-{id}")));
    assert_eq!(fixture.send(kept).await.status, 404, "what is kept is no session");
}

#[tokio::test]
async fn other_sessions_are_opened_while_the_record_of_a_deleted_one_is_read() {
    let mut fixture = Setup::new(scripted()).start().await;
    let deleted = SessionId::new(fixture.create().await);
    let other = SessionId::new(fixture.create().await);
    fixture.restart().await;
    let hub = fixture.hub.clone().unwrap();
    let read = || async { assert!(hub.open(&other).await.is_ok()) };
    let deletion = tokio::time::timeout(PATIENCE, hub.delete(&deleted, &deleted, None, read)).await;
    deletion.expect("the deletion blocks no opening").unwrap();
    assert!(fixture.host.store.summary(&deleted).await.unwrap().is_none());
}

#[tokio::test]
async fn a_session_whose_cost_cannot_be_kept_is_deleted() {
    let fixture = Setup::new(scripted().answer("One.")).start().await;
    let id = fixture.create_with("Hello").await;
    fixture.follow(&id, None).await.until_kind("PROCESSING_END").await;
    let now = pintle_agent::Clock::now(&pintle_agent::SystemClock);
    // Another writer has the record of the cost.
    let cost = Summary::new(SessionId::new(format!("cost-{id}")), now);
    let _writer = fixture.host.store.create(cost.with_property(Summary::KIND, "cost")).await.unwrap();
    let path = format!("/v1/sessions/{id}");
    let deleted = fixture.send(Request::new("DELETE", &path)).await;
    assert_eq!(deleted.status, 204, "{deleted:?}");
    assert_eq!(fixture.get(&path).await.status, 404);
}

#[tokio::test]
async fn a_session_with_a_message_is_processing_at_once() {
    let fixture = Setup::new(scripted().message(runs("c1", "make")).answer("One.")).start().await;
    fixture.host.holds.send_replace(true);
    let created = fixture.post("/v1/sessions", &json!({"message": {"text": "Hello"}})).await.json();
    assert_eq!(created["state"], "PROCESSING", "{created}");
    let path = format!("/v1/sessions/{}", created["id"].as_str().unwrap());
    assert_eq!(fixture.get(&path).await.json()["state"], "PROCESSING");
    let listed = fixture.get("/v1/sessions?state=PROCESSING").await.json();
    assert_eq!(listed["sessions"][0]["id"], created["id"], "{listed}");
    fixture.host.holds.send_replace(false);
    let mut stream = fixture.stream(&format!("{path}/events")).await;
    stream.until_kind("PROCESSING_END").await;
    let empty = fixture.post("/v1/sessions", &json!({})).await.json();
    assert_eq!(empty["state"], "IDLE", "{empty}");
}
