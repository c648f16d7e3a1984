//! Writes the reference pages under `docs/` from the code (`cargo xtask docs`); its test checks that they are what
//! the code says.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool for developers")]

mod cli;
mod engine_api;
mod environment;
mod schemas;
mod settings;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result};

/// Generated files by their path below `docs/`.
type Documents = BTreeMap<PathBuf, String>;

/// Directories in which every file is generated, so that one nobody generates any more is found.
const GENERATED_DIRECTORIES: [&str; 2] = ["schema", "man"];

fn main() -> ExitCode {
    match documents().and_then(|documents| write(&docs(), &documents)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

fn documents() -> Result<Documents> {
    let mut documents = Documents::new();
    schemas::add(&mut documents)?;
    cli::add(&mut documents)?;
    engine_api::add(&mut documents)?;
    environment::add(&mut documents);
    settings::add(&mut documents)?;
    Ok(documents)
}

fn write(docs: &Path, documents: &Documents) -> Result<()> {
    for stale in stale(docs, documents)? {
        std::fs::remove_file(docs.join(&stale))
            .with_context(|| format!("cannot remove {}", stale.display()))?;
        println!("removed docs/{}", stale.display());
    }
    for (name, text) in documents {
        let path = docs.join(name);
        if std::fs::read_to_string(&path).is_ok_and(|old| old == *text) {
            continue;
        }
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory)?;
        }
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        println!("wrote docs/{}", name.display());
    }
    Ok(())
}

fn stale(docs: &Path, documents: &Documents) -> Result<Vec<PathBuf>> {
    let mut stale = Vec::new();
    for directory in GENERATED_DIRECTORIES {
        let Ok(entries) = std::fs::read_dir(docs.join(directory)) else { continue };
        for entry in entries {
            let name = Path::new(directory).join(entry?.file_name());
            if !documents.contains_key(&name) {
                stale.push(name);
            }
        }
    }
    Ok(stale)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drift(docs: &Path, documents: &Documents) -> Result<Vec<String>> {
        let mut faults: Vec<String> = documents
            .iter()
            .filter(|(name, text)| std::fs::read_to_string(docs.join(name)).map_or(true, |old| old != **text))
            .map(|(name, _)| format!("docs/{} is not what the code says", name.display()))
            .collect();
        faults.extend(
            stale(docs, documents)?
                .iter()
                .map(|name| format!("docs/{} is not generated any more", name.display())),
        );
        Ok(faults)
    }

    #[test]
    fn the_documents_are_what_the_code_says() {
        let faults = drift(&docs(), &documents().unwrap()).unwrap();
        assert!(faults.is_empty(), "{}\n\nhint: run `cargo xtask docs`", faults.join("\n"));
    }

    #[test]
    fn drift_and_leftovers_are_found_and_mended() {
        let docs = std::env::temp_dir().join(format!("hanzo-docgen-{}", std::process::id()));
        let documents = Documents::from([(PathBuf::from("schema/a.json"), "{}\n".to_owned())]);
        std::fs::create_dir_all(docs.join("schema")).unwrap();
        std::fs::write(docs.join("schema/old.json"), "{}").unwrap();

        let faults = drift(&docs, &documents).unwrap();
        assert_eq!(
            faults,
            [
                "docs/schema/a.json is not what the code says",
                "docs/schema/old.json is not generated any more"
            ]
        );
        write(&docs, &documents).unwrap();
        assert_eq!(drift(&docs, &documents).unwrap(), Vec::<String>::new());
        std::fs::remove_dir_all(docs).unwrap();
    }

    #[test]
    fn generating_twice_gives_the_same() {
        assert_eq!(documents().unwrap(), documents().unwrap());
    }
}
