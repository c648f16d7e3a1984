//! `ui`: the screen of this machine. Pictures of it, the pointer, the keyboard, and recordings as single pictures.
//!
//! What a screen is to the actions is [`Screen`]; `x11` is the one there is. Without a display every action answers
//! `UNSUPPORTED`. What a picture shows is as foreign as a file outside the workspace, and is marked so.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use hanzo_protocol::envelope::{ErrorCode, ToolError};
use hanzo_protocol::item::Taint;
use hanzo_protocol::message::{Attachment, AttachmentSource};
use hanzo_protocol::tool::ToolCaller;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use crate::contract::{Call, ToolBuilder, UnifiedTool};

mod act;
mod picture;
mod record;
mod x11;

pub use picture::Picture;

/// The largest picture that is handed to a model.
const MAX_IMAGE: usize = 5 << 20;
/// How long a screen has for what it is asked, unless the host says otherwise.
const PATIENCE: Duration = Duration::from_secs(30);

/// The tool, to be given a host.
pub fn tool() -> ToolBuilder {
    UnifiedTool::builder("ui", "The screen of this machine. Pixels count from the top left.")
        .action(act::Screenshot)
        .action(act::Click)
        .action(act::Type)
        .action(act::Focus)
        .action(record::Record)
        .action(record::Stop)
        .action(record::Session)
}

/// A screen with its pointer and keyboard. Its methods block.
pub trait Screen: Send {
    /// A picture of it, or of a part.
    fn capture(&self, region: Option<Region>) -> Result<Picture, ScreenError>;

    /// Moves the pointer and presses a button, counted from 1 on the left.
    fn click(&self, x: u32, y: u32, button: u8, count: u8) -> Result<(), ScreenError>;

    /// Types text into whatever has the keyboard, as long as `go_on` says so before each character.
    fn type_text(&self, text: &str, go_on: &dyn Fn() -> bool) -> Result<(), ScreenError>;

    /// Gives a window the keyboard.
    fn focus(&self, wanted: &Wanted) -> Result<Window, ScreenError>;
}

/// A part of a screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Region {
    /// From the left.
    pub x: u32,
    /// From the top.
    pub y: u32,
    /// How wide.
    pub width: u32,
    /// How high.
    pub height: u32,
}

/// How a window is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// By a part of its title, in any case.
    Title(String),
    /// By its process.
    Pid(u32),
}

/// A window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Window {
    /// Its title.
    pub title: String,
    /// Its process, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
}

/// A screen could not do it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScreenError {
    /// There is none.
    #[error("there is no screen to work with: {0}")]
    NoDisplay(String),
    /// It cannot.
    #[error("this screen cannot {0}")]
    Unsupported(String),
    /// What was named is not on it.
    #[error("{0}")]
    NotFound(String),
    /// What was asked makes no sense on it.
    #[error("{0}")]
    Invalid(String),
    /// It did not answer.
    #[error("the screen did not answer for {} seconds", .0.as_secs_f64())]
    Silent(Duration),
    /// It failed.
    #[error("the screen failed: {0}")]
    Failed(String),
}

impl From<ScreenError> for ToolError {
    fn from(error: ScreenError) -> Self {
        let code = match error {
            ScreenError::NoDisplay(_) | ScreenError::Unsupported(_) => ErrorCode::Unsupported,
            ScreenError::NotFound(_) => ErrorCode::NotFound,
            ScreenError::Invalid(_) => ErrorCode::InvalidArguments,
            ScreenError::Silent(_) => ErrorCode::Timeout,
            ScreenError::Failed(_) => ErrorCode::Unavailable,
        };
        Self::new(code, error.to_string())
    }
}

/// Opens a screen.
pub type Opener = Arc<dyn Fn() -> Result<Box<dyn Screen>, ScreenError> + Send + Sync>;

/// What the actions of one thread share: how to get at the screen, and the recording under way.
pub struct Ui {
    opener: Opener,
    patience: Duration,
    recording: Mutex<Option<record::Recording>>,
}

impl fmt::Debug for Ui {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ui").finish_non_exhaustive()
    }
}

impl Default for Ui {
    fn default() -> Self {
        Self::new(Arc::new(|| x11::open(None)))
    }
}

impl Ui {
    /// With screens from `opener`.
    pub fn new(opener: Opener) -> Self {
        Self { opener, patience: PATIENCE, recording: Mutex::default() }
    }

    /// The same, with another patience for a screen that does not answer.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// The X11 display called `name`, such as `:99`, whatever the environment says.
    pub fn on_display(name: impl Into<String>) -> Self {
        let name = name.into();
        Self::new(Arc::new(move || x11::open(Some(&name))))
    }

    fn recording(&self) -> MutexGuard<'_, Option<record::Recording>> {
        self.recording.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Nobody reaches a screen from afar: it shows what nobody meant to share.
fn local(call: &Call<'_>) -> Result<(), ToolError> {
    match call.context.caller {
        ToolCaller::Local => Ok(()),
        ToolCaller::Remote => {
            Err(ToolError::new(ErrorCode::Denied, "a remote caller may not use this machine's screen"))
        }
    }
}

/// Does `work` with the screen. It is told whether to go on: no longer when the call was dropped or took too long.
///
/// On a thread of its own: one of the runtime's that waits for a screen that never answers would keep the program from ending.
async fn with_screen<T: Send + 'static>(
    call: &Call<'_>,
    work: impl FnOnce(&dyn Screen, &dyn Fn() -> bool) -> Result<T, ScreenError> + Send + 'static,
) -> Result<T, ToolError> {
    local(call)?;
    let opener = Arc::clone(&call.host.ui.opener);
    let stop = StopOnDrop::default();
    let stopped = Arc::clone(&stop.0);
    let (done, result) = oneshot::channel();
    std::thread::spawn(move || {
        let go_on = || !stopped.load(Ordering::Relaxed);
        // Nobody waits any more when the call was dropped.
        let _ = done.send(opener().and_then(|screen| work(screen.as_ref(), &go_on)));
    });
    answered(result, call.host.ui.patience).await
}

/// Waits for the thread that works with a screen.
async fn answered<T>(
    result: impl Future<Output = Result<Result<T, ScreenError>, oneshot::error::RecvError>>,
    patience: Duration,
) -> Result<T, ToolError> {
    let result = match tokio::time::timeout(patience, result).await {
        Ok(Ok(result)) => result,
        Ok(Err(_)) => Err(ScreenError::Failed("it ended without a result".to_owned())),
        Err(_) => Err(ScreenError::Silent(patience)),
    };
    Ok(result?)
}

#[derive(Default)]
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Keeps a picture; its ref.
async fn keep(call: &Call<'_>, png: &[u8]) -> Result<String, ToolError> {
    let kept = call.host.blobs.put(png).await;
    let hash = kept.map_err(|fault| ToolError::new(ErrorCode::Io, fault.to_string()))?;
    call.host.ledger.taint(&hash, Taint::Outside);
    Ok(format!("blob:{hash}"))
}

/// A picture for a model, unless it is too large for one.
fn attachment(png: &[u8]) -> Option<Attachment> {
    (png.len() <= MAX_IMAGE).then(|| Attachment {
        media_type: "image/png".to_owned(),
        name: None,
        source: AttachmentSource::Inline { base64: base64::engine::general_purpose::STANDARD.encode(png) },
    })
}
