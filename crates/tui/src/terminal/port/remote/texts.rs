//! Text of the model as deltas, which the conversation requires. Recorded events contain the whole text of a segment, and
//! deltas may have been missed.

use pintle_agent::{EventKind, SessionEvent};

/// Length of the shown text of the open segment.
#[derive(Debug, Default)]
pub(super) struct Texts {
    /// Number of bytes.
    shown: usize,
}

impl Texts {
    /// Returns the events to show for a received event.
    pub(super) fn events(&mut self, event: SessionEvent) -> Vec<SessionEvent> {
        match &event.kind {
            EventKind::AssistantTextStart {} => self.shown = 0,
            EventKind::AssistantTextDelta { delta } => {
                let offset =
                    event.offset.and_then(|offset| usize::try_from(offset).ok()).unwrap_or(self.shown);
                // Text that is repeated was shown. After a gap, the end of the segment contains the missing text.
                let new = self.shown.checked_sub(offset).and_then(|known| delta.get(known..));
                let Some(new) = new.filter(|new| !new.is_empty()) else { return Vec::new() };
                self.shown = offset + delta.len();
                let kind = EventKind::AssistantTextDelta { delta: new.to_owned() };
                return vec![with_kind(&event, kind)];
            }
            EventKind::AssistantTextEnd { text, .. } => {
                let rest = text.get(self.shown..).filter(|rest| !rest.is_empty());
                let rest = rest.map(|rest| EventKind::AssistantTextDelta { delta: rest.to_owned() });
                let rest = rest.map(|kind| with_kind(&event, kind));
                self.shown = 0;
                return rest.into_iter().chain([event]).collect();
            }
            EventKind::SessionStart { .. } | _ => {}
        }
        vec![event]
    }

    /// Resets the length of the shown text.
    pub(super) fn clear(&mut self) {
        self.shown = 0;
    }
}

fn with_kind(event: &SessionEvent, kind: EventKind) -> SessionEvent {
    let mut event = event.clone();
    event.kind = kind;
    event
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(offset: Option<usize>, kind: &str, data: &serde_json::Value) -> SessionEvent {
        let at = "2026-01-02T03:04:05.000Z";
        let mut event = json!({"seq": 1, "timestamp": at, "session_id": "s", "kind": kind, "data": data});
        if let Some(offset) = offset {
            event["offset"] = json!(offset);
        }
        serde_json::from_value(event).unwrap()
    }

    /// Returns the text that is shown for events.
    fn shown(events: Vec<SessionEvent>) -> String {
        let mut texts = Texts::default();
        let shown = events.into_iter().flat_map(|event| texts.events(event)).map(|event| match event.kind {
            EventKind::AssistantTextDelta { delta } => delta,
            EventKind::AssistantTextEnd { .. } => "|".to_owned(),
            EventKind::SessionStart { .. } | _ => String::new(),
        });
        shown.collect()
    }

    #[test]
    fn each_byte_of_a_text_is_shown_once() {
        let delta = |offset, text: &str| event(Some(offset), "ASSISTANT_TEXT_DELTA", &json!({"delta": text}));
        let start = || event(None, "ASSISTANT_TEXT_START", &json!({}));
        let end = |text: &str| event(None, "ASSISTANT_TEXT_END", &json!({"text": text}));
        for (deltas, name) in [
            (vec![], "of the record"),
            (vec![delta(0, "Grü"), delta(4, "ße"), delta(7, "!")], "as it was written"),
            (vec![delta(0, "Grü"), delta(0, "Grüße!")], "sent again"),
            (vec![delta(0, "Grü"), delta(7, "!")], "a part was missed"),
            (vec![delta(4, "ße")], "the beginning was missed"),
        ] {
            let events = [vec![start()], deltas, vec![end("Grüße!"), start(), end("More")]].concat();
            assert_eq!(shown(events), "Grüße!|More|", "{name}");
        }
    }
}
