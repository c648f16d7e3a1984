//! `ui.screenshot`, `ui.click`, `ui.type` and `ui.focus`.

use hanzo_protocol::envelope::{ErrorCode, Intent, ToolError};
use hanzo_protocol::item::Taint;
use hanzo_protocol::tool::Effect;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Region, Wanted, Window, attachment, keep, with_screen};
use crate::contract::{Action, Answer, Call};

/// The most that is typed at once: typing cannot be taken back.
const MAX_TYPED: usize = 10_000;

/// Takes a picture of the screen.
pub(super) struct Screenshot;

/// The arguments of `ui.screenshot`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ScreenshotInput {
    /// {x,y,width,height}; all of it unless said.
    region: Option<Region>,
}

/// The answer of `ui.screenshot`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ScreenshotOutput {
    width: u32,
    height: u32,
    /// Where the PNG is kept.
    r#ref: String,
}

impl Action for Screenshot {
    const NAME: &'static str = "screenshot";
    const SUMMARY: &'static str = "picture of the screen";
    const EXAMPLE: &'static str = r#"{"region":{"x":0,"y":0,"width":400,"height":300}}"#;
    const WORST: Effect = Effect::Screen;
    const INTENTS: Option<&'static [Intent]> =
        Some(&[Intent::Inspect, Intent::Apply, Intent::Verify, Intent::Ship]);
    type Input = ScreenshotInput;
    type Output = ScreenshotOutput;

    fn effect(&self, _: &ScreenshotInput) -> Effect {
        Effect::Screen
    }

    async fn run(
        &self,
        call: &Call<'_>,
        input: ScreenshotInput,
    ) -> Result<Answer<ScreenshotOutput>, ToolError> {
        let (width, height, png) = with_screen(call, move |screen, _| {
            let picture = screen.capture(input.region)?;
            Ok((picture.width, picture.height, picture.png()?))
        })
        .await?;
        let r#ref = keep(call, &png).await?;
        let mut answer =
            Answer::new(ScreenshotOutput { width, height, r#ref }).tainted(Some(Taint::Outside)).by("x11");
        answer.attachments.extend(attachment(&png));
        Ok(answer)
    }
}

/// Clicks.
pub(super) struct Click;

/// Which button.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Button {
    #[default]
    Left,
    Middle,
    Right,
}

/// The arguments of `ui.click`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ClickInput {
    /// From the left.
    x: u32,
    /// From the top.
    y: u32,
    /// Which button.
    #[serde(default)]
    button: Button,
    /// How often; 2 for a double click.
    count: Option<u8>,
}

/// What a click or typed text leads to is in the next picture.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Done {
    /// What was done.
    done: String,
}

impl Action for Click {
    const NAME: &'static str = "click";
    const SUMMARY: &'static str = "click at x, y";
    const EXAMPLE: &'static str = r#"{"x":100,"y":50}"#;
    const WORST: Effect = Effect::Screen;
    const QUIET: &'static [&'static str] = &["x", "y", "button"];
    const HIDDEN: &'static [&'static str] = &["count"];
    type Input = ClickInput;
    type Output = Done;

    fn effect(&self, _: &ClickInput) -> Effect {
        Effect::Screen
    }

    async fn run(&self, call: &Call<'_>, input: ClickInput) -> Result<Answer<Done>, ToolError> {
        let ClickInput { x, y, button, count } = input;
        let number = match button {
            Button::Left => 1,
            Button::Middle => 2,
            Button::Right => 3,
        };
        let count = count.unwrap_or(1).clamp(1, 3);
        with_screen(call, move |screen, _| screen.click(x, y, number, count)).await?;
        Ok(Answer::new(Done { done: format!("clicked at {x}, {y}") }).by("x11"))
    }
}

/// Types.
pub(super) struct Type;

/// The arguments of `ui.type`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TypeInput {
    /// What to type; a line break is the Enter key.
    text: String,
}

impl Action for Type {
    const NAME: &'static str = "type";
    const SUMMARY: &'static str = "type text";
    const EXAMPLE: &'static str = r#"{"text":"hello\n"}"#;
    const WORST: Effect = Effect::Screen;
    const QUIET: &'static [&'static str] = &["text"];
    type Input = TypeInput;
    type Output = Done;

    fn effect(&self, _: &TypeInput) -> Effect {
        Effect::Screen
    }

    async fn run(&self, call: &Call<'_>, input: TypeInput) -> Result<Answer<Done>, ToolError> {
        let count = input.text.chars().count();
        if count > MAX_TYPED {
            return Err(ToolError::new(
                ErrorCode::TooLarge,
                format!("the text has {count} characters, and {MAX_TYPED} are typed at most"),
            ));
        }
        with_screen(call, move |screen, go_on| screen.type_text(&input.text, go_on)).await?;
        Ok(Answer::new(Done { done: format!("typed {count} characters") }).by("x11"))
    }
}

/// Gives a window the keyboard.
pub(super) struct Focus;

/// The arguments of `ui.focus`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FocusInput {
    /// Part of the title.
    title: Option<String>,
    /// Its process.
    pid: Option<u32>,
}

impl Action for Focus {
    const NAME: &'static str = "focus";
    const SUMMARY: &'static str = "window by title or pid";
    const EXAMPLE: &'static str = r#"{"title":"Terminal"}"#;
    const WORST: Effect = Effect::Screen;
    const QUIET: &'static [&'static str] = &["title", "pid"];
    type Input = FocusInput;
    type Output = Window;

    fn effect(&self, _: &FocusInput) -> Effect {
        Effect::Screen
    }

    async fn run(&self, call: &Call<'_>, input: FocusInput) -> Result<Answer<Window>, ToolError> {
        let wanted = match (input.title, input.pid) {
            (Some(title), None) if !title.trim().is_empty() => Wanted::Title(title),
            (None, Some(pid)) => Wanted::Pid(pid),
            _ => {
                return Err(ToolError::new(
                    ErrorCode::InvalidArguments,
                    "either `title` or `pid` says which window",
                ));
            }
        };
        let window = with_screen(call, move |screen, _| screen.focus(&wanted)).await?;
        Ok(Answer::new(window).tainted(Some(Taint::Outside)).by("x11"))
    }
}
