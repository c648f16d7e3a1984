use hanzo_engine::agents::{AgentError, Catalog, DEFAULT_AGENT, Origin, ProjectTrust};
use hanzo_protocol::tool::{Effect, Reach};

use crate::ground::Ground;

const SHIPPED: Catalog<'_> = Catalog { config: None, project: None };

fn may(agent: &hanzo_engine::agents::Manifest, action: &str, effect: Effect) -> bool {
    agent.capabilities.check(&Reach::new(action, effect)).is_ok()
}

#[test]
fn the_shipped_agents_can_do_what_they_are_for_and_no_more() {
    let (agents, notices) = SHIPPED.list();
    assert_eq!(notices, []);
    let names: Vec<&str> = agents.iter().map(|agent| agent.name.as_str()).collect();
    assert_eq!(names, ["coder", "planner", "reviewer", "solver"]);
    let [coder, planner, reviewer, solver] = agents.as_slice() else { panic!("four agents") };
    assert!(may(coder, "fs.apply_patch", Effect::Write) && may(coder, "net.fetch", Effect::Network));
    assert!(may(coder, "mcp__github__create_issue", Effect::Network));
    for reader in [planner, reviewer, solver] {
        assert!(
            may(reader, "fs.read", Effect::Read) && may(reader, "vcs.diff", Effect::Read),
            "{}",
            reader.name
        );
        assert!(!may(reader, "fs.apply_patch", Effect::Write), "{}", reader.name);
        assert!(!may(reader, "net.fetch", Effect::Network), "{}", reader.name);
        assert!(!may(reader, "mcp__x__y", Effect::Read), "{}", reader.name);
        assert!(reader.may_spawn.is_empty() && !reader.system.is_empty(), "{}", reader.name);
    }
    assert!(may(reviewer, "proc.exec", Effect::Execute));
    assert!(!may(planner, "proc.exec", Effect::Execute) && !may(solver, "proc.exec", Effect::Execute));
    assert_eq!(planner.max_steps, Some(12));
    assert_eq!(coder.may_spawn, ["planner", "reviewer", "solver"]);
    assert_eq!(SHIPPED.get(DEFAULT_AGENT).unwrap(), *coder);
}

#[test]
fn the_user_s_manifest_replaces_the_shipped_one() {
    let ground = Ground::new();
    ground.write(
        ground.config().join("agents/solver.toml"),
        "description = 'mine'\nmodel = 'local/big'\nmax_steps = 3\n[capabilities]\ntools = ['fs']",
    );
    let config = ground.config();
    let solver = Catalog { config: Some(&config), project: None }.get("solver").unwrap();
    assert_eq!((solver.origin, solver.description.as_str()), (Origin::User, "mine"));
    assert_eq!((solver.model.as_deref(), solver.max_steps), (Some("local/big"), Some(3)));
    assert!(may(&solver, "fs.write", Effect::Write) && !may(&solver, "vcs.diff", Effect::Read));
}

#[test]
fn a_project_s_manifest_counts_only_when_it_is_trusted() {
    let ground = Ground::new();
    ground.write(".hanzo/agents/tester.toml", "description = 'runs tests'\n[capabilities]\ntools = ['*']");
    ground.write(".hanzo/agents/solver.toml", "description = 'theirs'");
    let workspace = ground.workspace();
    let get = |name, trust| Catalog { config: None, project: Some((&workspace, trust)) }.get(name);
    assert_eq!(get("tester", ProjectTrust::Trusted).unwrap().origin, Origin::Project);
    assert_eq!(get("solver", ProjectTrust::Trusted).unwrap().origin, Origin::Project);
    assert_eq!(get("solver", ProjectTrust::Untrusted).unwrap().origin, Origin::BuiltIn);
    let error = get("tester", ProjectTrust::Untrusted).unwrap_err();
    assert!(matches!(error, AgentError::Untrusted { .. }), "{error}");
}

#[test]
fn a_project_cannot_give_an_agent_more_than_the_user_does() {
    let ground = Ground::new();
    let wide = "description = 'wide'\n[capabilities]\ntools = ['*']";
    ground.write(".hanzo/agents/solver.toml", wide);
    ground.write(".hanzo/agents/fresh.toml", wide);
    ground.write(
        ground.config().join("agents/coder.toml"),
        "description = 'careful'\n[capabilities]\ntools = ['fs', 'vcs']\nwithout = ['vcs.push']",
    );
    let (workspace, config) = (ground.workspace(), ground.config());
    let catalog = Catalog { config: Some(&config), project: Some((&workspace, ProjectTrust::Trusted)) };
    let solver = catalog.get("solver").unwrap();
    assert!(may(&solver, "fs.read", Effect::Read) && !may(&solver, "fs.write", Effect::Write));
    let fresh = catalog.get("fresh").unwrap();
    assert!(may(&fresh, "fs.write", Effect::Write));
    assert!(!may(&fresh, "proc.exec", Effect::Execute) && !may(&fresh, "vcs.push", Effect::Network));
}

#[test]
fn a_manifest_that_cannot_be_used_is_an_error_and_never_a_wider_agent() {
    let ground = Ground::new();
    let config = ground.config();
    let catalog = Catalog { config: Some(&config), project: None };
    let cases = [
        ("description = ", "not valid"),
        ("system = 'x'", "missing field `description`"),
        ("description = ' '", "`description` is empty"),
        ("description = 'x'\ncapability = 1", "unknown field `capability`"),
        ("description = 'x'\nname = 'other'", "its name is `other`"),
        ("description = 'x'\nmay_spawn = ['../x']", "not a name"),
        ("description = 'x'\n[capabilities]\neffects = ['magic']", "unknown variant"),
    ];
    for (text, reason) in cases {
        ground.write(config.join("agents/coder.toml"), text);
        let error = catalog.get("coder").unwrap_err().to_string();
        let reason = if reason == "not valid" { "coder.toml" } else { reason };
        assert!(error.contains(reason) && error.contains("\n\nhint: "), "{text}: {error}");
    }
    let (agents, notices) = catalog.list();
    assert_eq!((agents.len(), notices.len()), (3, 1), "the others still work");
}

#[test]
fn a_name_that_is_no_name_reaches_no_file() {
    let ground = Ground::new();
    ground.write(ground.home().join("evil.toml"), "description = 'x'\n[capabilities]\ntools = ['*']");
    let config = ground.config();
    let catalog = Catalog { config: Some(&config), project: None };
    for name in ["../../evil", "../evil", "", "a/b", "nobody", &"x".repeat(100)] {
        let error = catalog.get(name).unwrap_err();
        assert!(matches!(error, AgentError::Unknown { .. }), "{name}: {error}");
        assert!(error.to_string().contains("coder, planner, reviewer, solver"), "{error}");
    }
}
