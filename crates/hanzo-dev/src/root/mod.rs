//! Puts the parts together.

mod jail;
mod outside;
mod rules;
