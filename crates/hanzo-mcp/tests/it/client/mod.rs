//! The client against real processes and real sockets.

mod asking;
mod hostile;
mod oracle;
mod remote;
mod stage;
mod stdio;
