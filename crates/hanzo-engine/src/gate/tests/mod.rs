//! The gate, tried with tools, people and sandboxes that do what a test says.

mod headless;
mod hooks;
mod narrowing;
mod pipeline;
mod rerun;
mod world;
