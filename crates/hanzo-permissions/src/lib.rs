//! Decides whether a tool call may run.
//!
//! A [`Policy`] holds rules in three lists and answers with a [`Decision`]; [`Policy::explain`] also says why. The
//! crate is pure: it reads no files, asks nobody and runs nothing. Whoever hosts tools builds a [`Call`], consults
//! the policy, and acts on the answer.
//!
//! Rules are consent, not containment. They settle which calls a person has agreed to; what a permitted program can
//! reach is the sandbox's business. Where a command cannot be read with certainty, the answer is to ask.
//!
//! ```
//! use hanzo_permissions::{Call, Decision, Policy, Rule};
//!
//! let policy = Policy {
//!     allow: vec![Rule::parse("Bash(git status:*)")?],
//!     deny: vec![Rule::parse("Bash(rm -rf*)")?],
//!     ..Policy::default()
//! };
//! let args = serde_json::json!({"command": "git status --short"});
//! assert_eq!(policy.decide(&Call::new("proc.exec", &args)), Decision::Allow);
//! let args = serde_json::json!({"command": "git status && sudo rm -r -f build"});
//! assert_eq!(policy.decide(&Call::new("proc.exec", &args)), Decision::Deny);
//! # Ok::<(), hanzo_permissions::RuleError>(())
//! ```
//!
//! What rules deliberately do not see: what a script file, a build file or a program's own options do (`git diff
//! --output=x` under `Bash(git diff:*)`), programs renamed in an earlier call, and anything a permitted interpreter
//! reads from elsewhere.

mod audit;
mod call;
mod explain;
mod glob;
pub mod hip;
mod net;
mod patch;
mod path;
mod policy;
mod posture;
mod rule;
mod scope;
mod shell;
mod source;
mod tools;
mod verdict;

pub use audit::{AuditContext, AuditRecord};
pub use call::{Call, Classification, Facts, Trust};
pub use explain::{CommandRef, Explanation, OpaqueRef, RuleRef};
pub use policy::{Basis, List, Policy};
pub use posture::{APPROVED_PLAN, BoxState, Caller, EdgeKind, Headless, capability, headless, plan_mode};
pub use rule::{Rule, RuleError};
pub use scope::{Lifetime, Offer, ScopeKind, offers};
pub use shell::Opaque;
pub use source::{FullRule, PolicySource, PolicyTable, RuleSpec};
pub use tools::{Access, Family, names_of};
pub use verdict::{Decision, strictest};
