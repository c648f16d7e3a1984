//! Settings through the front door: files in, settings out.

mod bad_input;
mod defaults;
mod explain;
mod forms;
mod models;
mod tiers;
mod trust;
mod variables;
mod vectors;
mod world;
