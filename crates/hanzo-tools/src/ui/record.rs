//! `ui.record`, `ui.stop` and `ui.session`: the screen over time, as the pictures in which it changed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hanzo_protocol::envelope::{ErrorCode, ToolError};
use hanzo_protocol::item::Taint;
use hanzo_protocol::tool::{Effect, TimeLimit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use super::{Opener, Picture, Region, ScreenError, answered, attachment, keep, local};
use crate::contract::{Action, Answer, Call};

/// The longest recording, and the most pictures and bytes one has.
const LONGEST: u64 = 600;
const MAX_FRAMES: usize = 600;
const MAX_BYTES: usize = 64 << 20;

/// A recording under way. It stops when it is dropped.
#[derive(Debug)]
pub(super) struct Recording {
    stop: Arc<AtomicBool>,
    frames: oneshot::Receiver<Result<Vec<Frame>, ScreenError>>,
    /// How long it goes on by itself.
    duration: Duration,
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

#[derive(Debug)]
struct Frame {
    at: Duration,
    png: Vec<u8>,
}

/// The arguments of `ui.record`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RecordInput {
    /// {x,y,width,height}; all of it unless said.
    region: Option<Region>,
    /// Pictures a second, 2 unless said, 10 at most.
    fps: Option<u32>,
    /// Seconds until it ends by itself.
    duration: Option<u64>,
}

impl Recording {
    fn start(opener: Opener, input: &RecordInput) -> Result<Self, ToolError> {
        let duration = input.duration.unwrap_or(60);
        if duration == 0 || duration > LONGEST {
            return Err(ToolError::new(
                ErrorCode::InvalidArguments,
                format!("`duration` is from 1 to {LONGEST} seconds"),
            ));
        }
        let (region, pause) = (input.region, Duration::from_secs(1) / input.fps.unwrap_or(2).clamp(1, 10));
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let (done, frames) = oneshot::channel();
        let until = Duration::from_secs(duration);
        // A thread of its own: the connection to a screen is made to be used by one.
        std::thread::spawn(move || {
            // Nobody waits any more when the thread of the conversation has ended.
            let _ = done.send(take(&opener, region, pause, until, &stopped));
        });
        Ok(Self { stop, frames, duration: until })
    }
}

fn take(
    opener: &Opener,
    region: Option<Region>,
    pause: Duration,
    until: Duration,
    stop: &AtomicBool,
) -> Result<Vec<Frame>, ScreenError> {
    let screen = opener()?;
    let started = Instant::now();
    let mut last: Option<Picture> = None;
    let (mut frames, mut size) = (Vec::new(), 0);
    let stopped = || stop.load(Ordering::Relaxed);
    // Asked before each picture too: taking one may last longer than the pause.
    while !stopped() && started.elapsed() < until && frames.len() < MAX_FRAMES && size < MAX_BYTES {
        let at = started.elapsed();
        let picture = screen.capture(region)?;
        if last.as_ref() != Some(&picture) {
            let png = picture.png()?;
            size += png.len();
            frames.push(Frame { at, png });
            last = Some(picture);
        }
        let next = at + pause;
        while !stopped() && started.elapsed() < next {
            std::thread::sleep(Duration::from_millis(20).min(next.saturating_sub(started.elapsed())));
        }
    }
    Ok(frames)
}

/// The answer of `ui.stop` and `ui.session`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Recorded {
    /// The pictures in which the screen changed.
    frames: Vec<KeptFrame>,
}

/// A picture of a recording.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct KeptFrame {
    /// Milliseconds since the beginning.
    at_ms: u64,
    /// Where the PNG is kept.
    r#ref: String,
}

