#![doc = include_str!("../README.md")]

pub mod jail;

pub use jail::{
    Jail, JailConfig, JailError, Level, Network, ProbeReport, default_unreadable, probe, run_personality,
};
