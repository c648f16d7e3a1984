//! One form for the several spellings: aliases, three ways of writing MCP servers, two of providers, three of
//! permissions. Works on checked trees only.

use crate::error::ConfigError;
use crate::node::{Data, Member, Node, Sources, Table, join};
use crate::shape::{Field, MODES, SETTINGS, Shape};

/// Rewrites a checked settings tree.
pub(crate) fn settings(sources: &Sources, node: &mut Node) -> Result<(), ConfigError> {
    let Data::Table(table) = &mut node.data else { return Ok(()) };
    if let Some(plugins) = table.shift_remove("plugins") {
        let mut servers = Table::new();
        let key_at = plugins.key_at;
        let at = plugins.node.at;
        if let Some(first) = table.shift_remove("mcp_servers") {
            add_named(sources, &mut servers, first.node, "mcp_servers")?;
        }
        add_named(sources, &mut servers, plugins.node, "mcp_servers")?;
        table.insert(
            "mcp_servers".to_owned(),
            Member { key_at, node: Node { at, data: Data::Table(servers) } },
        );
    }
    for key in ["mcp_servers", "providers"] {
        if let Some(member) = table.get_mut(key) {
            by_name(sources, &mut member.node, key)?;
        }
    }
    if let Some(member) = table.get_mut("mcp_servers") {
        servers(sources, &mut member.node)?;
    }
    if let Some(member) = table.get_mut("providers") {
        providers(sources, &member.node)?;
    }
    if let Some(member) = table.get_mut("permissions") {
        permissions(&mut member.node);
    }
    aliases(table, SETTINGS);
    Ok(())
}

fn aliases(table: &mut Table, fields: &[Field]) {
    for field in fields {
        if let Some(alias) = field.alias
            && let Some(member) = table.shift_remove(alias)
        {
            table.insert(field.name.to_owned(), member);
        }
        if let Shape::Table(inner) = &field.shape
            && let Some(Member { node: Node { data: Data::Table(nested), .. }, .. }) =
                table.get_mut(field.name)
        {
            aliases(nested, inner);
        }
    }
}

/// A list of entries with a `name` becomes a table by name.
pub(crate) fn by_name(sources: &Sources, node: &mut Node, path: &str) -> Result<(), ConfigError> {
    let taken = std::mem::replace(node, Node::table(node.at));
    let mut table = Table::new();
    add_named(sources, &mut table, taken, path)?;
    node.data = Data::Table(table);
    Ok(())
}

fn add_named(sources: &Sources, into: &mut Table, from: Node, path: &str) -> Result<(), ConfigError> {
    let entries: Vec<(String, Member)> = match from.data {
        Data::Table(table) => table.into_iter().collect(),
        Data::List(items) => items
            .into_iter()
            .filter_map(|node| {
                let name = node.get("name").and_then(Node::as_text)?.to_owned();
                Some((name, Member { key_at: node.at, node }))
            })
            .collect(),
        _ => Vec::new(),
    };
    for (name, mut member) in entries {
        if let Some(table) = member.node.as_table_mut() {
            table.shift_remove("name");
        }
        if let Some(first) = into.get(&name) {
            return Err(ConfigError::Duplicate {
                at: sources.origin(member.key_at),
                key: join(path, &name),
                first: sources.origin(first.key_at),
            });
        }
        into.insert(name, member);
    }
    Ok(())
}

/// Rewrites every entry of a table of servers.
pub(crate) fn servers(sources: &Sources, node: &mut Node) -> Result<(), ConfigError> {
    let Data::Table(table) = &mut node.data else { return Ok(()) };
    for (name, member) in table.iter_mut() {
        server(sources, &mut member.node, &join("mcp_servers", name))?;
    }
    Ok(())
}

