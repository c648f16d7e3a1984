//! The unified tools of hanzo-dev: one contract, typed actions, one envelope.
//!
//! * [`contract`]: what an action is, and the [`contract::UnifiedTool`] that makes a tool of some.
//! * [`host`]: what the tools of one thread share.
//! * [`code`]: symbols, definitions, trees.
//! * [`fs`]: files, and [`search`] in them.
//! * [`proc`]: programs; [`vcs`]: git; [`mod@test`]: test runners.
//! * [`net`]: other machines; `ui`: the screen, with the feature of that name.
//! * [`ws`]: what the workspace is; [`think`]: a scratchpad; [`mode`]: keeping to some actions.
//! * [`registry`]: which tools there are; [`toolset()`] makes the set of a thread.
//! * [`alias`]: other names for actions; `classic` is the profile that lists them.

pub mod alias;
pub mod code;
pub mod contract;
pub mod fs;
pub mod host;
pub mod ledger;
pub mod mode;
pub mod net;
mod patch;
pub mod proc;
mod project;
pub mod registry;
pub mod search;
pub mod test;
pub mod think;
#[cfg(feature = "ui")]
pub mod ui;
pub mod vcs;
pub mod ws;

pub use host::{Host, ToolOptions};
pub use registry::{Profile, Selection, toolset, unified};
