//! Reading a manifest.

use std::io::Read as _;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::permissions::Permissions;
use crate::client::schema::repair;
use crate::client::text::{MOST_DESCRIPTION, clean, line};

/// How large a manifest may be.
const MOST_BYTES: u64 = 64 * 1024;
const TIMEOUT: Duration = Duration::from_secs(30);
const LONGEST: Duration = Duration::from_mins(10);
const LONGEST_KEPT: Duration = Duration::from_hours(24);
/// What names of other things begin with.
const RESERVED: [&str; 3] = ["mcp_", "mcp__", "hanzo_agent_"];

/// A tool that is a script.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// Its name.
    pub name: String,
    /// Its version, as the manifest has it.
    pub version: String,
    /// What it is for.
    pub description: String,
    /// The schema of its arguments.
    pub input: Value,
    /// The schema of what it returns.
    pub output: Option<Value>,
    /// What it may reach.
    pub permissions: Permissions,
    /// What runs the script.
    pub runtime: Runtime,
    /// The script.
    pub handler: PathBuf,
    /// The function in it, where the manifest names one.
    pub function: Option<String>,
    /// How long a call may take.
    pub timeout: Duration,
    /// For how long a result holds: the same arguments give the same result.
    pub keeps: Option<Duration>,
}

/// What runs a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Runtime {
    /// Node: a module's function is given the arguments as one object.
    #[serde(alias = "javascript", alias = "nodejs")]
    Node,
    /// Python: a function is given the arguments by their names.
    #[serde(alias = "python3")]
    Python,
    /// A shell script: it reads the arguments as JSON and writes the result.
    #[serde(alias = "sh", alias = "bash")]
    Shell,
}

#[derive(Deserialize)]
struct Raw {
    name: String,
    #[serde(default)]
    version: Value,
    #[serde(default)]
    description: String,
    #[serde(default, alias = "input_schema")]
    input: Option<Value>,
    #[serde(default, alias = "output_schema")]
    output: Option<Value>,
    #[serde(default)]
    permissions: Vec<String>,
    implementation: Implementation,
    #[serde(default)]
    cache: Option<Cache>,
}

