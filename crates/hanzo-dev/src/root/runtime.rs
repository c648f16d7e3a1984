//! The runtime, which only commands that need it start.

use tokio::runtime::{Builder, Runtime};

use crate::exit::Failure;

/// Runs `future` to its end.
///
/// Two workers: what a tool or the store does never waits for what a face writes to a slow reader, and more threads would
/// only cost memory.
pub fn block_on<T>(future: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    run(Builder::new_multi_thread().worker_threads(2).enable_all().build()?, future)
}

/// Runs `future` to its end, with everything that does not block on this thread.
///
/// For one client at the other end of a pipe: to hand its call from thread to thread takes longer than most calls.
pub fn block_on_here<T>(future: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    run(Builder::new_current_thread().enable_all().build()?, future)
}

fn run<T>(runtime: Runtime, future: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let done = runtime.block_on(future);
    // The process is about to end, which ends its threads: whatever had to be finished was waited for.
    std::mem::forget(runtime);
    done
}
