//! Checks that dependencies point down (ARCHITECTURE.md, "The map"). The table below is the design in a form that can
//! fail: a crate that is not in it, or an arrow it does not allow, ends the check with a sentence that says what to do.

use anyhow::{Result, bail};
use serde_json::Value;

use crate::workspace;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layer {
    /// Types and traits, no I/O.
    Protocol,
    /// Usable alone; depends on none of ours.
    StandAlone,
    /// One thing the engine can do; never depends on another of its kind.
    Capability,
    /// The turn loop and the gate.
    Engine,
    /// A way in. Holds a `dyn EngineClient`; names neither the engine nor another face.
    Face,
    /// Puts engine and faces together.
    Root,
    /// A deprecated name for a root.
    Shim,
    /// Shared by tests; only ever a dev-dependency.
    TestSupport,
    /// Ours alone, never shipped; may depend on anything.
    Tool,
}

use Layer::{Capability, Engine, Face, Protocol, Root, Shim, StandAlone, TestSupport, Tool};

const LAYERS: &[(&str, Layer)] = &[
    ("hanzo-protocol", Protocol),
    ("hanzo-sse", StandAlone),
    ("hanzo-backoff", StandAlone),
    ("hanzo-md-render", StandAlone),
    ("hanzo-lsp", StandAlone),
    ("hanzo-hooks", StandAlone),
    ("hanzo-net", StandAlone),
    ("hanzo-sandbox", StandAlone),
    ("hanzo-config", Capability),
    ("hanzo-auth", Capability),
    ("hanzo-permissions", Capability),
    ("hanzo-providers", Capability),
    ("hanzo-tools", Capability),
    ("hanzo-mcp", Capability),
    ("hanzo-a2a", Capability),
    ("hanzo-store", Capability),
    ("hanzo-engine", Engine),
    ("hanzo-tui", Face),
    ("hanzo-server", Face),
    ("hanzo-acp", Face),
    ("hanzo-dev", Root),
    ("hanzo-python", Root),
    ("hanzo-node", Root),
    ("hanzo-repl", Shim),
    ("hanzo-testkit", TestSupport),
    ("hanzo-benches", Tool),
    ("hanzo-docgen", Tool),
    ("xtask", Tool),
];

impl Layer {
    /// What a crate of this layer may depend on.
    fn may_use(self) -> &'static [Layer] {
        match self {
            Protocol | StandAlone => &[],
            TestSupport => &[Protocol],
            Capability => &[Protocol, StandAlone],
            Engine | Face => &[Protocol, StandAlone, Capability],
            Root => &[Protocol, StandAlone, Capability, Engine, Face],
            Shim => &[Root],
            Tool => &[Protocol, StandAlone, Capability, Engine, Face, Root, TestSupport, Tool],
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Shipped: a normal or build dependency.
    Shipped,
    /// Only in tests.
    Dev,
}

struct Arrow<'a> {
    from: &'a str,
    to: &'a str,
    kind: Kind,
}

/// Reads the workspace and fails when an arrow points the wrong way.
pub fn check() -> Result<()> {
    let metadata = workspace::metadata()?;
    let (crates, arrows) = read(&metadata);
    let faults = faults(&crates, &arrows);
    if !faults.is_empty() {
        bail!("the layering is broken:\n  {}", faults.join("\n  "));
    }
    println!("{} crates, {} arrows between them, all pointing down", crates.len(), arrows.len());
    Ok(())
}

fn read(metadata: &Value) -> (Vec<&str>, Vec<Arrow<'_>>) {
    let packages = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let crates: Vec<&str> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
    let mut arrows = Vec::new();
    for package in packages {
        let dependencies = package["dependencies"].as_array().map(Vec::as_slice).unwrap_or_default();
        for dependency in dependencies {
            let (Some(from), Some(to)) = (package["name"].as_str(), dependency["name"].as_str()) else {
                continue;
            };
            if crates.contains(&to) {
                let kind = if dependency["kind"] == "dev" { Kind::Dev } else { Kind::Shipped };
                arrows.push(Arrow { from, to, kind });
            }
        }
    }
    (crates, arrows)
}

fn layer(name: &str) -> Option<Layer> {
    LAYERS.iter().find(|(known, _)| *known == name).map(|(_, layer)| *layer)
}