#[derive(Deserialize)]
struct Implementation {
    runtime: Runtime,
    handler: String,
    /// In milliseconds.
    #[serde(default)]
    timeout: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cache {
    /// In milliseconds.
    ttl: u64,
}

pub(super) fn load(path: &Path, within: &Path) -> Result<Manifest, String> {
    let failed = |error: std::io::Error| error.to_string();
    let real = path.canonicalize().map_err(failed)?;
    let within = within.canonicalize().map_err(failed)?;
    if !real.starts_with(&within) {
        return Err("it is a link that leads elsewhere".to_owned());
    }
    if !real.metadata().map_err(failed)?.is_file() {
        return Err("it is not a plain file".to_owned());
    }
    let mut text = String::new();
    std::fs::File::open(&real)
        .and_then(|file| file.take(MOST_BYTES + 1).read_to_string(&mut text))
        .map_err(failed)?;
    if text.len() as u64 > MOST_BYTES {
        return Err(format!("it is larger than {} kB", MOST_BYTES / 1024));
    }
    let directory = real.parent().ok_or("it is in no directory")?;
    read(&text, directory)
}

/// Reads a manifest of `directory`.
pub(super) fn read(text: &str, directory: &Path) -> Result<Manifest, String> {
    let value: Value = serde_saphyr::from_str(text).map_err(|error| line(&error.to_string(), 500))?;
    let raw: Raw = serde_json::from_value(value).map_err(|error| error.to_string())?;
    let name = raw.name;
    if !is_name(&name) {
        return Err(format!(
            "`{}` is no name for a tool: it has 1 to 64 letters, digits, `_` and `-`, begins with a letter, and with none of {}",
            line(&name, 80),
            RESERVED.join(", ")
        ));
    }
    let input = repair(Some(&spelt_out(raw.input.unwrap_or_else(|| json!({"type": "object"})), 0)))?;
    let Implementation { runtime, handler, timeout } = raw.implementation;
    let (file, function) = split(&handler, runtime);
    Ok(Manifest {
        version: match raw.version {
            Value::String(version) => line(&version, 40),
            Value::Null => "0".to_owned(),
            other => line(&other.to_string(), 40),
        },
        description: clean(&raw.description, MOST_DESCRIPTION),
        input: input.schema,
        output: raw.output.map(|output| spelt_out(output, 0)),
        permissions: Permissions::parse(raw.permissions.iter().map(String::as_str))?,
        runtime,
        handler: script(directory, file)?,
        function: function.map(str::to_owned),
        timeout: timeout.map_or(TIMEOUT, Duration::from_millis).clamp(Duration::from_millis(1), LONGEST),
        keeps: raw.cache.map(|cache| Duration::from_millis(cache.ttl).min(LONGEST_KEPT)),
        name,
    })
}

fn is_name(name: &str) -> bool {
    let letters = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    letters
        && name.len() <= 64
        && name.bytes().next().is_some_and(|first| first.is_ascii_alphabetic())
        && !RESERVED.iter().any(|reserved| name.starts_with(reserved))
}

/// `./search.py:run` names a function of a script.
fn split(handler: &str, runtime: Runtime) -> (&str, Option<&str>) {
    match handler.rsplit_once([':', '#']) {
        Some((file, function)) if runtime != Runtime::Shell && !function.contains('/') => {
            (file, Some(function))
        }
        _ => (handler, None),
    }
}

/// The script, which lies beside the manifest.
fn script(directory: &Path, handler: &str) -> Result<PathBuf, String> {
    let relative = Path::new(handler);
    let below = relative.components().all(|part| matches!(part, Component::CurDir | Component::Normal(_)));
    let leads_out = || format!("its handler `{}` does not lie beside the manifest", line(handler, 200));
    if !below || handler.is_empty() {
        return Err(leads_out());
    }
    let path = directory.join(relative);
    let real = path
        .canonicalize()
        .map_err(|error| format!("its handler `{}` cannot be read: {error}", line(handler, 200)))?;
    let directory = directory.canonicalize().map_err(|error| error.to_string())?;
    if !real.starts_with(directory) || !real.is_file() {
        return Err(leads_out());
    }
    Ok(real)
}

/// Schemas in manifests say `title: string` for `title: {type: string}`.
fn spelt_out(schema: Value, depth: usize) -> Value {
    const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "object", "array", "null"];
    match schema {
        Value::String(kind) if TYPES.contains(&kind.as_str()) => json!({ "type": kind }),
        Value::Object(members) if depth < 32 => {
            let spell = |(name, value): (String, Value)| {
                let value = match (name.as_str(), value) {
                    ("properties", Value::Object(properties)) => properties
                        .into_iter()
                        .map(|(name, schema)| (name, spelt_out(schema, depth + 1)))
                        .collect::<Map<_, _>>()
                        .into(),
                    ("items" | "additionalProperties", schema) => spelt_out(schema, depth + 1),
                    (_, value) => value,
                };
                (name, value)
            };
            members.into_iter().map(spell).collect::<Map<_, _>>().into()
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::permissions::{Files, Network};
    use super::*;

    /// The manifest of the document, word for word.
    const DOCUMENTED: &str = "
# Tool manifest (mcp-tool.yaml)
name: web_search
version: 1.0.0
description: Search the web for information

input:
  type: object
  properties:
    query:
      type: string
      description: Search query
    max_results:
      type: integer
      default: 10
  required: [query]

output:
  type: object
  properties:
    results:
      type: array
      items:
        type: object
        properties:
          title: string
          url: string
          snippet: string

permissions:
  - network:http
  - rate_limit:100/min

implementation:
  runtime: node
  handler: ./search.js
  timeout: 30000
";

    fn place() -> tempfile::TempDir {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("search.js"), "").unwrap();
        place
    }

    #[test]
    fn the_documented_manifest_is_read() {
        let place = place();
        let manifest = read(DOCUMENTED, place.path()).unwrap();
        assert_eq!((manifest.name.as_str(), manifest.version.as_str()), ("web_search", "1.0.0"));
        assert_eq!(manifest.input["required"], json!(["query"]));
        assert_eq!(manifest.input["properties"]["max_results"]["default"], 10);
        let output = manifest.output.unwrap();
        assert_eq!(
            output["properties"]["results"]["items"]["properties"]["title"],
            json!({"type": "string"})
        );
        assert_eq!(manifest.permissions.walls.network, Network::On);
        assert_eq!(manifest.permissions.walls.files, Files::Read);
        assert_eq!((manifest.runtime, manifest.timeout), (Runtime::Node, Duration::from_secs(30)));
        assert!(manifest.handler.ends_with("search.js") && manifest.keeps.is_none());
    }

    #[test]
    fn a_handler_lies_beside_its_manifest_and_may_name_a_function() {
        let place = place();
        let with = |handler: &str| read(&DOCUMENTED.replace("./search.js", handler), place.path());
        assert_eq!(with("search.js#find").unwrap().function.as_deref(), Some("find"));
        assert_eq!(with("search.js:find").unwrap().function.as_deref(), Some("find"));
        std::os::unix::fs::symlink("/etc/passwd", place.path().join("link.js")).unwrap();
        for odd in ["../search.js", "/etc/passwd", "gone.js", "link.js", "''", "."] {
            assert!(with(odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_in_words() {
        let place = place();
        for (from, to, words) in [
            ("name: web_search", "name: mcp__x", "no name"),
            ("name: web_search", "name: 'a b'", "no name"),
            ("- network:http", "- everything", "not a permission"),
            ("runtime: node", "runtime: cobol", "cobol"),
            (
                "  type: object\n  properties:\n    query",
                "  type: string\n  properties:\n    query",
                "not an object",
            ),
            ("name: web_search", "name: [", ""),
        ] {
            let fault = read(&DOCUMENTED.replacen(from, to, 1), place.path()).unwrap_err();
            assert!(fault.contains(words), "{to}: {fault}");
        }
    }

    #[test]
    fn a_manifest_that_grows_out_of_itself_is_refused() {
        let place = place();
        let mut bomb = String::from("a: &a [x, x, x, x, x, x, x, x, x, x]\n");
        for (own, before) in ('b'..='i').zip('a'..) {
            let all = vec![format!("*{before}"); 10].join(", ");
            bomb = format!("{bomb}{own}: &{own} [{all}]\n");
        }
        bomb.push_str(DOCUMENTED);
        assert!(read(&bomb, place.path()).is_err());
    }

    proptest! {
        #[test]
        fn no_text_is_too_odd_to_be_refused(text in ".{0,300}", cut in 0..DOCUMENTED.len()) {
            let place = tempfile::tempdir().unwrap();
            let _ = read(&text, place.path());
            let cut = DOCUMENTED.floor_char_boundary(cut);
            let _ = read(&format!("{}{text}{}", &DOCUMENTED[..cut], &DOCUMENTED[cut..]), place.path());
        }
    }
}
