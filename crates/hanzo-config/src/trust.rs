//! What a cloned repository may say before the user trusts it.
//!
//! Everything that runs a program, chooses an address, sets variables or loosens a limit waits for trust. Narrowing
//! always applies. The same list, hashed, is what the user's trust is bound to.

use std::path::{Component, Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::error::{Disabled, DisabledReason, Warning, WarningKind};
use crate::mask::masked;
use crate::node::{Data, Node, Sources, Spot, Table, at_index, join, split_path};
use crate::shape::shape_at;

/// Whether the user has trusted this workspace, in the state it is in.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trust {
    /// The user looked at it and said yes.
    Trusted,
    /// Not asked yet, or refused.
    Untrusted,
    /// The user trusted what had this digest. It counts only while the files that are read now still have it, so
    /// that nothing can change between the check and the use.
    Remembered(TrustDigest),
}

/// Hash of everything in a workspace's configuration that would run or loosen something.
///
/// Remember it with the user's answer; when it differs, ask again.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TrustDigest(String);

impl TrustDigest {
    /// A digest that was remembered. Anything that is not one simply never matches.
    pub fn remembered(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// `sha256:` and 64 hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for TrustDigest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// A value that waits for trust.
pub(crate) struct Gated {
    key: String,
    at: Spot,
    value: serde_json::Value,
    shown: String,
    reason: DisabledReason,
}

/// What the gate does with what it finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stance {
    Keep,
    Remove,
}

pub(crate) struct Gate<'a> {
    pub stance: Stance,
    /// The user tier: what narrowing is measured against.
    pub user: &'a Node,
    pub workspace: &'a Path,
    pub found: Vec<Gated>,
}

