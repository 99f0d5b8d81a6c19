//! Streams of tasks: from any input, while they are written, to their end.

use std::time::Duration;

use pintle_agent::SessionId;
use pintle_workflow::task::Task;
use pintle_workflow::{TaskLine, TaskReader};
use serde_json::{Value, json};

use super::performer::{Running, contract, done_task};
use crate::ServerLimits;
use crate::tests::harness::{Fixture, Frame, Request, Setup, scripted};

fn inputs(frames: &[Frame]) -> Vec<(&str, &Value)> {
    frames.iter().filter_map(|frame| Some((frame.id.as_deref()?, &frame.data))).collect()
}

fn is_named(name: &'static str) -> impl Fn(&Frame) -> bool {
    move |frame| frame.name.as_deref() == Some(name)
}

/// Returns the inputs on record, by their ids.
async fn recorded(fixture: &Fixture, id: &str) -> Vec<(String, Value)> {
    let mut reader = TaskReader::open(&fixture.host.store, &SessionId::new(id)).await.unwrap();
    let mut inputs = Vec::new();
    while let Some(line) = reader.next().await.unwrap() {
        if let TaskLine::Input(input) = line {
            let id = format!("{}-{}", input.seq, input.at.as_millis());
            inputs.push((id, serde_json::to_value(&input.input).unwrap()));
        }
    }
    inputs
}

#[tokio::test]
async fn a_stream_of_a_task_has_each_input_once() {
    let fixture = Setup::new(scripted()).start().await;
    done_task(&fixture, "t1").await;
    let all = recorded(&fixture, "t1").await;
    let expected: Vec<(&str, &Value)> = all.iter().map(|(id, input)| (id.as_str(), input)).collect();
    let mut stream = fixture.stream("/v1/tasks/t1/events").await;
    let frames = stream.until(is_named("end")).await;
    assert_eq!(inputs(&frames), expected);
    assert_eq!(frames.last().unwrap().data, json!({"state": "done"}));
    assert!(stream.next().await.is_none(), "the stream ends");
    for (index, (id, _)) in all.iter().enumerate() {
        let request = Request::new("GET", "/v1/tasks/t1/events").header("last-event-id", id);
        let frames = fixture.stream_of(request).await.until(is_named("end")).await;
        assert_eq!(inputs(&frames), expected[index + 1..], "after {id}");
        assert!(frames.iter().all(|frame| !is_named("reset")(frame)), "after {id}");
        let names: Vec<&str> = frames.iter().filter_map(|frame| frame.name.as_deref()).collect();
        assert_eq!(names, ["ready", "end"], "after {id}");
    }
}

#[tokio::test]
async fn inputs_that_never_were_reset_the_client() {
    let fixture = Setup::new(scripted()).start().await;
    done_task(&fixture, "t1").await;
    let all = recorded(&fixture, "t1").await;
    let place = all[3].0.split('-').next().unwrap();
    // The number alone is enough.
    let mut stream = fixture.stream(&format!("/v1/tasks/t1/events?after={place}")).await;
    assert_eq!(stream.next().await.unwrap().id.as_deref(), Some(all[4].0.as_str()));
    for after in ["4000", "4000-1764140000123", &format!("{place}-1"), "1"] {
        let mut stream = fixture.stream(&format!("/v1/tasks/t1/events?after={after}")).await;
        let first = stream.next().await.unwrap();
        assert!(is_named("reset")(&first), "{after}: {first:?}");
        let frames = stream.until(is_named("end")).await;
        assert_eq!(inputs(&frames).len(), all.len(), "{after}: from the beginning");
    }
}

#[tokio::test]
async fn a_stream_follows_a_task_while_it_runs() {
    let limits = ServerLimits::default().with_heartbeat(Duration::from_millis(20));
    let fixture = Setup::new(scripted()).with_limits(limits).start().await;
    let running = Running::start(&fixture, "t1", contract(), 0).await;
    let mut stream = fixture.stream("/v1/tasks/t1/events").await;
    let before = stream.until(|frame| frame.data["began"]["candidate"] == 1).await;
    stream.until(is_named("heartbeat")).await;
    // Another client comes in the middle, and goes on from there.
    let last = inputs(&before).last().unwrap().0.to_owned();
    let mut other = fixture.stream(&format!("/v1/tasks/t1/events?after={last}")).await;
    other.until(is_named("ready")).await;
    assert_eq!(fixture.get("/v1/tasks/t1").await.json()["running"], true);
    running.performer.may_end.add_permits(9);
    let (after, same) = tokio::join!(stream.until(is_named("end")), other.until(is_named("end")));
    assert_eq!(inputs(&after), inputs(&same));
    running.outcome().await;
    let followed: Vec<Value> =
        inputs(&before).iter().chain(&inputs(&after)).map(|(_, input)| (*input).clone()).collect();
    let all: Vec<Value> = recorded(&fixture, "t1").await.into_iter().map(|(_, input)| input).collect();
    assert_eq!(followed, all, "nothing is missed or doubled");
    let mut task = Task::new(contract()).unwrap();
    for input in followed {
        task.apply(serde_json::from_value(input).unwrap());
    }
    assert_eq!(task.state(), "done", "the inputs are the whole task");
}

#[tokio::test]
async fn a_stream_goes_on_with_the_next_process() {
    let fixture = Setup::new(scripted()).start().await;
    let running = Running::start(&fixture, "t1", contract(), 1).await;
    let mut stream = fixture.stream("/v1/tasks/t1/events").await;
    stream.until(|frame| frame.data["finished"]["step"]["kind"] == "work").await;
    running.stop().await;
    Running::resume(&fixture, "t1").await.outcome().await;
    let frames = stream.until(is_named("end")).await;
    assert_eq!(frames.last().unwrap().data, json!({"state": "done"}));
}

#[tokio::test]
async fn streams_of_tasks_end_with_the_server() {
    let mut fixture = Setup::new(scripted()).start().await;
    let running = Running::start(&fixture, "t1", contract(), 0).await;
    let mut stream = fixture.stream("/v1/tasks/t1/events").await;
    stream.until(|frame| frame.data["began"]["candidate"] == 1).await;
    fixture.shut_down().await;
    while stream.next().await.is_some() {}
    running.stop().await;
}
