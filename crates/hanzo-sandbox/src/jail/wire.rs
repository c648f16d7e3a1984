//! What host and supervisor say to each other over a SEQPACKET socket: length-prefixed fields, descriptors beside them.
//! Both ends are the same binary, so there are no versions; a message that does not parse is a bug and ends the jail.

use std::ffi::OsString;
use std::io::{self, IoSlice, IoSliceMut, Read, Seek};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags,
};

use super::config::Limits;

/// Messages above this go through a memfd: a SEQPACKET message must fit the socket's buffer, an argument list need not.
const INLINE: usize = 64 * 1024;
/// More descriptors than any message carries.
const MAX_FDS: usize = 8;

/// Builds a message.
#[derive(Default)]
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    pub(crate) fn number(&mut self, number: u64) -> &mut Self {
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    pub(crate) fn optional(&mut self, number: Option<u64>) -> &mut Self {
        self.number(u64::from(number.is_some())).number(number.unwrap_or(0))
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    pub(crate) fn path(&mut self, path: &Path) -> &mut Self {
        self.bytes(path.as_os_str().as_bytes())
    }

    pub(crate) fn list<T>(
        &mut self,
        items: impl ExactSizeIterator<Item = T>,
        mut each: impl FnMut(&mut Self, T),
    ) -> &mut Self {
        self.number(items.len() as u64);
        items.for_each(|item| each(self, item));
        self
    }

    pub(crate) fn limits(&mut self, limits: &Limits) -> &mut Self {
        let micros =
            |time: Option<Duration>| time.map(|time| u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
        self.optional(limits.memory)
            .optional(micros(limits.cpu_time))
            .optional(limits.processes)
            .optional(limits.file_size)
            .optional(limits.open_files)
            .optional(micros(limits.wall_clock))
    }

    pub(crate) fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0)
    }
}

/// Takes a message apart.
pub(crate) struct Reader<'a>(&'a [u8]);

fn torn() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "torn message between host and supervisor")
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    fn take(&mut self, count: usize) -> io::Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or_else(torn)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(crate) fn number(&mut self) -> io::Result<u64> {
        let bytes = self.take(8)?.try_into().map_err(|_| torn())?;
        Ok(u64::from_le_bytes(bytes))
    }

    pub(crate) fn signed(&mut self) -> io::Result<i32> {
        i32::try_from(self.number()?).map_err(|_| torn())
    }

    pub(crate) fn optional(&mut self) -> io::Result<Option<u64>> {
        let present = self.number()? == 1;
        let number = self.number()?;
        Ok(present.then_some(number))
    }

    pub(crate) fn bytes(&mut self) -> io::Result<&'a [u8]> {
        let length = usize::try_from(self.number()?).map_err(|_| torn())?;
        self.take(length)
    }

    pub(crate) fn text(&mut self) -> io::Result<OsString> {
        Ok(OsString::from_vec(self.bytes()?.to_vec()))
    }

    pub(crate) fn path(&mut self) -> io::Result<PathBuf> {
        self.text().map(PathBuf::from)
    }

    pub(crate) fn list<T>(&mut self, mut each: impl FnMut(&mut Self) -> io::Result<T>) -> io::Result<Vec<T>> {
        let count = self.number()?;
        (0..count).map(|_| each(self)).collect()
    }

    pub(crate) fn limits(&mut self) -> io::Result<Limits> {
        Ok(Limits {
            memory: self.optional()?,
            cpu_time: self.optional()?.map(Duration::from_micros),
            processes: self.optional()?,
            file_size: self.optional()?,
            open_files: self.optional()?,
            wall_clock: self.optional()?.map(Duration::from_micros),
        })
    }
}

/// Sends `message` with `fds`.
pub(crate) fn send(socket: BorrowedFd<'_>, message: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let overflow;
    let mut all: Vec<BorrowedFd<'_>> = fds.to_vec();
    let (kind, body): (u8, &[u8]) = if message.len() <= INLINE {
        (0, message)
    } else {
        let memfd = rustix::fs::memfd_create("hanzo-jail", rustix::fs::MemfdFlags::CLOEXEC)?;
        let mut file = std::fs::File::from(memfd);
        io::Write::write_all(&mut file, message)?;
        file.rewind()?;
        overflow = OwnedFd::from(file);
        all.push(overflow.as_fd());
        (1, &[])
    };
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !all.is_empty() && !control.push(SendAncillaryMessage::ScmRights(&all)) {
        return Err(torn());
    }
    let parts = [IoSlice::new(std::slice::from_ref(&kind)), IoSlice::new(body)];
    rustix::net::sendmsg(socket, &parts, &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives a message and its descriptors; `None` when the other end is gone.
pub(crate) fn receive(socket: BorrowedFd<'_>) -> io::Result<Option<(Vec<u8>, Vec<OwnedFd>)>> {
    let mut buffer = vec![0; INLINE + 1];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let length = loop {
        let mut parts = [IoSliceMut::new(&mut buffer)];
        match rustix::net::recvmsg(socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Ok(received) => break received.bytes,
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::CONNRESET) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
    };
    let mut fds = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            fds.extend(received);
        }
    }
    if length == 0 {
        return Ok(None);
    }
    if buffer[0] == 1 {
        let mut body = Vec::new();
        std::fs::File::from(fds.pop().ok_or_else(torn)?).read_to_end(&mut body)?;
        return Ok(Some((body, fds)));
    }
    buffer.truncate(length);
    buffer.remove(0);
    Ok(Some((buffer, fds)))
}

#[cfg(test)]
mod tests {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;

    fn pair() -> (OwnedFd, OwnedFd) {
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap()
    }

    #[test]
    fn small_and_large_messages_arrive_with_their_descriptors() {
        for size in [10, INLINE, INLINE + 1, 3_000_000] {
            let (a, b) = pair();
            let (gift, other) = pair();
            let body: Vec<u8> = (0..size).map(|at| u8::try_from(at % 251).unwrap()).collect();
            send(a.as_fd(), &body, &[gift.as_fd()]).unwrap();
            drop(gift);
            let (received, fds) = receive(b.as_fd()).unwrap().unwrap();
            assert!(received == body, "{size} bytes");
            assert_eq!(fds.len(), 1);
            send(fds[0].as_fd(), b"through the gift", &[]).unwrap();
            assert_eq!(receive(other.as_fd()).unwrap().unwrap().0, b"through the gift");
        }
    }

    #[test]
    fn a_closed_peer_is_the_end_and_a_torn_message_is_an_error() {
        let (a, b) = pair();
        drop(a);
        assert!(receive(b.as_fd()).unwrap().is_none());
        let whole = Writer::default().bytes(b"abc").number(7).finish();
        for cut in 0..whole.len() {
            let mut reader = Reader::new(&whole[..cut]);
            assert!(reader.bytes().and_then(|_| reader.number()).is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn limits_survive_the_trip() {
        let limits = Limits {
            memory: Some(1),
            cpu_time: Some(Duration::from_millis(1500)),
            processes: None,
            file_size: Some(u64::MAX),
            open_files: Some(64),
            wall_clock: None,
        };
        let bytes = Writer::default().limits(&limits).finish();
        assert_eq!(Reader::new(&bytes).limits().unwrap(), limits);
    }
}
