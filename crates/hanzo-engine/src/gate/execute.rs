//! Step 8, the run itself: under a time limit, its output passed on as it comes.

use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hanzo_protocol::envelope::{ErrorCode, ToolError};
use hanzo_protocol::ids::ThreadId;
use hanzo_protocol::tool::{OutputSink, TimeLimit, ToolContext, ToolResult};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::refused::error_result;
use super::types::{CallWatch, Classified, GateStep, Target};

/// The most output that waits to be shown. The result has everything, so what does not fit is left out.
const MOST_WAITING: usize = 256 * 1024;

/// Takes output from wherever the tool produces it to where the call is watched.
#[derive(Default)]
struct Outlet {
    waiting: Mutex<String>,
    more: Notify,
}

impl OutputSink for Outlet {
    fn push(&self, text: &str) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let room = MOST_WAITING.saturating_sub(waiting.len());
        waiting.push_str(&text[..text.floor_char_boundary(room)]);
        drop(waiting);
        self.more.notify_one();
    }
}

impl Outlet {
    fn pass_on(&self, watch: &dyn CallWatch) {
        let text = std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        if !text.is_empty() {
            watch.output(&text);
        }
    }
}

/// Runs a call to its end or to its time limit. Dropping the future drops the tool's, which cancels it.
pub(super) async fn execute(
    thread: ThreadId,
    step: &GateStep,
    call: &Classified,
    target: &Target,
    limit: Duration,
    watch: &dyn CallWatch,
) -> (ToolResult, Duration) {
    let outlet = Arc::new(Outlet::default());
    let sink: Arc<dyn OutputSink> = Arc::clone(&outlet) as Arc<dyn OutputSink>;
    let context = ToolContext { thread, trace: call.trace, caller: step.caller, output: Some(sink) };
    let begun = Instant::now();
    let mut run = pin!(target.tool.execute(&context, target.arguments.clone()));
    let mut too_long = pin!(async {
        match target.reach.time_limit {
            TimeLimit::Standard => tokio::time::sleep(limit).await,
            TimeLimit::Own => std::future::pending().await,
        }
    });
    let result = loop {
        tokio::select! {
            biased;
            result = &mut run => break result,
            () = outlet.more.notified() => outlet.pass_on(watch),
            () = &mut too_long => {
                let error = ToolError::new(
                    ErrorCode::Timeout,
                    format!(
                        "it took longer than the {} s a tool has and was stopped; it may have done a part. Ask for less at once, or run it as a command, which can go on in the background.",
                        limit.as_secs_f64()
                    ),
                );
                break error_result(&target.reach.action, call.trace, &error);
            }
        }
    };
    outlet.pass_on(watch);
    (result, begun.elapsed())
}
