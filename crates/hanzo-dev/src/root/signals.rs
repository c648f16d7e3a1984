//! What stops a run from outside.

use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

use crate::exit::Exit;
use crate::headless::Stop;

/// Done when the process is asked to stop or `limit` is over. A second signal ends the process at once.
pub fn stop(limit: Option<Duration>) -> std::io::Result<Stop> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    Ok(Box::pin(async move {
        let over = tokio::time::sleep(limit.unwrap_or(Duration::MAX));
        let exit = tokio::select! {
            _ = interrupt.recv() => Exit::Interrupted,
            _ = terminate.recv() => Exit::Terminated,
            _ = hang_up.recv() => Exit::Terminated,
            () = over => Exit::Timeout,
        };
        tokio::spawn(async move {
            let again = tokio::select! {
                _ = interrupt.recv() => Exit::Interrupted,
                _ = terminate.recv() => Exit::Terminated,
            };
            #[expect(clippy::exit, reason = "who asks twice does not want to wait for an orderly end")]
            std::process::exit(again.code().into());
        });
        exit
    }))
}
