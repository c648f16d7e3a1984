//! The way out to a client on a pipe: a writer of its own, so that whoever answers does not wait for a slow client, and a short way
//! past it for an answer that is waited for.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker, ready};

use bytes::{Buf as _, Bytes, BytesMut};
use tokio::io::AsyncWrite;
use tokio::sync::mpsc;

use super::framing::Framing;
use super::pipe::{CHUNK, Desk, lock};

/// The way out to the client.
pub(super) struct Outlet<W> {
    output: W,
    /// What is to be written.
    buffer: BytesMut,
    /// Whether the writer is at it and would not hear of being overtaken.
    is_busy: bool,
}

impl<W: AsyncWrite + Unpin> Outlet<W> {
    pub(super) fn new(output: W) -> Self {
        Self { output, buffer: BytesMut::new(), is_busy: false }
    }

    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.buffer.is_empty() {
            let written = ready!(Pin::new(&mut self.output).poll_write(context, &self.buffer))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.buffer.advance(written);
        }
        ready!(Pin::new(&mut self.output).poll_flush(context))?;
        // A large answer is no reason to keep that much room.
        if self.buffer.capacity() > 4 * CHUNK {
            self.buffer = BytesMut::new();
        }
        Poll::Ready(Ok(()))
    }
}

/// Writes an answer for which the client waits, before anything else is done. Whether it was taken.
pub(super) fn write_now<W: AsyncWrite + Unpin>(
    outlet: &Mutex<Outlet<W>>,
    framing: Framing,
    text: &[u8],
    writer: &mpsc::Sender<Bytes>,
) -> bool {
    let mut outlet = lock(outlet);
    if outlet.is_busy || !outlet.buffer.is_empty() {
        return false;
    }
    framing.encode(text, &mut outlet.buffer);
    if outlet.poll_flush(&mut Context::from_waker(Waker::noop())).is_pending() {
        // The rest is the writer's; where it has no time to hear of it, it is writing already.
        let _ = writer.try_send(Bytes::new());
    }
    true
}

/// Writes what there is to write, together where there is more. Nothing at all is a request to write what is left.
pub(super) async fn write<W: AsyncWrite + Unpin>(
    outlet: Arc<Mutex<Outlet<W>>>,
    mut messages: mpsc::Receiver<Bytes>,
    desk: Arc<Desk>,
) {
    while let Some(message) = messages.recv().await {
        let framing = desk.framing();
        {
            let mut outlet = lock(&outlet);
            outlet.is_busy = true;
            let mut next = Some(message);
            while let Some(message) = next {
                if !message.is_empty() {
                    framing.encode(&message, &mut outlet.buffer);
                }
                next = if outlet.buffer.len() < CHUNK { messages.try_recv().ok() } else { None };
            }
        }
        let flushed = std::future::poll_fn(|context| lock(&outlet).poll_flush(context)).await;
        lock(&outlet).is_busy = false;
        // Nobody takes it any more; the reader will find that out.
        if flushed.is_err() {
            return;
        }
    }
}
