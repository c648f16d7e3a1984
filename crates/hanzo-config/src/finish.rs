//! From the merged tree to [`Settings`]: what can only be checked when all tiers have spoken.

use serde_json::Value;

use crate::check::check_url;
use crate::error::{ConfigError, Warning, WarningKind};
use crate::expand::{Place, Variables};
use crate::node::{Data, Node, Sources, Table, join};
use crate::settings::Settings;
use crate::shape::{HTTP, WEBSOCKET};

/// Completes, expands and types the merged settings.
pub(crate) fn settings(
    merged: &mut Node,
    variables: &Variables,
    sources: &Sources,
    warnings: &mut Vec<Warning>,
) -> Result<Settings, ConfigError> {
    let Data::Table(root) = &mut merged.data else { return Ok(Settings::default()) };
    let expander = Expander { variables, sources };
    if let Some(table) = child(root, "env") {
        expander.table(table, "env")?;
    }
    if let Some(servers) = child(root, "mcp_servers") {
        drop_undefined(servers, sources, warnings);
        for (name, member) in servers {
            expander.server(&mut member.node, &join("mcp_servers", name))?;
        }
    }
    if let Some(providers) = child(root, "providers") {
        for (name, member) in providers {
            expander.provider(&mut member.node, &join("providers", name))?;
        }
    }
    if let Some(path) = root.get("a2a").and_then(|member| member.node.get("listen_path"))
        && !path.as_text().is_some_and(|path| path.starts_with('/'))
    {
        return Err(invalid(sources, path, "a2a.listen_path", "must start with `/`"));
    }
    serde_json::from_value(typed(merged)).map_err(|e| ConfigError::Inconsistent { message: e.to_string() })
}

/// Entries that only say how to treat a server nobody defines.
pub(crate) fn drop_undefined(servers: &mut Table, sources: &Sources, warnings: &mut Vec<Warning>) {
    servers.retain(|name, member| {
        let defined = member.node.as_table().is_some_and(crate::merge::defines_server);
        if !defined {
            warnings.push(Warning {
                key: join("mcp_servers", name),
                origin: sources.origin(member.key_at),
                kind: WarningKind::NoSuchServer,
            });
        }
        defined
    });
}

/// The JSON the typed model is read from: names go back into entries, providers become a list.
fn typed(merged: &Node) -> Value {
    let mut json = merged.to_json();
    for key in ["providers", "mcp_servers"] {
        if let Some(Value::Object(entries)) = json.get_mut(key) {
            for (name, entry) in entries {
                if let Value::Object(entry) = entry {
                    entry.insert("name".to_owned(), Value::from(name.as_str()));
                }
            }
        }
    }
    if let Some(providers) = json.get_mut("providers")
        && let Value::Object(entries) = providers.take()
    {
        *providers = entries.into_iter().map(|(_, entry)| entry).collect();
    }
    json
}

struct Expander<'a> {
    variables: &'a Variables,
    sources: &'a Sources,
}

impl Expander<'_> {
    fn node(&self, node: &mut Node, key: &str) -> Result<(), ConfigError> {
        let at = node.at;
        match &mut node.data {
            Data::Text(raw) if raw.contains("${") => {
                let expanded =
                    self.variables.expand(raw, &Place { key, origin: &|| self.sources.origin(at) })?;
                node.data = Data::Expanded { raw: std::mem::take(raw), expanded };
            }
            Data::List(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    self.node(item, &crate::node::at_index(key, index))?;
                }
            }
            Data::Table(table) => self.table(table, key)?,
            _ => {}
        }
        Ok(())
    }

    fn table(&self, table: &mut Table, path: &str) -> Result<(), ConfigError> {
        table.iter_mut().try_for_each(|(key, member)| self.node(&mut member.node, &join(path, key)))
    }

    fn server(&self, node: &mut Node, path: &str) -> Result<(), ConfigError> {
        let kind = node.get("type").and_then(Node::as_text).unwrap_or("stdio").to_owned();
        let needed = if kind == "stdio" { "command" } else { "url" };
        if node.get(needed).is_none() {
            return Err(invalid(
                self.sources,
                node,
                &join(path, needed),
                &format!("is missing for type \"{kind}\""),
            ));
        }
        // A server that is switched off must not stop the start because its variables are not set.
        if node.get("disabled").and_then(Node::as_bool) == Some(true) {
            return Ok(());
        }
        let Some(table) = node.as_table_mut() else { return Ok(()) };
        for key in ["command", "args", "env", "url", "headers"] {
            if let Some(member) = table.get_mut(key) {
                self.node(&mut member.node, &join(path, key))?;
            }
        }
        let schemes = if kind == "websocket" { WEBSOCKET } else { HTTP };
        self.address(node.get("url"), schemes, &join(path, "url"))
    }

    fn provider(&self, node: &mut Node, path: &str) -> Result<(), ConfigError> {
        if let Some(default) = node.get("default")
            && let Some(models) = node.get("models").and_then(Node::as_list)
            && !models.iter().any(|model| model.as_text() == default.as_text())
        {
            return Err(invalid(self.sources, default, &join(path, "default"), "is not one of `models`"));
        }
        let Some(table) = node.as_table_mut() else { return Ok(()) };
        for key in ["base_url", "headers"] {
            if let Some(member) = table.get_mut(key) {
                self.node(&mut member.node, &join(path, key))?;
            }
        }
        self.address(node.get("base_url"), HTTP, &join(path, "base_url"))
    }

    fn address(&self, node: Option<&Node>, schemes: &[&str], key: &str) -> Result<(), ConfigError> {
        let Some(node) = node else { return Ok(()) };
        let (Data::Text(text) | Data::Expanded { expanded: text, .. }) = &node.data else { return Ok(()) };
        check_url(text, schemes).map_err(|problem| invalid(self.sources, node, key, &problem))
    }
}

fn invalid(sources: &Sources, node: &Node, key: &str, problem: &str) -> ConfigError {
    ConfigError::Invalid {
        at: sources.origin(node.at),
        key: key.to_owned(),
        problem: problem.to_owned(),
        hint: None,
    }
}

fn child<'t>(table: &'t mut Table, key: &str) -> Option<&'t mut Table> {
    table.get_mut(key)?.node.as_table_mut()
}
