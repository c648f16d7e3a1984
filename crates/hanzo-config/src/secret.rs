//! Text that must not be seen: secrets, and templates whose expansion may hold one.
//!
//! None of these types shows its content through `Debug`, `Display` or `Serialize`. Code that needs the content
//! asks for it by name (`expose`, `expanded`), which is easy to find in a review.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What stands in for a secret wherever one would be shown.
pub const MASK: &str = "***";

/// A secret: shown as `***`, given out only by [`Secret::expose`].
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps `text`.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The secret itself. Hand it to what needs it and to nothing that prints.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(MASK)
    }
}

impl<'de> Deserialize<'de> for Secret {
    /// Takes a string as it is; `oauth_credentials` may also be a table, which is kept as its JSON text.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::String(text) => Self(text),
            other => Self(other.to_string()),
        })
    }
}

impl JsonSchema for Secret {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Secret".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({ "type": "string" })
    }
}

/// Text that may name variables: `${NAME}` or `${NAME:-default}`.
///
/// It is shown as it was written. Only [`Template::expanded`] gives the text with the variables put in, because
/// that may hold a secret of the environment.
#[derive(Clone, PartialEq, Eq)]
pub struct Template {
    raw: String,
    expanded: Option<String>,
}

impl Template {
    /// A text without variables, or one that has not been expanded.
    pub fn literal(text: impl Into<String>) -> Self {
        Self { raw: text.into(), expanded: None }
    }

    /// The text as it stands in the file.
    pub fn raw(&self) -> &str {
        &self.raw
    }

    /// The text with its variables put in.
    pub fn expanded(&self) -> &str {
        self.expanded.as_deref().unwrap_or(&self.raw)
    }

    fn from_wire(wire: TemplateWire) -> Self {
        match wire {
            TemplateWire::Literal(raw) => Self { raw, expanded: None },
            TemplateWire::Expanded { raw, expanded } => Self { raw, expanded: Some(expanded) },
        }
    }
}

/// How an expanded template travels from the merged tree into the typed settings.
#[derive(Deserialize)]
#[serde(untagged)]
enum TemplateWire {
    Literal(String),
    Expanded { raw: String, expanded: String },
}

/// Hides the password of a URL (`https://user:password@host`), the one secret that is recognisable in a literal.
pub(crate) fn mask_url_password(text: &str) -> Cow<'_, str> {
    let Some(scheme) = text.find("://") else { return Cow::Borrowed(text) };
    let rest = &text[scheme + 3..];
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    match authority.rfind('@') {
        Some(at) => Cow::Owned(format!("{}://{MASK}{}", &text[..scheme], &rest[at..])),
        None => Cow::Borrowed(text),
    }
}

/// Shows a value that is usually a secret: a reference to variables is shown, a literal (also a default) is not.
pub(crate) fn mask_literal(raw: &str) -> &str {
    let trimmed = raw.strip_prefix("Bearer ").unwrap_or(raw);
    let is_reference = trimmed
        .strip_prefix("${")
        .and_then(|rest| rest.strip_suffix('}'))
        .is_some_and(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'));
    if is_reference { raw } else { MASK }
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", mask_url_password(&self.raw))
    }
}

impl Serialize for Template {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&mask_url_password(&self.raw))
    }
}

impl<'de> Deserialize<'de> for Template {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        TemplateWire::deserialize(deserializer).map(Self::from_wire)
    }
}

impl JsonSchema for Template {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Template".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({ "type": "string" })
    }
}

/// A [`Template`] whose literal text is a secret too: the value of a header or of an environment variable.
///
/// Shown as written when it only refers to a variable (`${TOKEN}`, `Bearer ${TOKEN}`), otherwise as `***`.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretTemplate(Template);

impl SecretTemplate {
    /// A text without variables, or one that has not been expanded.
    pub fn literal(text: impl Into<String>) -> Self {
        Self(Template::literal(text))
    }

    /// The text with its variables put in. Hand it to what needs it and to nothing that prints.
    pub fn expose(&self) -> &str {
        self.0.expanded()
    }
}

impl fmt::Debug for SecretTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(mask_literal(&self.0.raw))
    }
}

impl Serialize for SecretTemplate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(mask_literal(&self.0.raw))
    }
}

impl<'de> Deserialize<'de> for SecretTemplate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Template::deserialize(deserializer).map(Self)
    }
}

impl JsonSchema for SecretTemplate {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "SecretTemplate".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({ "type": "string" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_never_shows_itself() {
        let secret = Secret::new("sk-canary");
        let shown = format!("{secret:?} {secret} {}", serde_json::to_string(&secret).unwrap());
        assert_eq!(shown, "*** *** \"***\"");
        assert_eq!(secret.expose(), "sk-canary");
    }

    #[test]
    fn only_pure_references_are_shown_in_place_of_secret_literals() {
        assert_eq!(mask_literal("${TOKEN}"), "${TOKEN}");
        assert_eq!(mask_literal("Bearer ${TOKEN}"), "Bearer ${TOKEN}");
        for secret in ["abc", "Bearer abc", "${TOKEN:-abc}", "abc${TOKEN}", "${A}abc${B}"] {
            assert_eq!(mask_literal(secret), MASK, "{secret}");
        }
    }

    #[test]
    fn the_password_of_a_url_is_hidden() {
        assert_eq!(mask_url_password("https://me:pw@host/x@y"), "https://***@host/x@y");
        assert_eq!(mask_url_password("https://host/x@y"), "https://host/x@y");
        assert_eq!(mask_url_password("npx"), "npx");
    }
}
