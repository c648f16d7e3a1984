//! The ends of a process's streams, waited for without a thread each: the gap between a model's reply and the next request
//! is a few milliseconds, and starting and waking threads would be a good part of it.

use std::fs::File;
use std::io::{self, Read as _, Write as _};

#[cfg(unix)]
use tokio::io::Interest;
#[cfg(unix)]
use tokio::io::unix::AsyncFd;

/// What a read found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Got {
    Bytes(usize),
    /// Nothing now.
    Nothing,
    /// Nothing ever.
    End,
}

/// One end of a pipe or a terminal.
#[cfg(unix)]
pub(crate) struct Stream(AsyncFd<File>);

#[cfg(unix)]
impl Stream {
    /// An end to read.
    pub(crate) fn reader(file: File) -> io::Result<Self> {
        Self::new(file, Interest::READABLE)
    }

    /// An end to write.
    pub(crate) fn writer(file: File) -> io::Result<Self> {
        Self::new(file, Interest::WRITABLE)
    }

    fn new(file: File, interest: Interest) -> io::Result<Self> {
        // Our end only: the process has another open file description.
        rustix::io::ioctl_fionbio(&file, true)?;
        AsyncFd::register_with_interest(file, interest).map(Self)
    }

    /// Done when a read has something to say.
    pub(crate) async fn readable(&self) {
        match self.0.readable().await {
            Ok(mut guard) => guard.retain_ready(),
            // The runtime is going away, and we with it.
            Err(_) => std::future::pending().await,
        }
    }

    /// Reads what [`readable`](Self::readable) announced.
    pub(crate) fn try_read(&self, buffer: &mut [u8]) -> Got {
        Self::got(self.0.try_io(Interest::READABLE, |mut file| file.read(buffer)))
    }

    /// Reads without having been told: the runtime may not have heard yet of what is there.
    pub(crate) fn read_now(&self, buffer: &mut [u8]) -> Got {
        Self::got(self.0.get_ref().read(buffer))
    }

    fn got(read: io::Result<usize>) -> Got {
        match read {
            Ok(0) => Got::End,
            Ok(count) => Got::Bytes(count),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Got::Nothing,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Got::Nothing,
            // A terminal whose last program is gone answers EIO.
            Err(_) => Got::End,
        }
    }

    /// Writes some of `bytes`, at least one.
    pub(crate) async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.0.async_io(Interest::WRITABLE, |mut file| file.write(bytes)).await
    }
}

/// One end of a pipe, read by a thread of its own: nothing better works for a plain file handle everywhere.
#[cfg(not(unix))]
pub(crate) struct Stream(std::sync::Arc<Shared>);

#[cfg(not(unix))]
struct Shared {
    file: File,
    state: std::sync::Mutex<State>,
    more: tokio::sync::Notify,
    room: std::sync::Condvar,
}

#[cfg(not(unix))]
#[derive(Default)]
struct State {
    bytes: Vec<u8>,
    ended: bool,
}

#[cfg(not(unix))]
impl Shared {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Reads to the end, at most a mebibyte ahead.
    fn read_all(&self) {
        let mut buffer = vec![0; 64 << 10];
        loop {
            let count = (&self.file).read(&mut buffer).unwrap_or(0);
            let mut state = self.state();
            while state.bytes.len() > 1 << 20 && !state.ended {
                state = self.room.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
            }
            state.bytes.extend_from_slice(&buffer[..count]);
            state.ended |= count == 0;
            self.more.notify_one();
            if state.ended {
                return;
            }
        }
    }
}

#[cfg(not(unix))]
impl Stream {
    /// An end to read.
    pub(crate) fn reader(file: File) -> io::Result<Self> {
        let stream = Self::writer(file)?;
        let shared = std::sync::Arc::clone(&stream.0);
        std::thread::spawn(move || shared.read_all());
        Ok(stream)
    }

    /// An end to write.
    #[expect(clippy::unnecessary_wraps, reason = "elsewhere it can fail")]
    pub(crate) fn writer(file: File) -> io::Result<Self> {
        let (state, more, room) = Default::default();
        Ok(Self(std::sync::Arc::new(Shared { file, state, more, room })))
    }

    /// Done when a read has something to say.
    pub(crate) async fn readable(&self) {
        loop {
            {
                let state = self.0.state();
                if state.ended || !state.bytes.is_empty() {
                    return;
                }
            }
            self.0.more.notified().await;
        }
    }

    pub(crate) fn try_read(&self, buffer: &mut [u8]) -> Got {
        let mut state = self.0.state();
        let count = state.bytes.len().min(buffer.len());
        if count == 0 {
            return if state.ended { Got::End } else { Got::Nothing };
        }
        buffer[..count].copy_from_slice(&state.bytes[..count]);
        state.bytes.drain(..count);
        self.0.room.notify_one();
        Got::Bytes(count)
    }

    /// The same: the thread that reads has told.
    pub(crate) fn read_now(&self, buffer: &mut [u8]) -> Got {
        self.try_read(buffer)
    }

    /// Writes some of `bytes`, at least one.
    pub(crate) async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let (shared, bytes) = (std::sync::Arc::clone(&self.0), bytes.to_vec());
        let write = tokio::task::spawn_blocking(move || (&shared.file).write(&bytes));
        write.await.unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()))
    }
}

#[cfg(not(unix))]
impl Drop for Stream {
    fn drop(&mut self) {
        self.0.state().ended = true;
        self.0.room.notify_one();
    }
}
