//! The runtime, which only commands that need it start.

use crate::exit::Failure;

/// Runs `future` to its end.
///
/// Two workers: what a tool or the store does never waits for what a face writes to a slow reader, and more threads would
/// only cost memory.
pub fn block_on<T>(future: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let done = runtime.block_on(future);
    // The process is about to end, which ends its threads: whatever had to be finished was waited for.
    std::mem::forget(runtime);
    done
}
