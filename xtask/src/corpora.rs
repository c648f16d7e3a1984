//! Real source trees in the eight languages `code` parses, for its benchmark and for the comparison with ctags. They are npm
//! packages of fixed versions, which hold sources in most of these languages, and the libraries that come with Python and Go.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::workspace::{output, root, run, target};

/// A tree: its name, the packages, the part of them that is taken, and the endings of its files.
const PACKAGES: &[(&str, &[&str], &str, &[&str])] = &[
    ("c", &["better-sqlite3@11.7.0"], "package/deps/sqlite3", &["c", "h"]),
    ("cpp", &["react-native@0.76.5"], "package/ReactCommon", &["cpp", "h"]),
    ("java", &["react-native@0.76.5"], "package/ReactAndroid", &["java"]),
    ("javascript", &["three@0.170.0", "lodash@4.17.21", "express@4.21.0"], "package", &["js"]),
    ("typescript", &["zod@4.1.12", "rxjs@7.8.2"], "package/src", &["ts"]),
];

/// The trees, as a list separated by colons. What cannot be had here is said and left out.
pub fn trees() -> String {
    let mut trees = vec![root().join("crates")];
    for (name, packages, part, endings) in PACKAGES {
        let tree = target().join("corpora").join(name);
        for package in *packages {
            let place = tree.join(package.split('@').next().unwrap_or(package));
            if !place.exists()
                && let Err(error) = fetch(package, part, endings, &place)
            {
                println!("NOT RUN: {package} cannot be had: {error:#}");
            }
        }
        if tree.is_dir() {
            trees.push(tree);
        }
    }
    let python = ["-c", "import sysconfig; print(sysconfig.get_path('stdlib'))"];
    let python = output(Command::new("python3").args(python)).map(|path| PathBuf::from(path.trim()));
    let go =
        output(Command::new("go").args(["env", "GOROOT"])).map(|path| Path::new(path.trim()).join("src/net"));
    for (name, tree) in [("Python", python), ("Go", go)] {
        match tree {
            Ok(tree) if tree.is_dir() => trees.push(tree),
            _ => println!("NOT RUN: the library of {name} is not installed"),
        }
    }
    let trees: Vec<&str> = trees.iter().filter_map(|tree| tree.to_str()).collect();
    trees.join(":")
}

/// Puts the files of a package that have one of the endings into `place`.
fn fetch(package: &str, part: &str, endings: &[&str], place: &Path) -> Result<()> {
    let work = target().join("corpora/packages");
    std::fs::create_dir_all(&work)?;
    let archive = output(Command::new("npm").current_dir(&work).args(["pack", "--silent", package]))?;
    let archive = archive.lines().last().context("npm named no archive")?.trim();
    let unpacked = work.join("unpacked");
    if unpacked.exists() {
        std::fs::remove_dir_all(&unpacked)?;
    }
    std::fs::create_dir_all(&unpacked)?;
    run(Command::new("tar").current_dir(&work).arg("-xzf").arg(archive).arg("-C").arg(&unpacked))?;
    keep(&unpacked, endings)?;
    let parent = place.parent().context("a tree has a directory")?;
    std::fs::create_dir_all(parent)?;
    std::fs::rename(unpacked.join(part), place)?;
    Ok(())
}

/// Removes all files that have none of the endings, or that a program wrote.
fn keep(directory: &Path, endings: &[&str]) -> Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            // Bundles and what was built are not what anybody edits.
            if matches!(name.as_str(), "build" | "libs" | "dist") {
                std::fs::remove_dir_all(&path)?;
            } else {
                keep(&path, endings)?;
            }
        } else {
            let is_kept = name.rsplit_once('.').is_some_and(|(_, ending)| endings.contains(&ending));
            if !is_kept || name.contains(".min.") || name.ends_with(".d.ts") {
                std::fs::remove_file(&path)?;
            }
        }
    }
    Ok(())
}
