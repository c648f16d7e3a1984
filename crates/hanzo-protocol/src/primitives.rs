//! The values tools pass to each other (seed 001, "Composability Primitives"): what one action returns, the next one
//! takes, without either knowing the other.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, percent_encode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// A value that does not have the form its type promises.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{value}` is not {expected}")]
pub struct FormatError {
    value: String,
    expected: &'static str,
}

impl FormatError {
    fn new(value: impl Into<String>, expected: &'static str) -> Self {
        Self { value: value.into(), expected }
    }
}

/// The name of a value's type, as JSON Schema has it.
pub fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// A file's address: always `file:///…`, absolute, without `.` or `..`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String")]
pub struct FileUri(String);

impl Serialize for FileUri {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// What a path may hold that a URI may not hold bare. `/` stays: it separates.
const ESCAPED_IN_PATH: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

const FILE_URI_FORM: &str = "a `file:///` URI with an absolute path and no `.` or `..` in it";

impl FileUri {
    /// The address of `path`, which must be absolute and without `.` or `..`: those mean different files to whoever
    /// resolves symbolic links first, so they have to be gone before a path becomes an identity.
    pub fn from_path(path: &Path) -> Result<Self, FormatError> {
        let plain = path.components().all(|part| !matches!(part, Component::ParentDir | Component::CurDir));
        if !path.is_absolute() || !plain {
            return Err(FormatError::new(path.display().to_string(), "an absolute path without `.` or `..`"));
        }
        let bytes = path_bytes(path);
        let mut text = String::with_capacity("file:///".len() + bytes.len());
        text.push_str(if bytes.starts_with(b"/") { "file://" } else { "file:///" });
        text.extend(percent_encode(&bytes, ESCAPED_IN_PATH));
        Ok(Self(text))
    }

    /// The address of what is called `name` in the directory this is the address of.
    ///
    /// # Panics
    /// When `name` is not the name of an entry: empty, `.`, `..`, or with a slash in it.
    #[must_use]
    pub fn child(&self, name: &OsStr) -> Self {
        let bytes = path_bytes(Path::new(name));
        let plain = !bytes.is_empty() && *bytes != *b"." && *bytes != *b".." && !bytes.contains(&b'/');
        assert!(plain, "a directory has no entry called {}", name.display());
        let mut text = String::with_capacity(self.0.len() + 1 + bytes.len());
        text.push_str(self.0.strip_suffix('/').unwrap_or(&self.0));
        text.push('/');
        text.extend(percent_encode(&bytes, ESCAPED_IN_PATH));
        Self(text)
    }

    /// The path the URI names.
    pub fn to_path(&self) -> PathBuf {
        let encoded =
            self.0.strip_prefix("file://").expect("a FileUri begins with `file://` by construction");
        bytes_path(percent_decode_str(encoded).collect())
    }

    /// The URI as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(unix)]
fn path_bytes(path: &Path) -> Cow<'_, [u8]> {
    use std::os::unix::ffi::OsStrExt as _;
    Cow::Borrowed(path.as_os_str().as_bytes())
}

#[cfg(unix)]
fn bytes_path(bytes: Vec<u8>) -> PathBuf {
    use std::os::unix::ffi::OsStringExt as _;
    std::ffi::OsString::from_vec(bytes).into()
}

#[cfg(not(unix))]
fn path_bytes(path: &Path) -> Cow<'_, [u8]> {
    Cow::Owned(path.to_string_lossy().replace('\\', "/").into_bytes())
}

#[cfg(not(unix))]
fn bytes_path(bytes: Vec<u8>) -> PathBuf {
    let text = String::from_utf8_lossy(&bytes);
    // `/C:/x` is how a drive is written in a URI.
    let drive = text.as_bytes().get(2) == Some(&b':');
    PathBuf::from(if drive { &text[1..] } else { &text[..] })
}

impl FromStr for FileUri {
    type Err = FormatError;

    /// Accepts what RFC 8089 allows for a local file (`file:///x`, `file://localhost/x`, `file:/x`) and keeps the
    /// first form, so that equal files are equal text.
    fn from_str(text: &str) -> Result<Self, FormatError> {
        let wrong = || FormatError::new(text, FILE_URI_FORM);
        let rest = text.strip_prefix("file:").ok_or_else(wrong)?;
        let path = match rest.strip_prefix("//") {
            Some(with_host) => with_host.strip_prefix("localhost").unwrap_or(with_host),
            None => rest,
        };
        if !path.starts_with('/') || path.contains(['?', '#', '\0']) {
            return Err(wrong());
        }
        let decoded: Vec<u8> = percent_decode_str(path).collect();
        if decoded.contains(&0) {
            return Err(wrong());
        }
        Self::from_path(&bytes_path(decoded)).map_err(|_| wrong())
    }
}

impl TryFrom<String> for FileUri {
    type Error = FormatError;

    fn try_from(text: String) -> Result<Self, FormatError> {
        text.parse()
    }
}

impl From<FileUri> for String {
    fn from(uri: FileUri) -> Self {
        uri.0
    }
}

impl fmt::Display for FileUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The identity of some content: `sha256:` and 64 lower-case hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct ContentHash(String);

impl ContentHash {
    /// The hash of `content`.
    pub fn of(content: &[u8]) -> Self {
        Self::from_digest(&Sha256::digest(content))
    }

