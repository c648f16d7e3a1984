//! Tokens the user keeps for servers: `credentials.json` in their configuration directory, which nobody else can read and no tool
//! either. A token belongs to the address it was kept for: settings that give a server's name another address do not get it.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use hanzo_config::LoadInputs;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::edit;
use crate::exit::{Exit, Failure};

const FILE: &str = "credentials.json";

/// What is in the file. What this build does not know stays in it.
#[derive(Default, Serialize, Deserialize)]
struct Kept {
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    mcp_servers: BTreeMap<String, ServerToken>,
    #[serde(flatten)]
    other: Map<String, Value>,
}

#[derive(Serialize, Deserialize)]
struct ServerToken {
    url: String,
    token: String,
}

impl Kept {
    fn parse(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            Ok(Self::default())
        } else {
            serde_json::from_str(text).map_err(|error| error.to_string())
        }
    }
}

/// The tokens there are.
#[derive(Default)]
pub struct Credentials(Kept);

impl Credentials {
    /// Reads them; there are none where there is no file.
    pub fn load(inputs: &LoadInputs) -> Result<Self, Failure> {
        let Ok(file) = path(inputs) else { return Ok(Self::default()) };
        let failed = |reason: String| {
            Failure::message(Exit::Config, format!("cannot use {}: {reason}", file.display()))
        };
        match std::fs::read_to_string(&file) {
            Ok(text) => {
                check_private(&file).map_err(failed)?;
                Kept::parse(&text).map(Self).map_err(failed)
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(failed(error.to_string())),
        }
    }

    /// The token for the MCP server of that name, if it was kept for this address.
    pub fn mcp_token(&self, server: &str, url: &str) -> Option<&str> {
        let kept = self.0.mcp_servers.get(server).filter(|kept| kept.url == url)?;
        Some(&kept.token)
    }

    /// The same with another token, which is not kept.
    #[must_use]
    pub fn with_mcp_token(mut self, server: &str, url: &str, token: &str) -> Self {
        let token = ServerToken { url: url.to_owned(), token: token.to_owned() };
        self.0.mcp_servers.insert(server.to_owned(), token);
        self
    }
}

/// Keeps a token for the MCP server of that name, at this address.
pub fn keep_mcp_token(inputs: &LoadInputs, server: &str, url: &str, token: &str) -> Result<PathBuf, Failure> {
    let token = ServerToken { url: url.to_owned(), token: token.to_owned() };
    change(inputs, |kept| {
        kept.mcp_servers.insert(server.to_owned(), token);
        true
    })
}

/// Forgets what is kept for the MCP server of that name; whether there was something.
pub fn forget_mcp_token(inputs: &LoadInputs, server: &str) -> Result<bool, Failure> {
    let mut found = false;
    change(inputs, |kept| {
        found = kept.mcp_servers.remove(server).is_some();
        found
    })?;
    Ok(found)
}

fn change(inputs: &LoadInputs, change: impl FnOnce(&mut Kept) -> bool) -> Result<PathBuf, Failure> {
    let file = path(inputs)?;
    let changed = |text: &str| {
        let mut kept = Kept::parse(text)?;
        if !change(&mut kept) {
            return Ok(None);
        }
        let mut text = serde_json::to_string_pretty(&kept).map_err(|error| error.to_string())?;
        text.push('\n');
        Ok(Some(text))
    };
    check_private(&file)
        .and_then(|()| edit(&file, changed))
        .map_err(|reason| Failure::message(Exit::Config, reason))?;
    Ok(file)
}

fn path(inputs: &LoadInputs) -> Result<PathBuf, Failure> {
    let nowhere =
        || Failure::message(Exit::Config, "nothing says where credentials are kept\n\nhint: set `HOME`");
    Ok(inputs.config_dir.as_ref().ok_or_else(nowhere)?.join(FILE))
}

/// What others can read is no secret any more.
fn check_private(file: &Path) -> Result<(), String> {
    match std::fs::metadata(file) {
        Ok(data) if data.permissions().mode() & 0o077 != 0 => {
            let name = file.display();
            Err(format!("others can read {name}\n\nhint: `chmod 600 {name}`, and replace the tokens in it"))
        }
        _ => Ok(()),
    }
}
