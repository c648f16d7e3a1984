//! What the names promise, beyond the vectors.

use std::collections::{HashMap, HashSet};

use hanzo_mcp::names::{MAX_NAME_LENGTH, NameMap, ToolRef, format_mcp_tool_name, is_mcp_tool, natural_name};
use proptest::prelude::*;

fn map_of(tools: &[(&str, &str)]) -> NameMap {
    let mut map = NameMap::new();
    map.extend(tools.iter().map(|(server, tool)| ToolRef::new(*server, *tool)));
    map
}

fn is_valid(name: &str) -> bool {
    (1..=MAX_NAME_LENGTH).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

#[test]
fn the_documents_examples() {
    assert_eq!(natural_name("github", "create_issue"), "mcp__github__create_issue");
    assert_eq!(natural_name("My Server", "read file"), "mcp__My_Server__read_file");
    assert_eq!(format_mcp_tool_name("github", "create_issue"), "mcp_github_create_issue");
    assert_eq!(format_mcp_tool_name("my-server", "do_thing"), "mcp_my_server_do_thing");
}

#[test]
fn a_long_name_ends_in_the_documented_hash() {
    // printf 'server\0%070d' 0 | sha256sum
    let name = natural_name("server", &"0".repeat(70));
    assert_eq!(name, format!("mcp__server__{}_eb0d7c80", "0".repeat(42)));
}

#[test]
fn the_helpers_of_seed_002() {
    assert!(is_mcp_tool("mcp_github_create_issue") && is_mcp_tool("mcp__github__create_issue"));
    assert!(!is_mcp_tool("fs") && !is_mcp_tool("MCP_x_y") && !is_mcp_tool("mcp") && !is_mcp_tool(""));

    let map = map_of(&[("my-server", "do_thing"), ("a__b", "c")]);
    assert_eq!(map.extract_mcp_server("mcp_my_server_do_thing"), Some("my-server"));
    assert_eq!(map.extract_mcp_server("mcp__my-server__do_thing"), Some("my-server"));
    assert_eq!(map.extract_mcp_server("mcp__a__b__c"), Some("a__b"), "parsing would say `a`");
    assert_eq!(map.extract_mcp_server("mcp__nobody__knows"), None);
}

#[test]
fn a_server_cannot_take_the_calls_of_another() {
    let mut map = NameMap::new();
    assert!(map.extend([ToolRef::new("a__b", "c")]).is_empty());
    let collisions = map.extend([ToolRef::new("a", "b__c"), ToolRef::new("a", "b__c_2")]);
    assert_eq!(map.resolve("mcp__a__b__c"), Some(&ToolRef::new("a__b", "c")), "first come, never replaced");
    assert_eq!(collisions.len(), 1);
    let collision = &collisions[0];
    assert!(collision.is_between_servers());
    assert_eq!((collision.wanted.as_str(), collision.given.as_str()), ("mcp__a__b__c", "mcp__a__b__c_3"));
    assert_eq!(
        (&collision.holder, &collision.renamed),
        (&ToolRef::new("a__b", "c"), &ToolRef::new("a", "b__c"))
    );
    assert_eq!(map.resolve("mcp__a__b__c_2"), Some(&ToolRef::new("a", "b__c_2")));
}

#[test]
fn names_are_listed_in_the_order_in_which_they_were_given() {
    let mut map = map_of(&[("s", "b"), ("s", "a")]);
    map.extend([ToolRef::new("a", "a"), ToolRef::new("s", "b")]);
    let listed: Vec<&str> = map.iter().map(|(name, _)| name).collect();
    assert_eq!(listed, ["mcp__s__a", "mcp__s__b", "mcp__a__a"], "what a model has seen stays in front");
    assert_eq!(map.len(), 3);
    assert!(!map.is_empty() && NameMap::new().is_empty());
}

#[test]
fn fifty_thousand_tools_that_come_out_alike_get_names_of_their_own() {
    let tools = (0x4e00..0x4e00 + 50_000_u32 / 3).filter_map(char::from_u32);
    let tools = tools.flat_map(|c| ["!", "?", "."].map(|end| ToolRef::new("s", format!("{c}{end}"))));
    let mut map = NameMap::new();
    let collisions = map.extend(tools);
    assert_eq!(collisions.len() + 1, map.len());
    assert_eq!(collisions.last().unwrap().given, format!("mcp__s_____{}", map.len()));
}

/// Names from a small alphabet, so that they collide often, and from all of Unicode.
fn any_name() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[aA_. -]{0,4}",
        1 => "\\PC{0,12}",
        1 => "(claude\\.ai )?[a_ .]{0,80}",
        1 => any::<String>(),
    ]
}