    fn from_digest(digest: &[u8]) -> Self {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = String::with_capacity("sha256:".len() + 2 * digest.len());
        text.push_str("sha256:");
        for byte in digest {
            text.push(char::from(DIGITS[usize::from(byte >> 4)]));
            text.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
        Self(text)
    }

    /// The hash as text, prefix included.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Makes the hash of content that comes in pieces.
///
/// ```
/// # use hanzo_protocol::primitives::{ContentHash, ContentHasher};
/// let mut hasher = ContentHasher::default();
/// hasher.update(b"a");
/// hasher.update(b"bc");
/// assert_eq!(hasher.finish(), ContentHash::of(b"abc"));
/// ```
#[derive(Debug, Clone, Default)]
pub struct ContentHasher(Sha256);

impl ContentHasher {
    /// Takes the next piece.
    pub fn update(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }

    /// The hash of all pieces.
    pub fn finish(self) -> ContentHash {
        ContentHash::from_digest(&self.0.finalize())
    }
}

impl FromStr for ContentHash {
    type Err = FormatError;

    fn from_str(text: &str) -> Result<Self, FormatError> {
        let hexadecimal = |digits: &str| {
            digits.len() == 64 && digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
        };
        match text.strip_prefix("sha256:") {
            Some(digits) if hexadecimal(digits) => Ok(Self(text.to_owned())),
            _ => Err(FormatError::new(text, "`sha256:` and 64 lower-case hexadecimal digits")),
        }
    }
}

impl TryFrom<String> for ContentHash {
    type Error = FormatError;

    fn try_from(text: String) -> Result<Self, FormatError> {
        text.parse()
    }
}

impl From<ContentHash> for String {
    fn from(hash: ContentHash) -> Self {
        hash.0
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A place in a text. Both numbers count from 0; columns count Unicode scalar values, so that they mean the same to a
/// model, an editor and a terminal whatever encoding the file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Position {
    /// The line, from 0.
    pub line: u32,
    /// The column, from 0.
    pub col: u32,
}

/// A stretch of a text: from `start` up to, and not including, `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Range {
    /// Where it begins.
    pub start: Position,
    /// Where it ends.
    pub end: Position,
}

macro_rules! handles {
    ($($(#[doc = $doc:literal])+ $name:ident),+ $(,)?) => {$(
        $(#[doc = $doc])+
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// The handle `text`.
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// The handle as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )+};
}

handles! {
    /// A handle to something too large to carry along: a log, a blob, the whole of a shortened result. Such as
    /// `stdout_ref:proc_123`.
    Ref,
    /// A handle to a symbol that survives edits elsewhere in its file. Such as `sym:UserService.auth`.
    SymbolId,
    /// Where a listing goes on. Opaque: it is given back unchanged.
    PageCursor,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_becomes_a_uri_and_back() {
        for (path, uri) in [
            ("/src/main.py", "file:///src/main.py"),
            ("/a b/ü#1?.rs", "file:///a%20b/%C3%BC%231%3F.rs"),
            ("/100%", "file:///100%25"),
            ("/", "file:///"),
        ] {
            let made = FileUri::from_path(Path::new(path)).unwrap();
            assert_eq!(made.as_str(), uri);
            assert_eq!(made.to_path(), Path::new(path));
            assert_eq!(uri.parse::<FileUri>().unwrap(), made);
            assert_eq!(serde_json::to_value(&made).unwrap(), uri);
            for name in ["x", "a b", "ü#1?.rs", "100%", "..."] {
                let whole = FileUri::from_path(&Path::new(path).join(name)).unwrap();
                assert_eq!(made.child(OsStr::new(name)), whole);
            }
        }
    }

    #[test]
    fn what_is_no_entry_of_a_directory_has_no_address_in_it() {
        let directory = FileUri::from_path(Path::new("/a")).unwrap();
        for name in ["", ".", "..", "b/c", "/"] {
            let made = std::panic::catch_unwind(|| directory.child(OsStr::new(name)));
            assert!(made.is_err(), "{name}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_path_that_is_not_utf8_survives_the_round_trip() {
        let path = bytes_path(b"/tmp/\xff\xfe".to_vec());
        let uri = FileUri::from_path(&path).unwrap();
        assert_eq!(uri.as_str(), "file:///tmp/%FF%FE");
        assert_eq!(uri.to_path(), path);
    }

    #[test]
    fn the_other_spellings_of_a_local_file_are_the_same_uri() {
        for spelling in ["file:///a/b", "file://localhost/a/b", "file:/a/b", "file:///%61/b"] {
            assert_eq!(spelling.parse::<FileUri>().unwrap().as_str(), "file:///a/b", "{spelling}");
        }
    }

    #[test]
    fn what_is_not_one_plain_local_file_is_refused() {
        for text in [
            "/a/b",
            "a/b",
            "http://x/a",
            "file://server/share",
            "file:a",
            "file:///a/../b",
            "file:///a/%2e%2e/b",
            "file:///a?x",
            "file:///a#x",
            "file:///a%00b",
            "",
        ] {
            assert!(text.parse::<FileUri>().is_err(), "{text}");
            assert!(serde_json::from_value::<FileUri>(text.into()).is_err(), "{text}");
        }
        assert!(FileUri::from_path(Path::new("relative")).is_err());
        assert!(FileUri::from_path(Path::new("/a/../b")).is_err());
    }

    #[test]
    fn a_hash_is_sha256_with_its_prefix() {
        let hash = ContentHash::of(b"abc");
        // The digest FIPS 180-2 gives for "abc".
        assert_eq!(hash.as_str(), "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(hash.as_str().parse(), Ok(hash.clone()));
        for wrong in ["abc123", "sha256:abc", &hash.as_str().to_uppercase(), &hash.as_str()[7..]] {
            assert!(wrong.parse::<ContentHash>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_range_is_zero_based_lines_and_cols_on_the_wire() {
        let range = Range { start: Position { line: 10, col: 0 }, end: Position { line: 10, col: 4 } };
        assert_eq!(
            serde_json::to_value(range).unwrap(),
            serde_json::json!({"start": {"line": 10, "col": 0}, "end": {"line": 10, "col": 4}})
        );
    }
}
