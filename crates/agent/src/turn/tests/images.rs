//! Images of the user's messages.

use pintle_llm::{ContentPart, ImageData};

use super::*;

fn picture(text: &str) -> UserMessage {
    UserMessage::from(text).with_image(ImageData::data(vec![7; 300], "image/png"))
}

/// Returns, for each message of the newest request with images, their number and the text.
fn sent_with_images(harness: &Harness) -> Vec<(usize, String)> {
    let messages = harness.requests.last().unwrap().messages.iter();
    let counted = messages.map(|item| {
        let images = item.content.iter().filter(|part| matches!(part, ContentPart::Image(_)));
        (images.count(), item.text())
    });
    counted.filter(|(images, _)| *images > 0).collect()
}

#[test]
fn images_reach_the_model_with_inputs_steering_messages_and_follow_ups() {
    let mut harness = Harness::new();
    harness.tell(InputKind::Steer { message: picture("steering") });
    harness
        .tell(InputKind::FollowUp { message: picture("follow-up").with_image(ImageData::url("https://x")) });
    harness.tell(InputKind::Submit { run: RunId(1), message: picture("input") });
    harness.load();
    harness.say("seen");
    let sent = [(1, "input".to_owned()), (1, "steering".to_owned()), (2, "follow-up".to_owned())];
    assert_eq!(sent_with_images(&harness), sent);
    let named: Vec<usize> = harness
        .events
        .iter()
        .filter_map(|event| match event {
            EventKind::UserInput { images, .. } | EventKind::SteeringInjected { images, .. } => {
                Some(images.len())
            }
            _ => None,
        })
        .collect();
    assert_eq!(named, [1, 1, 2], "events name them without their bytes");
}

#[test]
fn an_image_that_waits_for_the_end_of_an_interrupted_run_is_not_lost() {
    let mut harness = Harness::new();
    harness.submit("go");
    harness.tell(InputKind::Interrupt);
    harness.tell(InputKind::Submit { run: RunId(2), message: picture("") });
    harness.failed(ErrorKind::Abort, "");
    assert_eq!(sent_with_images(&harness), [(1, String::new())], "an image needs no text");
}

#[test]
fn a_refused_image_of_the_user_is_replaced_by_a_note() {
    let mut harness = Harness::new();
    harness.tell(InputKind::Submit { run: RunId(1), message: picture("look") });
    harness.load();
    harness.failed(ErrorKind::InvalidRequest, "");
    assert_eq!(harness.requests.len(), 2);
    assert_eq!(sent_with_images(&harness), []);
    assert!(harness.sent()[0].contains("image that was here is left out"), "{:?}", harness.sent());
}

#[test]
fn the_path_of_an_image_is_refused() {
    let with_path = UserMessage::from("look").with_image(ImageData::path("/etc/passwd"));
    let mut harness = Harness::new();
    harness.tell(InputKind::Submit { run: RunId(1), message: with_path.clone() });
    assert_eq!(harness.last_outcome().0, OutcomeStatus::Failed);
    let error = harness.outcomes[0].error.as_ref().unwrap().to_string();
    assert!(error.contains("the input has the path of an image: expected the bytes or a URL"), "{error}");
    harness.tell(InputKind::Steer { message: with_path });
    assert_eq!(harness.kinds().iter().filter(|kind| *kind == "WARNING").count(), 1);
    assert_eq!(harness.machine.steering().len(), 0);
}
