//! Settings through the front door: files in, settings out.
