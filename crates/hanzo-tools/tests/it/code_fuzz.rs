//! No text breaks an extractor, whatever language its name says.

use proptest::prelude::*;
use serde_json::json;

use crate::support::Stage;

/// Pieces of code, so that random text gets deep into the grammars.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("fn "),
        Just("class "),
        Just("def "),
        Just("struct "),
        Just("enum "),
        Just("impl "),
        Just("function "),
        Just("name"),
        Just("("),
        Just(")"),
        Just("{"),
        Just("}"),
        Just("["),
        Just("]"),
        Just("<"),
        Just(">"),
        Just("::"),
        Just("."),
        Just(","),
        Just(";"),
        Just(":"),
        Just("="),
        Just("=>"),
        Just("\n"),
        Just("    "),
        Just("\""),
        Just("'"),
        Just("`"),
        Just("//"),
        Just("/*"),
        Just("#"),
        Just("#define "),
        Just("*"),
        Just("&"),
        Just("typedef "),
        Just("operator"),
        Just("ü"),
        Just("\u{0}"),
        Just("package "),
        Just("type "),
        Just("interface "),
        Just("const "),
        Just("let "),
        Just("1"),
        Just("~"),
        Just("namespace "),
        Just("template<"),
    ];
    proptest::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: hanzo_testkit::scale::rounds(2000), ..ProptestConfig::default() })]

    #[test]
    fn no_text_breaks_an_extractor(text in text(), line in 0_u32..5, col in 0_u32..20) {
        let stage = Stage::new();
        for ending in ["rs", "js", "ts", "tsx", "py", "go", "java", "c", "cpp", "rb", "kt", "sql"] {
            let name = format!("a.{ending}");
            stage.write(&name, &text);
            let first = stage.code(json!({"action": "outline", "uri": name}));
            prop_assert_eq!(&first, &{
                let mut again = stage.code(json!({"action": "outline", "uri": name}));
                again["meta"]["trace_id"] = first["meta"]["trace_id"].clone();
                again
            });
            stage.code(json!({"action": "diagnostics", "uri": name}));
            stage.code(json!({"action": "definition", "uri": name, "position": {"line": line, "col": col}}));
        }
        stage.code(json!({"action": "query", "query": text}));
    }
}