fn server(sources: &Sources, node: &mut Node, path: &str) -> Result<(), ConfigError> {
    let at = node.at;
    let Data::Table(table) = &mut node.data else { return Ok(()) };
    match table.shift_remove("transport") {
        Some(Member { node: Node { data: Data::Table(inner), .. }, .. }) => {
            for (key, member) in inner {
                // `env` of an entry lists names to let through, `env` of its transport holds values.
                if key == "env" && table.contains_key("env") {
                    spread_env(table);
                }
                if let Some(first) = table.get(&key) {
                    return Err(ConfigError::Duplicate {
                        at: sources.origin(member.key_at),
                        key: join(path, &key),
                        first: sources.origin(first.key_at),
                    });
                }
                table.insert(key, member);
            }
        }
        Some(kind) => {
            table.entry("type".to_owned()).or_insert(kind);
        }
        None => {}
    }
    spread_env(table);
    spread_command(table);
    if let (Some(_), Some(url)) = (table.get("command"), table.get("url")) {
        return Err(ConfigError::Invalid {
            at: sources.origin(url.key_at),
            key: join(path, "url"),
            problem: "cannot stand beside `command`: a server is a program or an address".to_owned(),
            hint: None,
        });
    }
    let stated = table.get("type").and_then(|member| member.node.as_text()).map(|kind| match kind {
        "streamable-http" | "streamable_http" => "http",
        "ws" => "websocket",
        other => other,
    });
    let url = table.get("url").and_then(|member| member.node.as_text()).unwrap_or_default();
    let implied = if table.contains_key("command") {
        Some("stdio")
    } else if url.starts_with("ws://") || url.starts_with("wss://") {
        Some("websocket")
    } else if table.contains_key("url") {
        Some("http")
    } else {
        None
    };
    if let Some(kind) = stated.or(implied) {
        let data = Data::Text(kind.to_owned());
        let (key_at, at) = table.get("type").map_or((at, at), |member| (member.key_at, member.node.at));
        table.insert("type".to_owned(), Member { key_at, node: Node { at, data } });
    }
    Ok(())
}

/// A list under `env` is a list of names to let through.
fn spread_env(table: &mut Table) {
    if table.get("env").is_none_or(|member| member.node.as_list().is_none()) {
        return;
    }
    let Some(mut listed) = table.shift_remove("env") else { return };
    if let (Some(named), Data::List(items)) = (table.shift_remove("allow_env"), &mut listed.node.data)
        && let Data::List(more) = named.node.data
    {
        items.extend(more);
    }
    table.insert("allow_env".to_owned(), listed);
}

/// A list under `command` is the program and its first arguments.
fn spread_command(table: &mut Table) {
    let Some(Member { node: Node { data: Data::List(words), .. }, .. }) = table.get_mut("command") else {
        return;
    };
    let mut words = std::mem::take(words).into_iter();
    let Some(program) = words.next() else { return };
    let mut first: Vec<Node> = words.collect();
    let (key_at, at) = (table["command"].key_at, program.at);
    table.insert("command".to_owned(), Member { key_at, node: program });
    if first.is_empty() {
        return;
    }
    match table.get_mut("args") {
        Some(Member { node: Node { data: Data::List(args), .. }, .. }) => {
            first.append(args);
            *args = first;
        }
        _ => {
            table.insert("args".to_owned(), Member { key_at, node: Node { at, data: Data::List(first) } });
        }
    }
}

fn providers(sources: &Sources, node: &Node) -> Result<(), ConfigError> {
    for (name, member) in node.as_table().into_iter().flatten() {
        let path = join("providers", name);
        if name.trim().is_empty() || name.contains('/') {
            return Err(ConfigError::Invalid {
                at: sources.origin(member.key_at),
                key: join(&path, "name"),
                problem: "may not be empty or contain `/`".to_owned(),
                hint: Some("`provider/model` is how a model of a provider is named".to_owned()),
            });
        }
        if let (Some(_), Some(models)) = (member.node.get("model"), member.node.get("models")) {
            return Err(ConfigError::Invalid {
                at: sources.origin(models.at),
                key: join(&path, "models"),
                problem: "cannot stand beside `model`".to_owned(),
                hint: Some("put all of them in `models`".to_owned()),
            });
        }
    }
    Ok(())
}

/// The list form and the pattern form become `rules`, in the order they were written.
fn permissions(node: &mut Node) {
    let at = node.at;
    let written = std::mem::replace(&mut node.data, Data::Null);
    let mut table = Table::new();
    let mut rules = Vec::new();
    match written {
        Data::List(list) => rules = list,
        Data::Table(members) => {
            for (key, member) in members {
                let answer = member.node.as_text().filter(|text| MODES.contains(text));
                if key == "mode" || answer.is_none() {
                    table.insert(key, member);
                } else {
                    rules.push(pattern_rule(key, member));
                }
            }
        }
        _ => {}
    }
    if !rules.is_empty() {
        if let Some(Member { node: Node { data: Data::List(listed), .. }, .. }) = table.get_mut("rules") {
            listed.append(&mut rules);
        } else {
            let node = Node { at, data: Data::List(rules) };
            table.insert("rules".to_owned(), Member { key_at: at, node });
        }
    }
    node.data = Data::Table(table);
}

fn pattern_rule(pattern: String, answer: Member) -> Node {
    let at = answer.key_at;
    let mut rule = Table::new();
    rule.insert(
        "tool_pattern".to_owned(),
        Member { key_at: at, node: Node { at, data: Data::Text(pattern) } },
    );
    rule.insert("mode".to_owned(), Member { key_at: at, node: answer.node });
    Node { at, data: Data::Table(rule) }
}
