//! The ends of a process's streams, waited for without a thread each: the gap between a model's reply and the next request
//! is a few milliseconds, and starting and waking threads would be a good part of it.

use std::fs::File;
use std::io;
#[cfg(not(unix))]
use std::io::{Read as _, Write as _};

#[cfg(unix)]
use tokio::net::unix::pipe;

/// What a read found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Got {
    Bytes(usize),
    /// Nothing now.
    Nothing,
    /// Nothing ever.
    End,
}

/// An end to read, of a pipe or a terminal.
#[cfg(unix)]
pub(crate) struct Reader(pipe::Receiver);

#[cfg(unix)]
impl Reader {
    pub(crate) fn new(file: File) -> io::Result<Self> {
        // Our end only: the process has another open file description. Unchecked, because a terminal is no pipe but is read
        // like one.
        rustix::io::ioctl_fionbio(&file, true)?;
        pipe::Receiver::from_file_unchecked(file).map(Self)
    }

    /// Done when a read has something to say.
    pub(crate) async fn readable(&self) {
        if self.0.readable().await.is_err() {
            // The runtime is going away, and we with it.
            std::future::pending::<()>().await;
        }
    }

    /// Reads what [`readable`](Self::readable) announced.
    pub(crate) fn try_read(&self, buffer: &mut [u8]) -> Got {
        Self::got(self.0.try_read(buffer))
    }

    /// Reads without having been told: the runtime may not have heard yet of what is there.
    pub(crate) fn read_now(&self, buffer: &mut [u8]) -> Got {
        Self::got(rustix::io::read(&self.0, buffer).map_err(io::Error::from))
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
}

/// An end to write.
#[cfg(unix)]
pub(crate) struct Writer(pipe::Sender);

#[cfg(unix)]
impl Writer {
    pub(crate) fn new(file: File) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&file, true)?;
        pipe::Sender::from_file_unchecked(file).map(Self)
    }

    /// Writes some of `bytes`, at least one.
    pub(crate) async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            self.0.writable().await?;
            match self.0.try_write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                wrote => return wrote,
            }
        }
    }
}

/// One end of a pipe, read by a thread of its own: nothing better works for a plain file handle everywhere.
#[cfg(not(unix))]
pub(crate) struct Reader(std::sync::Arc<Shared>);

/// An end to write.
#[cfg(not(unix))]
pub(crate) struct Writer(std::sync::Arc<File>);

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
impl Reader {
    #[expect(clippy::unnecessary_wraps, reason = "elsewhere it can fail")]
    pub(crate) fn new(file: File) -> io::Result<Self> {
        let (state, more, room) = Default::default();
        let shared = std::sync::Arc::new(Shared { file, state, more, room });
        let reader = Self(std::sync::Arc::clone(&shared));
        std::thread::spawn(move || shared.read_all());
        Ok(reader)
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
}

#[cfg(not(unix))]
impl Writer {
    #[expect(clippy::unnecessary_wraps, reason = "elsewhere it can fail")]
    pub(crate) fn new(file: File) -> io::Result<Self> {
        Ok(Self(std::sync::Arc::new(file)))
    }

    /// Writes some of `bytes`, at least one.
    pub(crate) async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let (file, bytes) = (std::sync::Arc::clone(&self.0), bytes.to_vec());
        let write = tokio::task::spawn_blocking(move || (&*file).write(&bytes));
        write.await.unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()))
    }
}

#[cfg(not(unix))]
impl Drop for Reader {
    fn drop(&mut self) {
        self.0.state().ended = true;
        self.0.room.notify_one();
    }
}
