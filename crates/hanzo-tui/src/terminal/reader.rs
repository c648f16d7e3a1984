//! Reads the terminal: waits for bytes and for news of its size, in one place and without a thread.

use std::collections::VecDeque;
use std::io::{self, Stdin};
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

use crossterm::terminal::size;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::decode::Decoder;
use super::input::Input;

/// How long after an escape more must follow for it to be the start of a sequence. Terminals write a sequence at once; a slow
/// connection may tear it apart.
const ESCAPE: Duration = Duration::from_millis(25);

/// How much is read at once.
const CHUNK: usize = 16 * 1024;

/// Reads the process's terminal. While there is none of these, nobody takes what is typed.
#[derive(Debug)]
pub struct Reader<T: AsRawFd = Stdin> {
    terminal: AsyncFd<T>,
    resized: Signal,
    decoder: Decoder,
    ready: VecDeque<Input>,
    /// When what is held is no longer waited for.
    deadline: Option<Instant>,
}

impl Reader {
    /// Begins to read.
    pub fn new() -> io::Result<Self> {
        Self::on(io::stdin())
    }
}

impl<T: AsFd + AsRawFd> Reader<T> {
    /// Begins to read `terminal`, which must keep its number.
    fn on(terminal: T) -> io::Result<Self> {
        #[expect(
            deprecated,
            reason = "its successor is unsafe for files that change their number; standard input is always 0"
        )]
        let terminal = AsyncFd::with_interest(terminal, Interest::READABLE)?;
        Ok(Self {
            terminal,
            resized: signal(SignalKind::window_change())?,
            decoder: Decoder::default(),
            ready: VecDeque::new(),
            deadline: None,
        })
    }

    /// Blocks until the terminal has answered what it was asked, as `goes_on` knows, or for `limit`: whoever reads next should
    /// not find our answers. What was typed meanwhile is kept.
    pub fn settle(
        &mut self,
        limit: Duration,
        mut goes_on: impl FnMut(Option<(u16, u16)>) -> bool,
    ) -> io::Result<()> {
        let end = Instant::now() + limit;
        let mut on = goes_on(None);
        while on {
            let left = end.saturating_duration_since(Instant::now());
            let timeout = Timespec::try_from(left).unwrap_or_default();
            let mut fds = [PollFd::new(self.terminal.get_ref(), PollFlags::IN)];
            match poll(&mut fds, Some(&timeout)) {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            let mut bytes = [0; CHUNK];
            let count = rustix::io::read(self.terminal.get_ref(), &mut bytes)?;
            if count == 0 {
                return Ok(());
            }
            for input in self.decoder.feed(&bytes[..count]) {
                match input {
                    Input::Position(row, column) => on = goes_on(Some((row, column))),
                    other => self.ready.push_back(other),
                }
            }
        }
        Ok(())
    }

    /// What the terminal says next; `None` when it is gone. Nothing is lost when this is not waited for to the end.
    pub async fn next(&mut self) -> io::Result<Option<Input>> {
        loop {
            if let Some(input) = self.ready.pop_front() {
                return Ok(Some(input));
            }
            tokio::select! {
                _ = self.resized.recv() => {
                    let (width, height) = size()?;
                    return Ok(Some(Input::Resize(width, height)));
                }
                ready = self.terminal.readable() => {
                    let mut ready = ready?;
                    // The news may be of bytes that the read before took along. The terminal is shared with other programs
                    // and so not set to return at once: reading then would stop everything until a key is pressed.
                    let mut fds = [PollFd::new(ready.get_inner(), PollFlags::IN)];
                    match poll(&mut fds, Some(&Timespec::default())) {
                        Ok(0) => {
                            ready.clear_ready();
                            continue;
                        }
                        Ok(_) => {}
                        Err(Errno::INTR) => continue,
                        Err(error) => return Err(error.into()),
                    }
                    let mut bytes = [0; CHUNK];
                    match rustix::io::read(ready.get_inner(), &mut bytes) {
                        Ok(0) | Err(Errno::IO) => return Ok(None),
                        Ok(count) => {
                            // There may be more; after a full read only the next one knows.
                            if count < CHUNK {
                                ready.clear_ready();
                            }
                            self.ready.extend(self.decoder.feed(&bytes[..count]));
                            self.deadline = self.decoder.is_waiting().then(|| Instant::now() + ESCAPE);
                        }
                        Err(Errno::AGAIN) => ready.clear_ready(),
                        Err(Errno::INTR) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
                () = until(self.deadline) => {
                    self.deadline = None;
                    self.ready.extend(self.decoder.give_up());
                }
            }
        }
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream;
    use std::sync::mpsc::channel;

    use super::*;
    use crate::edit::Key;

    /// The runtime says that there is something to read, and somebody else has read it: an editor, or the read before. The
    /// file blocks, so that a read would hold up everything until a key is pressed.
    #[test]
    fn news_of_bytes_that_are_gone_holds_up_nothing() {
        let (done, is_done) = channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let read = runtime.block_on(async {
                let (ours, mut user) = UnixStream::pair().unwrap();
                let mut other = ours.try_clone().unwrap();
                let mut reader = Reader::on(ours).unwrap();
                user.write_all(b"x").unwrap();
                // The news has arrived and is kept.
                reader.terminal.readable().await.unwrap().retain_ready();
                other.read_exact(&mut [0]).unwrap();
                let nothing = tokio::time::timeout(Duration::from_millis(50), reader.next()).await;
                assert!(nothing.is_err(), "there is nothing to read: {nothing:?}");
                user.write_all(b"y").unwrap();
                reader.next().await.unwrap()
            });
            done.send(read).unwrap();
        });
        let read = is_done.recv_timeout(Duration::from_secs(20)).expect("the reader is not held up");
        assert_eq!(read, Some(Input::Key(Key::char('y'))));
    }
}
