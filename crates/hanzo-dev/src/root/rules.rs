//! "Always" answers: an `allow` rule in the user's own settings.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use hanzo_engine::parts::RuleSaver;
use hanzo_protocol::BoxFuture;
use toml_edit::{Array, DocumentMut, Item, Table, Value};

/// Adds rules to a settings file, leaving everything else in it as it is.
pub struct SettingsRules {
    file: Option<PathBuf>,
    /// One writer at a time in this process; between processes the last one wins, as with any editor.
    writing: Mutex<()>,
}

impl SettingsRules {
    /// Rules go to `file`; without one they cannot be kept.
    pub fn new(file: Option<PathBuf>) -> Self {
        Self { file, writing: Mutex::new(()) }
    }
}

impl RuleSaver for SettingsRules {
    fn save<'a>(&'a self, rule: &'a str) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let file = self.file.as_ref().ok_or("nothing says where your settings belong; set `HOME`")?;
            let _writing = self.writing.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            add_rule(file, rule)
        })
    }
}

/// Adds `rule` to `permissions.allow` of `file`, which is made when it is missing.
fn add_rule(file: &Path, rule: &str) -> Result<(), String> {
    if file.extension().is_some_and(|ending| ending == "json") {
        return Err(format!(
            "add {rule:?} to `permissions.allow` in {} yourself: it is JSON",
            file.display()
        ));
    }
    edit(file, |text| with_rule(text, rule))
}

/// Writes what `change` makes of a settings file, which is made when it is missing, whole or not at all. `None` leaves it alone.
pub(crate) fn edit(
    file: &Path,
    change: impl FnOnce(&str) -> Result<Option<String>, String>,
) -> Result<(), String> {
    let failed =
        |what: &str, error: &dyn std::fmt::Display| format!("cannot {what} {}: {error}", file.display());
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(failed("read", &error)),
    };
    let Some(changed) = change(&text).map_err(|error| failed("change", &error))? else {
        return Ok(());
    };
    let directory = file.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(directory).map_err(|error| failed("make the directory of", &error))?;
    let mode = std::fs::metadata(file).map(|data| data.permissions()).ok();
    let name = format!(".settings-{}.tmp", hanzo_protocol::ids::TraceId::new());
    let temporary = directory.join(name);
    let written = write_private(&temporary, changed.as_bytes())
        .and_then(|()| mode.map_or(Ok(()), |mode| std::fs::set_permissions(&temporary, mode)))
        .and_then(|()| std::fs::rename(&temporary, file));
    written.map_err(|error| {
        let _ = std::fs::remove_file(&temporary);
        failed("write", &error)
    })
}

/// Writes a new file that only the user can read, to the disk.
pub fn write_private(path: &Path, content: &[u8]) -> std::io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(content)?;
    file.sync_all()
}

/// `text` with the rule; `None` when it is there already.
fn with_rule(text: &str, rule: &str) -> Result<Option<String>, String> {
    let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| error.to_string())?;
    let permissions = document.entry("permissions").or_insert(Item::Table(Table::new()));
    let permissions = permissions.as_table_like_mut().ok_or("`permissions` is not a table")?;
    let allow = permissions.entry("allow").or_insert(Item::Value(Value::Array(Array::new())));
    let allow = allow.as_array_mut().ok_or("`permissions.allow` is not a list")?;
    let names = |entry: &Value| match entry {
        Value::String(text) => text.value() == rule,
        Value::InlineTable(full) => full.get("rule").and_then(Value::as_str) == Some(rule),
        _ => false,
    };
    if allow.iter().any(names) {
        return Ok(None);
    }
    allow.push(rule);
    Ok(Some(document.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_added_once_and_the_rest_stays() {
        let before = "# mine\nmodel = \"x\" # why\n\n[permissions]\ndeny = [\"Bash(rm*)\"]\n";
        let after = with_rule(before, "Bash(git push:*)").unwrap().unwrap();
        assert!(after.starts_with(before), "{after}");
        assert!(after.ends_with("allow = [\"Bash(git push:*)\"]\n"), "{after}");
        assert_eq!(with_rule(&after, "Bash(git push:*)").unwrap(), None);
        let more = with_rule(&after, "Edit").unwrap().unwrap();
        assert!(more.contains("allow = [\"Bash(git push:*)\", \"Edit\"]"), "{more}");
    }

    #[test]
    fn a_file_that_is_missing_is_made_and_private() {
        use std::os::unix::fs::PermissionsExt as _;
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("deep/settings.toml");
        add_rule(&file, "Read").unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "[permissions]\nallow = [\"Read\"]\n");
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_file_it_does_not_understand_is_left_alone() {
        assert!(with_rule("permissions = 5", "Read").is_err());
        assert!(with_rule("[permissions", "Read").is_err());
        assert!(add_rule(Path::new("/x/settings.json"), "Read").unwrap_err().contains("yourself"));
    }
}
