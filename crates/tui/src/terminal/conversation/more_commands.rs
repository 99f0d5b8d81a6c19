//! Commands that are not built in: commands of the user, and prompts of MCP servers.

use std::time::Duration;

use pintle_host::prompt_commands::{PromptCommand, words};
use pintle_host::slash_commands;
use pintle_host::user_commands::UserCommand;

use super::{Conversation, Effect};
use crate::terminal::completion::Menu;

impl Conversation {
    /// Sets the commands of the user.
    pub(crate) fn set_user_commands(&mut self, commands: Vec<UserCommand>) {
        self.user_commands = commands;
        self.list_more_commands();
    }

    /// Sets the prompts of servers that can be called.
    pub(crate) fn set_prompts(&mut self, prompts: Vec<PromptCommand>) {
        if self.prompts != prompts {
            self.prompts = prompts;
            self.list_more_commands();
        }
    }

    fn list_more_commands(&mut self) {
        let own = self.user_commands.iter().map(|command| (command.name.clone(), command.meaning.clone()));
        let prompts = self.prompts.iter().map(|prompt| (prompt.command.clone(), prompt.meaning()));
        self.more_commands = own.chain(prompts).collect();
        self.menu = Menu::complete(&self.editor.before_cursor(), &self.files, &self.more_commands);
    }

    /// Returns the effects of a command of the user, or `None` if no command has this name.
    pub(super) fn user_command(&mut self, written: &str) -> Option<Vec<Effect>> {
        let (name, arguments) = slash_commands::split(written);
        let said = self.user_commands.iter().find(|command| command.name == name)?.say(arguments);
        let text = self.take()?;
        Some(vec![Effect::Remember(text), Effect::Say(self.compose_message(&said))])
    }

    /// Returns the effects of a prompt of a server, or `None` if no prompt has this name.
    pub(super) fn prompt(&mut self, written: &str, now: Duration) -> Option<Vec<Effect>> {
        let (name, arguments) = slash_commands::split(written);
        let called = self.prompts.iter().find(|prompt| prompt.command == name);
        let called = called?.call(written, words(arguments));
        match called {
            Ok(called) => {
                let text = self.take()?;
                Some(vec![Effect::Remember(text), Effect::CallPrompt(called)])
            }
            Err(problem) => {
                self.hint(problem, now);
                Some(Vec::new())
            }
        }
    }
}
