//! A credential that cannot be printed by accident.

use std::fmt;

/// A key, token or header value that must not be seen: shown as `***`, given out only by [`ApiKey::expose`].
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// Wraps `text`. White space around it is dropped: it comes from files that end in a line break.
    pub fn new(text: impl AsRef<str>) -> Self {
        Self(text.as_ref().trim().to_owned())
    }

    /// The key itself. Hand it to what needs it and to nothing that prints.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Display for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl<T: AsRef<str>> From<T> for ApiKey {
    fn from(text: T) -> Self {
        Self::new(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_never_shows_itself() {
        let key = ApiKey::new(" sk-canary\n");
        assert_eq!(format!("{key:?} {key} {key:#?}"), "*** *** ***");
        assert_eq!(key.expose(), "sk-canary");
    }
}
