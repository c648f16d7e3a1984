//! Values as they may be shown: what [`crate::shape`] calls a secret becomes `***`.

use serde_json::Value;

use crate::node::{Data, Node};
use crate::secret::{MASK, mask_literal, mask_url_password};
use crate::settings::mask;
use crate::shape::{Field, Shape};

/// The value of a canonical node as JSON without secrets.
pub(crate) fn masked(node: &Node, shape: &Shape) -> Value {
    match shape {
        Shape::Secret | Shape::SecretAny => Value::from(MASK),
        Shape::SecretTemplate => Value::from(node.as_text().map_or(MASK, mask_literal)),
        Shape::Any => mask(&node.to_json()),
        Shape::Table(fields) | Shape::Permissions(fields) => table(node, fields),
        Shape::List(inner) => match &node.data {
            Data::List(items) => items.iter().map(|item| masked(item, inner)).collect(),
            _ => plain(node),
        },
        Shape::Map(inner) => map(node, |_| inner),
        Shape::Named(fields) => match &node.data {
            Data::Table(entries) => Value::Object(
                entries.iter().map(|(name, member)| (name.clone(), table(&member.node, fields))).collect(),
            ),
            _ => plain(node),
        },
        Shape::Environment => map(node, |_| &Shape::SecretTemplate),
        _ => plain(node),
    }
}

fn table(node: &Node, fields: &'static [Field]) -> Value {
    map(node, |key| fields.iter().find(|field| field.name == key).map_or(&Shape::Text, |field| &field.shape))
}

fn map<'s>(node: &Node, shape_of: impl Fn(&str) -> &'s Shape) -> Value {
    match &node.data {
        Data::Table(table) => Value::Object(
            table.iter().map(|(key, member)| (key.clone(), masked(&member.node, shape_of(key)))).collect(),
        ),
        _ => plain(node),
    }
}

fn plain(node: &Node) -> Value {
    match &node.data {
        Data::Text(text) | Data::Expanded { raw: text, .. } => Value::from(mask_url_password(text)),
        Data::List(items) => items.iter().map(plain).collect(),
        _ => node.to_json(),
    }
}
