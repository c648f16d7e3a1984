//! Paths in settings: `~` is the home directory, relative ones start at the tier's own place.

use std::path::Path;

use crate::node::{Data, Node};
use crate::shape::{SETTINGS, Shape};

/// Resolves every path in a canonical layer. An empty one is as good as none.
pub(crate) fn resolved(mut node: Node, base: Option<&Path>, home: Option<&Path>) -> Node {
    resolve(&mut node, &Shape::Table(SETTINGS), base, home);
    node
}

fn resolve(node: &mut Node, shape: &Shape, base: Option<&Path>, home: Option<&Path>) {
    match (shape, &mut node.data) {
        (Shape::Table(fields), Data::Table(table)) => {
            for field in *fields {
                if matches!(field.shape, Shape::Path)
                    && table.get(field.name).is_some_and(|member| member.node.as_text() == Some(""))
                {
                    table.shift_remove(field.name);
                }
                if let Some(member) = table.get_mut(field.name) {
                    resolve(&mut member.node, &field.shape, base, home);
                }
            }
        }
        (Shape::List(inner), Data::List(items)) => {
            if matches!(inner, Shape::Path) {
                items.retain(|item| item.as_text() != Some(""));
            }
            for item in items {
                resolve(item, inner, base, home);
            }
        }
        (Shape::Path, Data::Text(text)) => {
            let home_relative = text.strip_prefix("~/").or_else(|| (text == "~").then_some(""));
            let full = match (home_relative, home) {
                (Some(inside), Some(home)) => Some(home.join(inside)),
                _ => base.map(|base| base.join(&text)),
            };
            if let Some(full) = full.as_deref().and_then(Path::to_str) {
                full.clone_into(text);
            }
        }
        _ => {}
    }
}
