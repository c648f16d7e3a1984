//! The terminal face. So far it holds the composer's editing core, [`edit`]: text, keys in, effects out, no drawing and no
//! clock. The face that draws it comes on top.
#![forbid(unsafe_code)]

pub mod edit;