async fn recorded(call: &Call<'_>, mut recording: Recording) -> Result<Answer<Recorded>, ToolError> {
    let left = if recording.stop.load(Ordering::Relaxed) { Duration::ZERO } else { recording.duration };
    let frames = answered(&mut recording.frames, left + call.host.ui.patience).await?;
    let mut kept = Vec::new();
    for frame in &frames {
        let at_ms = u64::try_from(frame.at.as_millis()).unwrap_or(u64::MAX);
        kept.push(KeptFrame { at_ms, r#ref: keep(call, &frame.png).await? });
    }
    let mut answer = Answer::new(Recorded { frames: kept }).tainted(Some(Taint::Outside)).by("x11");
    answer.attachments.extend(frames.last().and_then(|frame| attachment(&frame.png)));
    Ok(answer)
}

/// Begins a recording.
pub(super) struct Record;

/// The answer of `ui.record`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Started {
    /// What to do next.
    recording: String,
}

impl Action for Record {
    const NAME: &'static str = "record";
    const SUMMARY: &'static str = "begin a recording";
    const EXAMPLE: &'static str = r#"{"fps":2}"#;
    const WORST: Effect = Effect::Screen;
    const QUIET: &'static [&'static str] = &["fps", "duration"];
    type Input = RecordInput;
    type Output = Started;

    fn effect(&self, _: &RecordInput) -> Effect {
        Effect::Screen
    }

    async fn run(&self, call: &Call<'_>, input: RecordInput) -> Result<Answer<Started>, ToolError> {
        local(call)?;
        // Whether there is a screen is said now, not at the end.
        super::with_screen(call, |_, _| Ok(())).await?;
        let mut current = call.host.ui.recording();
        if current.is_some() {
            return Err(ToolError::new(
                ErrorCode::AlreadyExists,
                "a recording is under way; end it with `stop`",
            ));
        }
        *current = Some(Recording::start(Arc::clone(&call.host.ui.opener), &input)?);
        Ok(Answer::new(Started { recording: "under way; `stop` ends it and returns it".to_owned() }))
    }
}

/// Ends a recording.
pub(super) struct Stop;

/// `ui.stop` takes nothing.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StopInput {}

impl Action for Stop {
    const NAME: &'static str = "stop";
    const SUMMARY: &'static str = "end it; its pictures";
    const EXAMPLE: &'static str = "{}";
    const WORST: Effect = Effect::Screen;
    type Input = StopInput;
    type Output = Recorded;

    fn effect(&self, _: &StopInput) -> Effect {
        Effect::Screen
    }

    async fn run(&self, call: &Call<'_>, _: StopInput) -> Result<Answer<Recorded>, ToolError> {
        local(call)?;
        let recording = call.host.ui.recording().take();
        let Some(recording) = recording else {
            return Err(ToolError::new(ErrorCode::NotFound, "no recording is under way"));
        };
        recording.stop.store(true, Ordering::Relaxed);
        recorded(call, recording).await
    }
}

/// Records for a while.
pub(super) struct Session;

impl Action for Session {
    const NAME: &'static str = "session";
    const SUMMARY: &'static str = "record for `duration` seconds";
    const EXAMPLE: &'static str = r#"{"duration":5}"#;
    const WORST: Effect = Effect::Screen;
    const QUIET: &'static [&'static str] = &["fps", "duration"];
    type Input = RecordInput;
    type Output = Recorded;

    fn effect(&self, _: &RecordInput) -> Effect {
        Effect::Screen
    }

    fn time_limit(&self, _: &RecordInput) -> TimeLimit {
        TimeLimit::Own
    }

    async fn run(&self, call: &Call<'_>, mut input: RecordInput) -> Result<Answer<Recorded>, ToolError> {
        local(call)?;
        input.duration = input.duration.or(Some(5));
        let recording = Recording::start(Arc::clone(&call.host.ui.opener), &input)?;
        recorded(call, recording).await
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Screen, Wanted, Window};
    use super::*;

    /// Takes longer for a picture than there is between two.
    struct Slow;

    impl Screen for Slow {
        fn capture(&self, _: Option<Region>) -> Result<Picture, ScreenError> {
            std::thread::sleep(Duration::from_millis(20));
            Ok(Picture { width: 1, height: 1, rgb: vec![0, 0, 0] })
        }

        fn click(&self, _: u32, _: u32, _: u8, _: u8) -> Result<(), ScreenError> {
            unreachable!("nobody clicks")
        }

        fn type_text(&self, _: &str, _: &dyn Fn() -> bool) -> Result<(), ScreenError> {
            unreachable!("nobody types")
        }

        fn focus(&self, _: &Wanted) -> Result<Window, ScreenError> {
            unreachable!("nobody looks for a window")
        }
    }

    #[test]
    fn a_recording_of_a_slow_screen_can_be_stopped() {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let opener: Opener = Arc::new(|| Ok(Box::new(Slow)));
        let recording = std::thread::spawn(move || {
            take(&opener, None, Duration::from_millis(1), Duration::from_secs(20), &stopped)
        });
        stop.store(true, Ordering::Relaxed);
        let started = Instant::now();
        assert!(
            recording.join().unwrap().unwrap().len() <= 1,
            "a screen that does not change is one picture"
        );
        assert!(started.elapsed() < Duration::from_secs(10));
    }
}