impl Gate<'_> {
    /// Takes what waits for trust out of a canonical layer of the workspace.
    pub fn layer(&mut self, layer: &mut Node) {
        let Data::Table(root) = &mut layer.data else { return };
        self.items(root, "hooks", "hooks", DisabledReason::RunsCode, |_| true);
        self.servers(root);
        self.providers(root);
        self.permissions(root);
        self.sandbox(root);
        self.narrowing(root, "approval", &["approval"], DisabledReason::AllowsWithoutAsking);
        self.field(root, "env", "env", DisabledReason::SetsEnvironment);
        self.field(root, "bridge", "bridge", DisabledReason::ChoosesEndpoint);
        self.field(root, "credentials_store", "credentials_store", DisabledReason::TouchesCredentials);
        if let Some(a2a) = child(root, "a2a") {
            self.field(a2a, "external_agents", "a2a.external_agents", DisabledReason::ChoosesEndpoint);
            self.field(a2a, "listen_path", "a2a.listen_path", DisabledReason::ChoosesEndpoint);
            self.narrowing(a2a, "enabled", &["a2a", "enabled"], DisabledReason::ChoosesEndpoint);
        }
        if let Some(tools) = child(root, "tools") {
            self.field(tools, "shell", "tools.shell", DisabledReason::RunsCode);
            self.field(tools, "net", "tools.net", DisabledReason::ChoosesEndpoint);
            self.enabled_tools(tools);
        }
        if let Some(agent) = child(root, "agent") {
            self.outside(agent, "system_prompt_file", "agent.system_prompt_file");
        }
        if let Some(skills) = child(root, "skills") {
            let workspace = self.workspace.to_owned();
            self.items(skills, "paths", "skills.paths", DisabledReason::LeavesWorkspace, |node| {
                node.as_text().is_some_and(|path| leaves(&workspace, path))
            });
        }
    }

    /// Takes every variable of a `.env` out.
    pub fn dot_env(&mut self, variables: &mut Table) {
        let names: Vec<_> = variables.keys().cloned().collect();
        for name in names {
            self.field(variables, &name, &join("env", &name), DisabledReason::SetsEnvironment);
        }
    }

    fn record(&mut self, key: String, node: &Node, reason: DisabledReason) {
        let shape = split_path(&key).and_then(|segments| shape_at(&segments));
        let shown = shape
            .map_or_else(|| crate::secret::MASK.to_owned(), |(shape, _)| masked(node, shape).to_string());
        self.found.push(Gated { key, at: node.at, value: node.to_json(), shown, reason });
    }

    fn field(&mut self, table: &mut Table, key: &str, path: &str, reason: DisabledReason) {
        let Some(member) = table.get(key) else { return };
        self.record(path.to_owned(), &member.node, reason);
        if self.stance == Stance::Remove {
            table.shift_remove(key);
        }
    }

    fn items(
        &mut self,
        table: &mut Table,
        key: &str,
        path: &str,
        reason: DisabledReason,
        is_gated: impl Fn(&Node) -> bool,
    ) {
        let Some(Data::List(items)) = table.get_mut(key).map(|member| &mut member.node.data) else { return };
        let mut index = 0;
        items.retain(|item| {
            let gated = is_gated(item);
            if gated {
                self.record(at_index(path, index), item, reason);
            }
            index += 1;
            !gated || self.stance == Stance::Keep
        });
    }

    /// A value that applies when it is as strict as the user's own, and waits for trust otherwise.
    fn narrowing(&mut self, table: &mut Table, key: &str, path: &[&str], reason: DisabledReason) {
        let Some(member) = table.get(key) else { return };
        let strictness_of_user = strictness(path, self.user.find(path));
        if strictness(path, Some(&member.node)) < strictness_of_user {
            self.field(table, key, &path.join("."), reason);
        }
    }

    fn servers(&mut self, root: &mut Table) {
        let Some(servers) = child(root, "mcp_servers") else { return };
        let mut emptied = Vec::new();
        for (name, member) in servers.iter_mut() {
            let only_disables = member.node.as_table().is_some_and(|entry| {
                entry.len() == 1 && member.node.get("disabled").and_then(Node::as_bool) == Some(true)
            });
            if only_disables {
                continue;
            }
            let path = join("mcp_servers", name);
            let reason = if member.node.get("url").is_some() {
                DisabledReason::ChoosesEndpoint
            } else {
                DisabledReason::RunsCode
            };
            self.record(path, &member.node, reason);
            if self.stance == Stance::Remove {
                let disables = member.node.get("disabled").and_then(Node::as_bool) == Some(true);
                if let Some(entry) = member.node.as_table_mut() {
                    entry.retain(|key, _| key == "disabled" && disables);
                }
                if !disables {
                    emptied.push(name.clone());
                }
            }
        }
        for name in emptied {
            servers.shift_remove(&name);
        }
    }

    fn providers(&mut self, root: &mut Table) {
        let Some(providers) = child(root, "providers") else { return };
        let mut unknown = Vec::new();
        for (name, member) in providers.iter_mut() {
            let path = join("providers", name);
            if self.user.find(&["providers", name]).is_none() {
                self.record(path, &member.node, DisabledReason::ChoosesEndpoint);
                unknown.push(name.clone());
                continue;
            }
            let Some(entry) = member.node.as_table_mut() else { continue };
            for key in ["base_url", "kind", "headers", "extra"] {
                self.field(entry, key, &join(&path, key), DisabledReason::ChoosesEndpoint);
            }
            self.field(entry, "api_key_env", &join(&path, "api_key_env"), DisabledReason::TouchesCredentials);
        }
        if self.stance == Stance::Remove {
            for name in unknown {
                providers.shift_remove(&name);
            }
        }
    }

    fn permissions(&mut self, root: &mut Table) {
        let Some(permissions) = child(root, "permissions") else { return };
        let reason = DisabledReason::AllowsWithoutAsking;
        self.items(permissions, "allow", "permissions.allow", reason, |_| true);
        self.items(permissions, "rules", "permissions.rules", reason, |rule| {
            rule.get("mode").and_then(Node::as_text) == Some("allow")
        });
        self.narrowing(permissions, "mode", &["permissions", "mode"], reason);
    }

    fn sandbox(&mut self, root: &mut Table) {
        let Some(sandbox) = child(root, "sandbox") else { return };
        let reason = DisabledReason::WeakensSandbox;
        for key in ["mode", "network", "reads", "require", "bash"] {
            self.narrowing(sandbox, key, &["sandbox", key], reason);
        }
        for key in ["workspace_root", "limits"] {
            self.field(sandbox, key, &join("sandbox", key), reason);
        }
        for key in ["allowed_paths", "allow_write"] {
            // An empty list takes paths away, which is always welcome.
            let adds = sandbox
                .get(key)
                .and_then(|member| member.node.as_list())
                .is_some_and(|list| !list.is_empty());
            if adds {
                self.field(sandbox, key, &join("sandbox", key), reason);
            }
        }
    }

    /// A repository may offer fewer tools than the user does, not more.
    fn enabled_tools(&mut self, tools: &mut Table) {
        let names = |node: Option<&Node>| -> Vec<String> {
            node.and_then(Node::as_list)
                .into_iter()
                .flatten()
                .filter_map(|n| n.as_text().map(str::to_owned))
                .collect()
        };
        let of_user = names(self.user.find(&["tools", "enabled"]));
        let wanted = names(tools.get("enabled").map(|member| &member.node));
        let fewer = !wanted.is_empty() && wanted.iter().all(|name| of_user.contains(name));
        if !of_user.is_empty() && !fewer {
            self.field(tools, "enabled", "tools.enabled", DisabledReason::AllowsWithoutAsking);
        }
    }

    fn outside(&mut self, table: &mut Table, key: &str, path: &str) {
        let file = table.get(key).and_then(|member| member.node.as_text());
        if file.is_some_and(|file| leaves(self.workspace, file)) {
            self.field(table, key, path, DisabledReason::LeavesWorkspace);
        }
    }

    /// What was left out, for the user.
    pub fn disabled(&self, sources: &Sources) -> Vec<Disabled> {
        if self.stance == Stance::Keep {
            return Vec::new();
        }
        self.found
            .iter()
            .map(|gated| Disabled {
                key: gated.key.clone(),
                origin: sources.origin(gated.at),
                value: gated.shown.clone(),
                reason: gated.reason,
            })
            .collect()
    }

    /// The digest of everything that waits, or waited, for trust. `None` when there is nothing to ask about.
    pub fn digest(&self) -> Option<TrustDigest> {
        if self.found.is_empty() {
            return None;
        }
        // Positions in lists and the order of files do not change what would run.
        let mut entries: Vec<String> = self
            .found
            .iter()
            .map(|gated| {
                let key = gated.key.split('[').next().unwrap_or_default();
                serde_json::json!([key, sorted(&gated.value)]).to_string()
            })
            .collect();
        entries.sort();
        let mut hasher = Sha256::new();
        for entry in entries {
            // JSON text holds no raw line feed, so this separator cannot be forged.
            hasher.update(entry.as_bytes());
            hasher.update(b"\n");
        }
        let hex = hasher.finalize().iter().fold(String::from("sha256:"), |mut hex, byte| {
            use std::fmt::Write as _;
            let _ = write!(hex, "{byte:02x}");
            hex
        });
        Some(TrustDigest(hex))
    }
}

