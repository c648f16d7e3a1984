//! `fs.diff`: between two contents, by their hashes.

use hanzo_protocol::envelope::{ErrorCode, ToolError};
use hanzo_protocol::primitives::ContentHash;
use hanzo_protocol::tool::Effect;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::text::{self, Decoded};
use super::{diff_text, shape};
use crate::contract::{Action, Answer, Call};

/// Compares two contents that were read or written here.
pub(super) struct Diff;

/// The arguments of `fs.diff`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DiffInput {
    /// Older hash.
    hash_a: ContentHash,
    /// Newer hash.
    hash_b: ContentHash,
}

/// The answer of `fs.diff`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct DiffOutput {
    /// Whether the contents are the same.
    same: bool,
    /// The unified diff, shortened if it is long.
    diff: String,
    /// The whole diff, when it was shortened.
    #[serde(skip_serializing_if = "Option::is_none")]
    diff_ref: Option<String>,
}

impl Action for Diff {
    const NAME: &'static str = "diff";
    const SUMMARY: &'static str = "of two hashes seen here";
    const EXAMPLE: &'static str = r#"{"hash_a":"sha256:…","hash_b":"sha256:…"}"#;
    const QUIET: &'static [&'static str] = &["hash_a", "hash_b"];
    type Input = DiffInput;
    type Output = DiffOutput;

    fn effect(&self, _: &DiffInput) -> Effect {
        Effect::Read
    }

    async fn run(&self, call: &Call<'_>, input: DiffInput) -> Result<Answer<DiffOutput>, ToolError> {
        let old = super::content(call, &input.hash_a).await?;
        let new = super::content(call, &input.hash_b).await?;
        let (Decoded::Text(old, _), Decoded::Text(new, _)) =
            (text::decode(&old, None), text::decode(&new, None))
        else {
            return Err(ToolError::new(ErrorCode::Unsupported, "one of the contents is not text"));
        };
        let diff = diff_text::unified(Some(&old), Some(&new), input.hash_a.as_str(), input.hash_b.as_str());
        let same = diff.is_empty();
        let (diff, diff_ref) = shape::shortened(call, diff).await;
        Ok(Answer::new(DiffOutput { same, diff, diff_ref }))
    }
}
