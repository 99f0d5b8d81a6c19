//! Questions of MCP servers, beside the calls that wait for approval.

use super::{Conversation, region};
use crate::approve::Question;

impl Conversation {
    /// Adds a question of a server. As for approvals, details that do not fit the region are printed in full.
    pub(crate) fn ask_also(&mut self, question: Question) {
        let is_writing = !self.editor.is_empty() || self.approvals.is_focused();
        self.questions.add(question, is_writing);
        let columns = region::columns(self.size);
        if self.is_plain() || self.questions.newest_details(columns) > region::most_details(self.size) {
            let rows = self.questions.newest(columns, self.is_plain());
            self.transcript.rows(rows);
        }
    }

    /// Removes the questions whose servers no longer wait for an answer.
    pub(crate) fn forget_withdrawn(&mut self) {
        self.questions.remove_withdrawn();
    }

    /// Switches the keys between the pending calls or questions and the editor.
    pub(super) fn turn_focus(&mut self) {
        if self.approvals.is_empty() {
            self.questions.focus(!self.questions.is_focused());
        } else {
            self.approvals.focus(!self.approvals.is_focused());
        }
    }
}