fn any_tools() -> impl Strategy<Value = Vec<ToolRef>> {
    let tool = (any_name(), any_name()).prop_map(|(server, tool)| ToolRef::new(server, tool));
    prop::collection::vec(tool, 0..40)
}

proptest! {
    #[test]
    fn every_name_is_one_that_vendors_accept(server in any_name(), tool in any_name()) {
        let name = natural_name(&server, &tool);
        prop_assert!(is_valid(&name), "{name}");
        prop_assert!(name.starts_with("mcp__"));
        prop_assert!(is_mcp_tool(&format_mcp_tool_name(&server, &tool)));
    }

    #[test]
    fn every_tool_has_one_name_and_every_name_one_tool(tools in any_tools()) {
        let mut map = NameMap::new();
        map.extend(tools.iter().cloned());
        let distinct: HashSet<&ToolRef> = tools.iter().collect();
        prop_assert_eq!(map.len(), distinct.len());
        for tool in distinct {
            let name = map.name_of(tool).unwrap();
            prop_assert!(is_valid(name), "{}", name);
            prop_assert_eq!(map.resolve(name), Some(tool));
        }
    }

    #[test]
    fn the_order_of_a_list_changes_nothing(tools in any_tools(), turn in 0_usize..40) {
        let mut map = NameMap::new();
        let collisions = map.extend(tools.iter().cloned());
        let mut turned = tools.clone();
        turned.rotate_left(turn.min(tools.len()));
        turned.reverse();
        let mut other = NameMap::new();
        prop_assert_eq!(collisions, other.extend(turned));
        prop_assert_eq!(map.iter().collect::<Vec<_>>(), other.iter().collect::<Vec<_>>());
    }

    #[test]
    fn what_has_been_advertised_is_never_renamed(first in any_tools(), later in any_tools()) {
        let mut map = NameMap::new();
        map.extend(first);
        let before: Vec<(String, ToolRef)> = map.iter().map(|(name, tool)| (name.to_owned(), tool.clone())).collect();
        map.extend(later);
        let after: Vec<(String, ToolRef)> = map.iter().map(|(name, tool)| (name.to_owned(), tool.clone())).collect();
        prop_assert_eq!(&after[..before.len()], &before[..]);
    }

    #[test]
    fn an_alias_means_the_only_tool_that_has_it_or_nothing(tools in any_tools()) {
        let mut map = NameMap::new();
        map.extend(tools.iter().cloned());
        let mut owners: HashMap<String, HashSet<&ToolRef>> = HashMap::new();
        for tool in &tools {
            owners.entry(format_mcp_tool_name(&tool.server, &tool.tool)).or_default().insert(tool);
        }
        for (alias, owners) in owners {
            let canonical = map.iter().find(|(name, _)| *name == alias).map(|(_, tool)| tool);
            let only = if owners.len() == 1 { owners.into_iter().next() } else { None };
            let expected = canonical.or(only.filter(|_| !alias.starts_with("mcp__")));
            prop_assert_eq!(map.resolve(&alias), expected, "{}", alias);
        }
    }
}
