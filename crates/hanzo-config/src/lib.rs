//! Settings: where they stand, how tiers merge, where each value came from, and what a repository may say before
//! the user trusts it.
//!
//! ```
//! use hanzo_config::{Environment, LoadInputs, load};
//!
//! let directory = std::env::temp_dir().join(format!("hanzo-config-doc-{}", std::process::id()));
//! std::fs::create_dir_all(directory.join(".hanzo"))?;
//! std::fs::write(directory.join(".hanzo/settings.toml"), "model = \"opus\"\n")?;
//!
//! let environment: Environment = [("HANZO_LANG", "en")].into_iter().collect();
//! let mut inputs = LoadInputs::new(&directory, environment);
//! inputs.config_dir = None;
//! let config = load(&inputs)?;
//!
//! assert_eq!(config.settings().model.as_deref(), Some("opus"));
//! assert_eq!(config.explain("model")?.origin.to_string(), ".hanzo/settings.toml:1:9");
//! # std::fs::remove_dir_all(&directory)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Precedence: flag > environment > local > project > user > default. Nothing here reads the process environment
//! or the working directory; [`LoadInputs`] carries both.

mod canonical;
mod check;
mod default_file;
mod dotenv;
mod environment;
mod error;
mod expand;
mod finish;
mod flags;
pub mod hip;
mod load;
mod loaded;
mod mask;
mod merge;
mod models;
mod node;
mod parse;
mod paths;
mod schema;
mod secret;
mod settings;
mod shape;
mod trust;

pub use default_file::{default_file, ignore_local_tier, write_default};
pub use environment::{ENVIRONMENT, EnvVar, Platform, home_dir, user_config_dir, user_data_dir};
pub use error::{ConfigError, Disabled, DisabledReason, Warning, WarningKind};
pub use expand::Environment;
pub use flags::FlagOverride;
pub use load::{LoadInputs, MAX_FILE_SIZE, find_workspace_root, load, settings_files};
pub use loaded::{Candidate, Explanation, LoadedConfig, TierFile};
pub use models::{ModelError, ModelRef, first_usable_model, resolve_model};
pub use node::{FilePlace, Origin, Tier};
pub use schema::settings_schema;
pub use secret::{MASK, Secret, SecretTemplate, Template};
pub use settings::{
    A2a, Agent, BashJail, Bridge, CredentialsStore, ExternalAgent, Hook, HookEvent, HookFailure, InputMode,
    Isolation, Limits, McpServer, NetTool, Notifications, PermissionMode, PermissionRule, Permissions,
    Provider, ProviderOptions, ReadScope, RuleEntry, Sandbox, SandboxLevel, ScreenKind, Settings, Shell,
    ShellKind, Skills, TerminalSettings, ThemeName, ToolProfile, Tools, Transport,
};
pub use trust::{Trust, TrustDigest};
