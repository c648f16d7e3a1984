//! Servers in a settings file: added and taken out, everything else left as it is.

use toml_edit::{Array, ArrayOfTables, DocumentMut, InlineTable, Item, Table, TableLike, Value};

/// The keys under which servers stand.
const KEYS: [&str; 2] = ["mcp_servers", "plugins"];

/// A server to be written.
#[derive(Debug, Default)]
pub struct Entry {
    pub name: String,
    /// `stdio` when absent.
    pub kind: Option<&'static str>,
    pub command: Vec<String>,
    pub url: Option<String>,
    pub env: Vec<(String, String)>,
    pub headers: Vec<(String, String)>,
    pub allow_env: Vec<String>,
    pub timeout: Option<u64>,
    pub trusted: bool,
}

impl Entry {
    fn fill(&self, table: &mut dyn TableLike) {
        let mut put = |key: &str, value: Value| {
            table.insert(key, Item::Value(value));
        };
        let list = |words: &[String]| Value::Array(words.iter().map(String::as_str).collect::<Array>());
        let map = |pairs: &[(String, String)]| {
            let pairs = pairs.iter().map(|(name, value)| (name.as_str(), Value::from(value.as_str())));
            Value::InlineTable(pairs.collect::<InlineTable>())
        };
        if let Some(kind) = self.kind {
            put("type", kind.into());
        }
        if let Some((program, arguments)) = self.command.split_first() {
            put("command", program.as_str().into());
            if !arguments.is_empty() {
                put("args", list(arguments));
            }
        }
        if let Some(url) = &self.url {
            put("url", url.as_str().into());
        }
        if !self.env.is_empty() {
            put("env", map(&self.env));
        }
        if !self.headers.is_empty() {
            put("headers", map(&self.headers));
        }
        if !self.allow_env.is_empty() {
            put("allow_env", list(&self.allow_env));
        }
        if let Some(seconds) = self.timeout {
            put("timeout_secs", i64::try_from(seconds).unwrap_or(i64::MAX).into());
        }
        if self.trusted {
            put("trusted", true.into());
        }
    }
}

fn parse(text: &str) -> Result<DocumentMut, String> {
    text.parse().map_err(|error: toml_edit::TomlError| error.to_string())
}

fn is_named(table: &Table, name: &str) -> bool {
    table.get("name").and_then(Item::as_str) == Some(name)
}

/// Whether the file has a server called `name`.
fn has(document: &DocumentMut, name: &str) -> bool {
    KEYS.iter().filter_map(|key| document.get(key)).any(|servers| match servers {
        Item::ArrayOfTables(list) => list.iter().any(|table| is_named(table, name)),
        other => other.as_table_like().is_some_and(|table| table.contains_key(name)),
    })
}

/// `text` with the server.
pub fn with_server(text: &str, entry: &Entry) -> Result<Option<String>, String> {
    let mut document = parse(text)?;
    if has(&document, &entry.name) {
        return Err(format!("there is a server `{}` already; remove it first", entry.name));
    }
    let key = KEYS.iter().find(|key| document.contains_key(key)).copied().unwrap_or(KEYS[0]);
    let servers = document.entry(key).or_insert_with(|| {
        let mut table = Table::new();
        // Only the servers themselves need a heading.
        table.set_implicit(true);
        Item::Table(table)
    });
    match servers {
        Item::ArrayOfTables(list) => push(list, entry),
        other => {
            let table = other.as_table_like_mut().ok_or_else(|| format!("`{key}` is not a table"))?;
            let mut server = Table::new();
            entry.fill(&mut server);
            table.insert(&entry.name, Item::Table(server));
        }
    }
    Ok(Some(document.to_string()))
}

fn push(list: &mut ArrayOfTables, entry: &Entry) {
    let mut server = Table::new();
    server.insert("name", Item::Value(entry.name.as_str().into()));
    entry.fill(&mut server);
    list.push(server);
}

/// `text` without the server.
pub fn without_server(text: &str, name: &str) -> Result<Option<String>, String> {
    let mut document = parse(text)?;
    if !has(&document, name) {
        return Err(format!("there is no server `{name}` in it"));
    }
    for key in KEYS {
        match document.get_mut(key) {
            Some(Item::ArrayOfTables(list)) => list.retain(|table| !is_named(table, name)),
            Some(other) => {
                if let Some(table) = other.as_table_like_mut() {
                    table.remove(name);
                }
            }
            None => {}
        }
    }
    Ok(Some(document.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str) -> Entry {
        Entry {
            name: name.to_owned(),
            command: ["npx", "-y", "server"].map(str::to_owned).to_vec(),
            env: vec![("KEY".to_owned(), "${KEY}".to_owned())],
            ..Entry::default()
        }
    }

    #[test]
    fn a_server_is_added_and_removed_and_the_rest_stays() {
        let before = "# mine\nmodel = \"x\" # why\n";
        let after = with_server(before, &entry("a.b")).unwrap().unwrap();
        assert!(after.starts_with(before), "{after}");
        assert!(
            after.contains("[mcp_servers.\"a.b\"]\ncommand = \"npx\"\nargs = [\"-y\", \"server\"]\n"),
            "{after}"
        );
        assert!(after.contains("env = { KEY = \"${KEY}\" }"), "{after}");
        assert!(with_server(&after, &entry("a.b")).unwrap_err().contains("already"));
        let gone = without_server(&after, "a.b").unwrap().unwrap();
        assert_eq!(gone.trim_end(), before.trim_end());
        assert!(without_server(before, "a").is_err());
    }

    #[test]
    fn lists_of_servers_stay_lists() {
        let before = "[[plugins]]\nname = \"old\"\ncommand = \"x\"\n";
        let after = with_server(before, &entry("new")).unwrap().unwrap();
        assert!(after.contains("[[plugins]]\nname = \"new\"\ncommand = \"npx\""), "{after}");
        let gone = without_server(&after, "old").unwrap().unwrap();
        assert!(!gone.contains("old") && gone.contains("new"), "{gone}");
    }
}
