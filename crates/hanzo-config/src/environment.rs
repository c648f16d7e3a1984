//! Every environment variable this crate reads, in one table.

use std::path::PathBuf;

use crate::expand::Environment;

/// A variable and what it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EnvVar {
    /// Its name.
    pub name: &'static str,
    /// The setting it sets, above every file and below flags. `None`: it does something else.
    pub key: Option<&'static str>,
    /// What it does, for the reference page.
    pub doc: &'static str,
}

/// Every environment variable this crate reads. Variables named by `${NAME}` or `api_key_env` come on top.
pub const ENVIRONMENT: &[EnvVar] = &[
    EnvVar { name: "HANZO_API_KEY", key: Some("api_key"), doc: "The key for the Hanzo API" },
    EnvVar { name: "HANZO_MODEL", key: Some("model"), doc: "The model to use" },
    EnvVar { name: "HANZO_LANG", key: Some("language"), doc: "Language of the interface" },
    EnvVar {
        name: "HANZO_APPROVAL",
        key: Some("approval"),
        doc: "Approval posture: `ask`, `auto` or `yolo`",
    },
    EnvVar {
        name: "HANZO_MCP_TOKEN",
        key: None,
        doc: "What clients of `mcp --http` have to show as a bearer token",
    },
    EnvVar {
        name: "HANZO_MCP_DEPTH",
        key: None,
        doc: "How many agents stand above this process; when there are three, `mcp` serves no agents and no MCP servers are started",
    },
    EnvVar { name: "HANZO_SANDBOX", key: Some("sandbox.mode"), doc: "Sandbox mode" },
    EnvVar {
        name: "HANZO_CONFIG_DIR",
        key: None,
        doc: "Directory of the user's settings, instead of the usual one",
    },
    EnvVar {
        name: "XDG_CONFIG_HOME",
        key: None,
        doc: "Parent of the user's settings directory, instead of `~/.config`",
    },
    EnvVar { name: "APPDATA", key: None, doc: "Parent of the user's settings directory on Windows" },
    EnvVar {
        name: "XDG_DATA_HOME",
        key: None,
        doc: "Parent of the directory of what the program itself keeps, instead of `~/.local/share`",
    },
    EnvVar { name: "LOCALAPPDATA", key: None, doc: "Like `XDG_DATA_HOME`, on Windows" },
    EnvVar { name: "HOME", key: None, doc: "The home directory" },
    EnvVar { name: "USERPROFILE", key: None, doc: "The home directory on Windows" },
    EnvVar { name: "LC_ALL", key: None, doc: "Language of the interface, when no setting names one" },
    EnvVar { name: "LC_MESSAGES", key: None, doc: "Like `LC_ALL`, when that is not set" },
    EnvVar { name: "LANG", key: None, doc: "Like `LC_ALL`, when neither that nor `LC_MESSAGES` is set" },
];

/// Whose conventions for directories to follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Platform {
    /// Linux, macOS and their kin.
    Unix,
    /// Windows.
    Windows,
}

impl Platform {
    /// The platform this program was built for.
    pub const fn current() -> Self {
        if cfg!(windows) { Self::Windows } else { Self::Unix }
    }
}

/// The home directory.
pub fn home_dir(environment: &Environment, platform: Platform) -> Option<PathBuf> {
    let name = match platform {
        Platform::Unix => "HOME",
        Platform::Windows => "USERPROFILE",
    };
    environment.get(name).map(PathBuf::from)
}

/// The directory of the user's settings: `HANZO_CONFIG_DIR`, else `%AppData%\hanzo` on Windows, else `hanzo` in
/// `XDG_CONFIG_HOME` or `~/.config`. `None` when nothing says where the user lives.
pub fn user_config_dir(environment: &Environment, platform: Platform) -> Option<PathBuf> {
    if let Some(directory) = environment.get("HANZO_CONFIG_DIR") {
        return Some(PathBuf::from(directory));
    }
    let parent = match platform {
        Platform::Windows => environment.get("APPDATA").map(PathBuf::from),
        // The XDG specification says to ignore a relative path.
        Platform::Unix => environment
            .get("XDG_CONFIG_HOME")
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
            .or_else(|| home_dir(environment, platform).map(|home| home.join(".config"))),
    };
    parent.map(|parent| parent.join("hanzo"))
}

/// The directory of what the program itself keeps (threads, checkpoints): `hanzo` in `XDG_DATA_HOME` or
/// `~/.local/share`, or in `%LocalAppData%` on Windows. `None` when nothing says where the user lives.
pub fn user_data_dir(environment: &Environment, platform: Platform) -> Option<PathBuf> {
    let parent = match platform {
        Platform::Windows => environment.get("LOCALAPPDATA").map(PathBuf::from),
        Platform::Unix => environment
            .get("XDG_DATA_HOME")
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
            .or_else(|| home_dir(environment, platform).map(|home| home.join(".local/share"))),
    };
    parent.map(|parent| parent.join("hanzo"))
}

/// The language of the locale, as a tag such as `en` or `zh-CN`, and the variable that says so.
pub(crate) fn locale_language(environment: &Environment) -> Option<(&'static str, String)> {
    let (name, value) = ["LC_ALL", "LC_MESSAGES", "LANG"]
        .into_iter()
        .find_map(|name| Some((name, environment.get(name)?)))?;
    let tag = value.split(['.', '@']).next().unwrap_or_default().replace('_', "-");
    (!matches!(tag.as_str(), "" | "C" | "POSIX")).then_some((name, tag))
}
