//! The published schemas describe what really goes over the wire.

mod schemas;
