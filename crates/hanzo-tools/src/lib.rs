//! The unified tools of hanzo-dev: one contract, typed actions, one envelope.

pub mod proc;
