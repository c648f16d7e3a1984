//! The client against real processes and real sockets.

mod asking;
mod hip10;
mod hostile;
mod oracle;
mod remote;
mod stage;
mod stdio;
