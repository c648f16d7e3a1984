//! What the store promises, tried on real files: nothing acknowledged is lost, whatever happens to the process, the disk or the file.
#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]

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
