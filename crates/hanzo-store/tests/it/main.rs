//! What the store promises, tried on real files: nothing acknowledged is lost, whatever happens to the process, the disk or the file.
#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]
#![cfg_attr(
    target_os = "linux",
    expect(clippy::print_stdout, reason = "a child process says on standard output how far it got")
)]

mod audit;
mod blobs;
mod checkpoints;
mod damage;
mod export;
mod full;
mod help;
mod items;
mod kill;
mod leases;
mod search;
mod threads;
