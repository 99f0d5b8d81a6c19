//! `view_image`: shows an image file.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::builtin::{ReadFile, ReadFileInput};
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::kind::ToolKind;
use crate::properties::{stateless_tool, tool_properties};
use crate::tool::{Effect, Tool, ToolOutput};

stateless_tool! {
    /// Shows an image to the model, like [`ReadFile`].
    pub struct ViewImage;
}

/// The arguments of `view_image`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ViewImageInput {
    /// The path of the image file.
    #[schemars(description = "")]
    pub path: String,
}

impl Tool for ViewImage {
    type Input = ViewImageInput;

    tool_properties! {
        name: "view_image",
        description: include_str!("../../../prompts/openai/view_image.md"),
        effect: Effect::Read,
        kind: ToolKind::ReadFile.as_str(),
    }

    fn reads(&self, input: &ViewImageInput) -> Vec<PathBuf> {
        vec![PathBuf::from(&input.path)]
    }

    async fn call(&self, input: ViewImageInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        // One line is enough to detect a text file.
        let request = ReadFileInput { file_path: input.path.clone(), offset: None, limit: Some(1) };
        let output = ReadFile::new().call(request, cx).await?;
        if output.images.is_empty() {
            let message = format!("{} is no image: expected PNG, JPEG, GIF or WebP", input.path);
            return Err(ToolError::failed(message));
        }
        Ok(output)
    }
}
