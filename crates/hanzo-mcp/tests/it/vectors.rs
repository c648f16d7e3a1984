//! The parity vectors: every platform gives the same names.

use std::collections::BTreeMap;

use hanzo_mcp::names::{Collision, NameMap, ToolRef, format_mcp_tool_name};
use hanzo_testkit::vectors;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    #[serde(rename = "note")]
    _note: Option<String>,
    tools: Vec<Listed>,
    #[serde(default)]
    added: Vec<Listed>,
    expected: Vec<String>,
    aliases: Vec<String>,
    #[serde(default)]
    collisions: Vec<usize>,
    #[serde(default)]
    resolves: BTreeMap<String, Option<usize>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    server: String,
    tool: String,
}

fn refs(listed: &[Listed]) -> Vec<ToolRef> {
    listed.iter().map(|one| ToolRef::new(&one.server, &one.tool)).collect()
}

fn check(case: &Case, first: &[ToolRef], later: &[ToolRef]) {
    let name = &case.name;
    let mut map = NameMap::new();
    let mut collisions = map.extend(first.iter().cloned());
    collisions.extend(map.extend(later.iter().cloned()));

    let tools: Vec<ToolRef> = refs(&case.tools).into_iter().chain(refs(&case.added)).collect();
    let given: Vec<&str> =
        tools.iter().map(|tool| map.name_of(tool).expect("every tool has a name")).collect();
    assert_eq!(given, case.expected, "{name}");
    let aliases: Vec<String> =
        tools.iter().map(|tool| format_mcp_tool_name(&tool.server, &tool.tool)).collect();
    assert_eq!(aliases, case.aliases, "{name}");
    for (tool, canonical) in tools.iter().zip(&case.expected) {
        assert_eq!(map.resolve(canonical), Some(tool), "{name}: {canonical}");
    }
    for (text, index) in &case.resolves {
        assert_eq!(map.resolve(text), index.map(|index| &tools[index]), "{name}: {text}");
    }

    let renamed: Vec<(&ToolRef, &str)> = collisions.iter().map(|c| (&c.renamed, c.given.as_str())).collect();
    let expected: Vec<(&ToolRef, &str)> =
        case.collisions.iter().map(|&index| (&tools[index], case.expected[index].as_str())).collect();
    assert_eq!(renamed, expected, "{name}");
    for Collision { wanted, holder, .. } in &collisions {
        assert_eq!(map.resolve(wanted), Some(holder), "{name}");
    }
}

#[test]
fn names_are_those_of_the_vectors_in_whatever_order_tools_are_listed() {
    for case in &vectors::cases::<Case>("mcp-normalization.json", 30) {
        let (mut first, mut later) = (refs(&case.tools), refs(&case.added));
        check(case, &first, &later);
        first.reverse();
        later.reverse();
        check(case, &first, &later);
    }
}
