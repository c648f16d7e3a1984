//! `docs/schema/*.json`.

use anyhow::Result;

use crate::Documents;

pub fn add(documents: &mut Documents) -> Result<()> {
    for (name, schema) in hanzo_protocol::schema::all() {
        let text = serde_json::to_string_pretty(&schema)?;
        documents.insert(format!("schema/{name}.json").into(), text + "\n");
    }
    Ok(())
}