/// Secrets never come from a workspace, trusted or not.
pub(crate) fn strip_secrets(layer: &mut Node, sources: &Sources, warnings: &mut Vec<Warning>) {
    let Data::Table(root) = &mut layer.data else { return };
    let mut warn = |key: String, at: Spot| {
        warnings.push(Warning { key, origin: sources.origin(at), kind: WarningKind::UserTierOnly });
    };
    for key in ["api_key", "oauth_credentials"] {
        if let Some(member) = root.shift_remove(key) {
            warn(key.to_owned(), member.key_at);
        }
    }
    let Some(providers) = child(root, "providers") else { return };
    for (name, member) in providers {
        if let Some(removed) = member.node.as_table_mut().and_then(|entry| entry.shift_remove("api_key")) {
            warn(join(&join("providers", name), "api_key"), removed.key_at);
        }
    }
}

/// The places of the secrets in a layer.
pub(crate) fn secrets(layer: &Node) -> Vec<(String, Spot)> {
    let top = ["api_key", "oauth_credentials"]
        .into_iter()
        .filter_map(|key| Some((key.to_owned(), layer.get(key)?.at)));
    let of_providers =
        layer.get("providers").and_then(Node::as_table).into_iter().flatten().filter_map(|(name, member)| {
            Some((join(&join("providers", name), "api_key"), member.node.get("api_key")?.at))
        });
    top.chain(of_providers).collect()
}

fn child<'t>(table: &'t mut Table, key: &str) -> Option<&'t mut Table> {
    table.get_mut(key)?.node.as_table_mut()
}

/// How strict a value is; an unset one is as strict as the default.
fn strictness(path: &[&str], value: Option<&Node>) -> u8 {
    let text = value.and_then(Node::as_text);
    let on = value.and_then(Node::as_bool);
    match path {
        ["approval"] => match text {
            Some("yolo") => 0,
            Some("auto") => 1,
            _ => 2,
        },
        ["permissions", "mode"] => match text {
            Some("allow") => 0,
            Some("deny") => 2,
            _ => 1,
        },
        ["sandbox", "mode"] => match text {
            Some("off") => 0,
            Some("allowlist") => 1,
            _ => 2,
        },
        ["sandbox", "reads"] => u8::from(text == Some("workspace")),
        ["sandbox", "require"] => match text {
            Some("full") => 2,
            Some("landlock+seccomp") => 1,
            _ => 0,
        },
        ["sandbox", "bash"] => u8::from(text != Some("off")),
        // `sandbox.network` and `a2a.enabled`: off is the default and the strict side.
        _ => u8::from(on != Some(true)),
    }
}

/// Whether a path, followed through links as far as it exists, ends outside the workspace.
fn leaves(workspace: &Path, path: &str) -> bool {
    let full = lexical(&workspace.join(path));
    if !full.starts_with(lexical(workspace)) {
        return true;
    }
    match (full.canonicalize(), workspace.canonicalize()) {
        (Ok(real), Ok(root)) => !real.starts_with(root),
        // Not there yet: a later look would have to follow links again, which is the reader's business.
        _ => false,
    }
}

fn lexical(path: &Path) -> PathBuf {
    let mut result = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                result.pop();
            }
            Component::CurDir => {}
            other => result.push(other),
        }
    }
    result
}

/// The value with the keys of every table in order.
fn sorted(value: &serde_json::Value) -> serde_json::Value {
    match value {
        serde_json::Value::Object(object) => {
            let mut entries: Vec<_> = object.iter().collect();
            entries.sort_by_key(|(key, _)| key.as_str());
            entries.into_iter().map(|(key, value)| (key.clone(), sorted(value))).collect()
        }
        serde_json::Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}
