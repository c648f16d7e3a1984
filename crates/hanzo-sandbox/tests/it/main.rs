//! Integration tests of the jail. Each escape is tried outside first, where it must work: an attempt that fails everywhere
//! proves nothing.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]
#![expect(clippy::print_stdout, reason = "an attempt says on standard output what it got")]

mod escape;
mod escape_kernel;
mod escape_net;
mod escape_protected;
mod kill;
mod ladder;
mod limits;
mod probes;
mod support;
mod work;
