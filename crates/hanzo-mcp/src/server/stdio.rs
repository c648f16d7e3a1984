//! Standard input and output as the two ends of a connection.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixStream as StdUnixStream;

use rmcp::ServerHandler;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

use super::direct::Direct;

/// Serves the client at standard input and output until it is gone.
pub async fn serve<H: ServerHandler + Direct + Clone>(handler: H) {
    super::pipe::serve(handler, input(), output()).await;
}

/// Standard input. A pipe or a socket, which is what clients give us, is waited for by the runtime itself; everything else costs a
/// thread that waits.
fn input() -> Box<dyn AsyncRead + Send + Unpin> {
    match end(&io::stdin()) {
        Ok(End::Pipe(fd)) => match pipe::Receiver::from_owned_fd(fd) {
            Ok(pipe) => Box::new(pipe),
            Err(_) => Box::new(tokio::io::stdin()),
        },
        Ok(End::Socket(socket)) => Box::new(socket),
        _ => Box::new(tokio::io::stdin()),
    }
}

fn output() -> Box<dyn AsyncWrite + Send + Unpin> {
    match end(&io::stdout()) {
        Ok(End::Pipe(fd)) => match pipe::Sender::from_owned_fd(fd) {
            Ok(pipe) => Box::new(pipe),
            Err(_) => Box::new(tokio::io::stdout()),
        },
        Ok(End::Socket(socket)) => Box::new(socket),
        _ => Box::new(tokio::io::stdout()),
    }
}

enum End {
    Pipe(OwnedFd),
    Socket(UnixStream),
    Other,
}

fn end(stream: &impl AsFd) -> io::Result<End> {
    let fd = stream.as_fd().try_clone_to_owned()?;
    let file = File::from(fd);
    let kind = file.metadata()?.file_type();
    let fd = OwnedFd::from(file);
    if kind.is_fifo() {
        return Ok(End::Pipe(fd));
    }
    if kind.is_socket() {
        let socket = StdUnixStream::from(fd);
        socket.set_nonblocking(true)?;
        return Ok(End::Socket(UnixStream::from_std(socket)?));
    }
    Ok(End::Other)
}
