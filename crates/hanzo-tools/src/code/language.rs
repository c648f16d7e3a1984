//! Which language a file is in, by its name or its first line.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! languages {
    ($($(#[doc = $doc:literal])+ $name:ident = $wire:literal, [$($ending:literal),*]),+ $(,)?) => {
        /// A language the `code` tool knows.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[repr(u8)]
        pub enum Language {
            $($(#[doc = $doc])+ #[serde(rename = $wire)] $name,)+
        }

        impl Language {
            /// Every language.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// The name callers use.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $wire,)+
                }
            }

            /// The endings of its files' names, without the dot.
            pub fn endings(self) -> &'static [&'static str] {
                match self {
                    $(Self::$name => &[$($ending),*],)+
                }
            }
        }
    };
}

languages! {
    /// Rust.
    Rust = "rust", ["rs"],
    /// JavaScript, with JSX.
    JavaScript = "javascript", ["js", "jsx", "mjs", "cjs"],
    /// TypeScript.
    TypeScript = "typescript", ["ts", "mts", "cts"],
    /// TypeScript with JSX.
    Tsx = "tsx", ["tsx"],
    /// Python.
    Python = "python", ["py", "pyi", "pyw"],
    /// Go.
    Go = "go", ["go"],
    /// Java.
    Java = "java", ["java"],
    /// C.
    C = "c", ["c", "h"],
    /// C++.
    Cpp = "cpp", ["cc", "cpp", "cxx", "c++", "hh", "hpp", "hxx", "h++", "ipp", "inl", "cu", "cuh", "ino"],
    /// C#.
    CSharp = "csharp", ["cs"],
    /// Dart.
    Dart = "dart", ["dart"],
    /// Elixir.
    Elixir = "elixir", ["ex", "exs"],
    /// Haskell.
    Haskell = "haskell", ["hs"],
    /// Kotlin.
    Kotlin = "kotlin", ["kt", "kts"],
    /// Lua.
    Lua = "lua", ["lua"],
    /// Make.
    Make = "make", ["mk", "mak"],
    /// Markdown: its headings.
    Markdown = "markdown", ["md", "markdown"],
    /// Objective-C.
    ObjectiveC = "objective-c", ["m", "mm"],
    /// Perl.
    Perl = "perl", ["pl", "pm"],
    /// PHP.
    Php = "php", ["php"],
    /// Protocol Buffers.
    Protobuf = "protobuf", ["proto"],
    /// Ruby.
    Ruby = "ruby", ["rb", "rake", "gemspec"],
    /// Scala.
    Scala = "scala", ["scala", "sc"],
    /// Shell.
    Shell = "shell", ["sh", "bash", "zsh", "ksh"],
    /// SQL.
    Sql = "sql", ["sql"],
    /// Swift.
    Swift = "swift", ["swift"],
    /// Zig.
    Zig = "zig", ["zig"],
}

/// Languages that call into one another under the same names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// C and C++ and Objective-C.
    C,
    /// JavaScript and TypeScript.
    Script,
    /// One on its own.
    Alone(Language),
}

impl Language {
    /// The language of a file called `path`; `None` when its name does not say.
    pub fn of_path(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        if let Some((_, ending)) = name.rsplit_once('.')
            && ending.len() <= 8
        {
            // `.C` and `.H` are C++ by an old custom; all other endings are the same in either case.
            match ending {
                "C" | "H" => return Some(Self::Cpp),
                _ => {}
            }
            let lower = ending.to_ascii_lowercase();
            if let Some(found) =
                Self::ALL.iter().find(|language| language.endings().contains(&lower.as_str()))
            {
                return Some(*found);
            }
        }
        match name {
            "Makefile" | "makefile" | "GNUmakefile" => Some(Self::Make),
            "Rakefile" | "Gemfile" | "Vagrantfile" => Some(Self::Ruby),
            "SConstruct" | "SConscript" => Some(Self::Python),
            ".bashrc" | ".profile" | ".zshrc" | "PKGBUILD" => Some(Self::Shell),
            _ => None,
        }
    }

    /// The language a script's first line names.
    pub fn of_first_line(text: &[u8]) -> Option<Self> {
        let line = text.strip_prefix(b"#!")?;
        let line = &line[..line.iter().position(|byte| *byte == b'\n').unwrap_or(line.len()).min(200)];
        let line = std::str::from_utf8(line).ok()?;
        let mut words = line.split_whitespace();
        let program = words.next()?.rsplit('/').next()?;
        let program = if program == "env" { words.find(|word| !word.starts_with('-'))? } else { program };
        let bare = program.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
        match bare {
            "python" | "pypy" => Some(Self::Python),
            "sh" | "bash" | "dash" | "zsh" | "ksh" => Some(Self::Shell),
            "node" | "nodejs" | "deno" | "bun" => Some(Self::JavaScript),
            "ruby" => Some(Self::Ruby),
            "perl" => Some(Self::Perl),
            "php" => Some(Self::Php),
            "lua" | "luajit" => Some(Self::Lua),
            _ => None,
        }
    }

    /// The language called `name`, by its own name, an ending of its files or a usual other name.
    pub fn named(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        let other = match name.as_str() {
            "c++" => Some(Self::Cpp),
            "c#" => Some(Self::CSharp),
            "bash" => Some(Self::Shell),
            "golang" => Some(Self::Go),
            "objc" => Some(Self::ObjectiveC),
            _ => None,
        };
        other.or_else(|| Self::ALL.iter().copied().find(|language| language.name() == name)).or_else(|| {
            Self::ALL.iter().copied().find(|language| language.endings().contains(&name.as_str()))
        })
    }

    /// The languages its names reach into.
    pub fn family(self) -> Family {
        match self {
            Self::C | Self::Cpp | Self::ObjectiveC => Family::C,
            Self::JavaScript | Self::TypeScript | Self::Tsx => Family::Script,
            other => Family::Alone(other),
        }
    }

    pub(crate) fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_or_a_first_line_says_the_language() {
        for (name, language) in [
            ("a/b.rs", Some(Language::Rust)),
            ("x.TSX", Some(Language::Tsx)),
            ("x.C", Some(Language::Cpp)),
            ("x.c", Some(Language::C)),
            ("Makefile", Some(Language::Make)),
            ("a.tar.gz", None),
            ("rs", None),
            (".rs", Some(Language::Rust)),
        ] {
            assert_eq!(Language::of_path(Path::new(name)), language, "{name}");
        }
        assert_eq!(Language::of_first_line(b"#!/usr/bin/env -S python3.11 -u\n"), Some(Language::Python));
        assert_eq!(Language::of_first_line(b"#!/bin/sh"), Some(Language::Shell));
        assert_eq!(Language::of_first_line(b"#!\n"), None);
        assert_eq!(Language::of_first_line(b"plain"), None);
    }

    #[test]
    fn every_language_is_found_by_its_name_and_number() {
        for language in Language::ALL {
            assert_eq!(Language::named(language.name()), Some(*language));
            assert_eq!(Language::from_number(*language as u8), Some(*language));
        }
        assert_eq!(Language::from_number(200), None);
    }
}