fn faults(crates: &[&str], arrows: &[Arrow<'_>]) -> Vec<String> {
    let mut faults: Vec<String> = crates
        .iter()
        .filter(|name| layer(name).is_none())
        .map(|name| format!("`{name}` has no layer: add it to LAYERS in xtask/src/layering.rs"))
        .collect();
    for arrow in arrows {
        let (Some(from), Some(to)) = (layer(arrow.from), layer(arrow.to)) else { continue };
        // Tests may use the test support, and a tool's tests anything its code may.
        let allowed = from.may_use().contains(&to) || (arrow.kind == Kind::Dev && to == TestSupport);
        if !allowed {
            faults.push(format!(
                "`{}` ({from:?}) must not depend on `{}` ({to:?}): {}",
                arrow.from,
                arrow.to,
                advice(from, to)
            ));
        }
    }
    faults
}

fn advice(from: Layer, to: Layer) -> &'static str {
    match (from, to) {
        (_, TestSupport) => "test support belongs under [dev-dependencies]",
        (Protocol | StandAlone, _) => {
            "it depends on no other crate of ours; take what it needs as a parameter"
        }
        (Capability, Capability) => {
            "put a small trait into hanzo-protocol and let the composition root pass the implementation"
        }
        (Face, Engine | Face | Root) => {
            "a face holds a `dyn EngineClient` and names neither the engine nor another face"
        }
        _ => "dependencies point down only; see ARCHITECTURE.md",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(from: &str, to: &str, kind: Kind) -> Option<String> {
        faults(&[from, to], &[Arrow { from, to, kind }]).pop()
    }

    #[test]
    fn arrows_that_point_up_or_sideways_are_faults() {
        for (from, to) in [
            ("hanzo-protocol", "hanzo-engine"),
            ("hanzo-protocol", "hanzo-sse"),
            ("hanzo-sse", "hanzo-protocol"),
            ("hanzo-hooks", "hanzo-sandbox"),
            ("hanzo-permissions", "hanzo-config"),
            ("hanzo-tools", "hanzo-store"),
            ("hanzo-engine", "hanzo-tui"),
            ("hanzo-engine", "hanzo-dev"),
            ("hanzo-tui", "hanzo-engine"),
            ("hanzo-tui", "hanzo-server"),
            ("hanzo-acp", "hanzo-dev"),
            ("hanzo-node", "hanzo-dev"),
            ("hanzo-repl", "hanzo-engine"),
            ("hanzo-dev", "xtask"),
        ] {
            let found = fault(from, to, Kind::Shipped).unwrap_or_else(|| panic!("{from} -> {to} passed"));
            assert!(found.contains(from) && found.contains(to), "{found}");
            assert!(fault(from, to, Kind::Dev).is_some(), "a dev-dependency is an arrow too: {from} -> {to}");
        }
    }

    #[test]
    fn arrows_that_point_down_are_not() {
        for (from, to) in [
            ("hanzo-config", "hanzo-protocol"),
            ("hanzo-providers", "hanzo-sse"),
            ("hanzo-engine", "hanzo-permissions"),
            ("hanzo-server", "hanzo-a2a"),
            ("hanzo-dev", "hanzo-engine"),
            ("hanzo-dev", "hanzo-tui"),
            ("hanzo-repl", "hanzo-dev"),
            ("hanzo-docgen", "hanzo-dev"),
        ] {
            assert_eq!(fault(from, to, Kind::Shipped), None);
        }
    }

    #[test]
    fn test_support_is_for_tests_only() {
        assert_eq!(fault("hanzo-sse", "hanzo-testkit", Kind::Dev), None);
        assert!(fault("hanzo-sse", "hanzo-testkit", Kind::Shipped).unwrap().contains("[dev-dependencies]"));
    }

    /// The linter, which `cargo xtask test` runs with warnings as errors, holds library code to it.
    #[test]
    fn no_crate_prints_or_exits_but_programs() {
        let manifest = std::fs::read_to_string(workspace::root().join("Cargo.toml")).unwrap();
        for lint in ["print_stdout", "print_stderr", "exit"] {
            assert!(manifest.contains(&format!("\n{lint} = \"warn\"\n")), "{lint}");
        }
        for directory in std::fs::read_dir(workspace::root().join("crates")).unwrap() {
            let directory = directory.unwrap().path();
            let name = directory.file_name().unwrap().to_string_lossy().into_owned();
            let manifest = std::fs::read_to_string(directory.join("Cargo.toml")).unwrap();
            assert!(manifest.contains("[lints]\nworkspace = true"), "{name} follows no lints");
            let excused = sources(&directory.join("src")).iter().any(|text| {
                ["print_stdout", "print_stderr", "exit"].iter().any(|lint| {
                    text.contains(&format!("expect(clippy::{lint}"))
                        || text.contains(&format!("\n    clippy::{lint}"))
                })
            });
            assert!(!excused || name == "hanzo-dev" || name == "hanzo-testkit", "{name} prints or exits");
        }
    }

    fn sources(directory: &std::path::Path) -> Vec<String> {
        let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        entries
            .flat_map(|path| {
                if path.is_dir() {
                    sources(&path)
                } else {
                    vec![std::fs::read_to_string(&path).unwrap_or_default()]
                }
            })
            .collect()
    }

    #[test]
    fn a_crate_without_a_layer_is_a_fault() {
        assert!(faults(&["hanzo-surprise"], &[])[0].contains("`hanzo-surprise` has no layer"));
    }

    #[test]
    fn metadata_is_read_with_the_kind_of_each_dependency() {
        let metadata = serde_json::json!({"packages": [
            {"name": "hanzo-sse", "dependencies": [
                {"name": "hanzo-testkit", "kind": "dev"}, {"name": "serde", "kind": null},
            ]},
            {"name": "hanzo-testkit", "dependencies": []},
        ]});
        let (crates, arrows) = read(&metadata);
        assert_eq!(crates, ["hanzo-sse", "hanzo-testkit"]);
        assert_eq!(arrows.len(), 1, "what is not ours is not an arrow");
        assert_eq!((arrows[0].to, arrows[0].kind), ("hanzo-testkit", Kind::Dev));
    }
}
