//! Lays one canonical tree over another.
//!
//! Tables merge key by key, other values replace. Permission lists and hooks grow. Servers and providers merge by
//! name, with care that nothing of the lower tier ends up in a program or at an address of the higher one.

use crate::node::{Data, Node, Sources, Table, Tier};
use crate::shape::TRANSPORT_KEYS;

/// Lays `over` on `base`.
pub(crate) fn settings(base: &mut Node, over: Node, sources: &Sources) {
    let Data::Table(over) = over.data else { return };
    let Data::Table(base) = &mut base.data else { return };
    for (key, member) in over {
        let Some(below) = base.get_mut(&key) else {
            base.insert(key, member);
            continue;
        };
        below.key_at = member.key_at;
        match key.as_str() {
            "hooks" => grow(&mut below.node, member.node),
            "permissions" => permissions(&mut below.node, member.node),
            "mcp_servers" => named(&mut below.node, member.node, sources, server),
            "providers" => named(&mut below.node, member.node, sources, provider),
            _ => deep(&mut below.node, member.node),
        }
    }
}

fn deep(base: &mut Node, over: Node) {
    let (Data::Table(below), Data::Table(_)) = (&mut base.data, &over.data) else {
        *base = over;
        return;
    };
    let Data::Table(over_table) = over.data else { return };
    base.at = over.at;
    for pair in [["system_prompt", "system_prompt_file"], ["system_prompt_file", "system_prompt"]] {
        if over_table.contains_key(pair[0]) {
            below.shift_remove(pair[1]);
        }
    }
    for (key, member) in over_table {
        match below.get_mut(&key) {
            Some(old) => {
                old.key_at = member.key_at;
                deep(&mut old.node, member.node);
            }
            None => {
                below.insert(key, member);
            }
        }
    }
}

fn grow(base: &mut Node, over: Node) {
    match (&mut base.data, over.data) {
        (Data::List(below), Data::List(more)) => {
            base.at = over.at;
            below.extend(more);
        }
        (_, data) => *base = Node { at: over.at, data },
    }
}

fn permissions(base: &mut Node, over: Node) {
    let (Data::Table(below), Data::Table(over_table)) = (&mut base.data, over.data) else { return };
    for (key, member) in over_table {
        match below.get_mut(&key) {
            Some(old) if key != "mode" => grow(&mut old.node, member.node),
            _ => {
                below.insert(key, member);
            }
        }
    }
}

fn named(base: &mut Node, over: Node, sources: &Sources, merge: fn(&mut Table, &Table, Option<Tier>)) {
    let (Data::Table(below), Data::Table(over_table)) = (&mut base.data, over.data) else { return };
    for (name, member) in over_table {
        match below.get_mut(&name) {
            Some(old) => {
                if let (Some(old), Some(new)) = (old.node.as_table_mut(), member.node.as_table()) {
                    merge(old, new, sources.tier(member.node.at.source));
                }
                old.key_at = member.key_at;
                deep(&mut old.node, member.node);
            }
            None => {
                below.insert(name, member);
            }
        }
    }
}

/// Whether an entry of a server says what the server is.
pub(crate) fn defines_server(entry: &Table) -> bool {
    entry.contains_key("command") || entry.contains_key("url")
}

fn server(below: &mut Table, over: &Table, tier: Option<Tier>) {
    if defines_server(over) {
        // A new program does not inherit the arguments, and above all not the variables, of another.
        below.retain(|key, _| !TRANSPORT_KEYS.contains(&key.as_str()));
    }
    let changed = TRANSPORT_KEYS.iter().any(|key| over.contains_key(*key));
    if changed && tier.is_some_and(Tier::comes_with_the_workspace) {
        // The user trusted the server they wrote, not this one.
        below.shift_remove("trusted");
        below.shift_remove("allow_private");
    }
}

fn provider(below: &mut Table, over: &Table, tier: Option<Tier>) {
    if over.contains_key("model") || over.contains_key("models") {
        for key in ["model", "models", "default"] {
            below.shift_remove(key);
        }
    }
    let moved = over.contains_key("base_url") || over.contains_key("kind");
    if moved && tier.is_some_and(Tier::comes_with_the_workspace) {
        // A secret goes only to the address it was written for.
        below.shift_remove("api_key");
        below.shift_remove("headers");
    }
}

/// The part of `.mcp.json` that counts: a server there gives way to one that any settings layer defines.
pub(crate) fn under(mcp_json: &Node, settings_layers: &[Node]) -> Node {
    let mut node = mcp_json.clone();
    if let Some(servers) = node.as_table_mut().and_then(|root| root.get_mut("mcp_servers"))
        && let Some(servers) = servers.node.as_table_mut()
    {
        servers.retain(|name, _| {
            !settings_layers.iter().any(|layer| {
                layer.find(&["mcp_servers", name]).and_then(Node::as_table).is_some_and(defines_server)
            })
        });
    }
    node
}
