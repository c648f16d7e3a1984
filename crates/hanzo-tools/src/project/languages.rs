//! Languages, by the ends of file names.

/// The language of a file called `name`, where its end tells.
pub(super) fn of(name: &str) -> Option<&'static str> {
    let (stem, extension) = name.rsplit_once('.')?;
    if stem.is_empty() {
        return None;
    }
    Some(match extension {
        "rs" => "Rust",
        "py" | "pyi" => "Python",
        "js" | "mjs" | "cjs" | "jsx" => "JavaScript",
        "ts" | "mts" | "cts" | "tsx" => "TypeScript",
        "go" => "Go",
        "java" => "Java",
        "kt" | "kts" => "Kotlin",
        "scala" => "Scala",
        "c" | "h" => "C",
        "cc" | "cpp" | "cxx" | "hh" | "hpp" | "hxx" => "C++",
        "cs" => "C#",
        "fs" | "fsx" => "F#",
        "swift" => "Swift",
        "m" | "mm" => "Objective-C",
        "rb" => "Ruby",
        "php" => "PHP",
        "pl" | "pm" => "Perl",
        "lua" => "Lua",
        "r" | "R" => "R",
        "jl" => "Julia",
        "ex" | "exs" => "Elixir",
        "erl" | "hrl" => "Erlang",
        "hs" => "Haskell",
        "ml" | "mli" => "OCaml",
        "clj" | "cljs" => "Clojure",
        "dart" => "Dart",
        "zig" => "Zig",
        "nim" => "Nim",
        "sh" | "bash" | "zsh" => "Shell",
        "sql" => "SQL",
        "vue" => "Vue",
        "svelte" => "Svelte",
        "sol" => "Solidity",
        "proto" => "Protocol Buffers",
        "tf" => "Terraform",
        "html" | "htm" => "HTML",
        "css" | "scss" | "less" => "CSS",
        _ => return None,
    })
}
