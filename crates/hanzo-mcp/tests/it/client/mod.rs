//! The client against real processes and real sockets.

mod asking;
mod hostile;
mod remote;
mod stage;
mod stdio;
