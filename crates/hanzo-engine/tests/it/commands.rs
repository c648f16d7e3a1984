use std::sync::Arc;

use hanzo_engine::agents::ProjectTrust;
use hanzo_engine::commands::{
    Action, CommandError, CommandKind, CommandSource, Custom, Descriptor, Directories, Dispatch, Origin,
    Registry, load, parse, render,
};
use hanzo_engine::fragment::Notice;
use hanzo_protocol::BoxFuture;
use proptest::prelude::*;

use crate::ground::Ground;

fn loaded(ground: &Ground, trust: ProjectTrust) -> (Vec<Custom>, Vec<Notice>) {
    let (config, workspace) = (ground.config(), ground.workspace());
    load(&Directories { config: Some(&config), project: Some((&workspace, trust)) })
}

fn names(custom: &[Custom]) -> Vec<&str> {
    custom.iter().map(|custom| custom.descriptor.name.as_str()).collect()
}

async fn run(registry: &Registry, input: &str) -> Result<Dispatch, CommandError> {
    registry.dispatch(parse(input).unwrap()).await
}

#[test]
fn input_is_a_command_when_it_looks_like_one() {
    let parsed = |input| parse(input).map(|found| (found.name, found.arguments));
    assert_eq!(parsed("/compact"), Some(("compact", "")));
    assert_eq!(parsed("  /git:commit  fix it \n now "), Some(("git:commit", "fix it \n now")));
    assert_eq!(parsed("/mcp__srv__prompt a"), Some(("mcp__srv__prompt", "a")));
    for text in
        ["", "/", "/ help", "//x", "/usr/bin/env fails", "help", "/1", "look at /help", "/a\u{0}b", "/…"]
    {
        assert_eq!(parsed(text), None, "{text:?}");
    }
}

#[test]
fn substitution_follows_the_document() {
    let cases = [
        ("all: $ARGUMENTS.", "a  b\tc", "all: a b c."),
        ("$1-$2-$3", "x y", "x-y-"),
        ("$10 $1", "a b c d e f g h i j", "j a"),
        ("costs $$5 for $1", "me", "costs $5 for me"),
        ("$$ARGUMENTS $$1", "", "$ARGUMENTS $1"),
        ("$0 $x $ARGUMENTSX ${1} $", "", "$0 $x $ARGUMENTSX ${1} $"),
        ("$1", "$2 $ARGUMENTS", "$2"),
        ("$ARGUMENTS", "$1 $$", "$1 $$"),
        ("no place", "", "no place"),
        ("no place", "for this", "no place\n\nfor this"),
        ("$99999999999999999999999", "a", ""),
    ];
    for (body, arguments, expected) in cases {
        assert_eq!(render(body, arguments), expected, "{body} with {arguments}");
    }
}

#[test]
fn files_become_commands_and_directories_namespaces() {
    let ground = Ground::new();
    ground.write(
        ".hanzo/commands/git/commit.md",
        "---\ndescription: \"Write a commit\"\nargument-hint: [scope]\nallowed-tools:\n  - Bash\n# note\n---\nCommit $1",
    );
    ground.write(".hanzo/commands/review.md", "\u{feff}# Review the diff\r\nwith care");
    ground.write(".hanzo/commands/notes.txt", "not a command");
    ground.write(".hanzo/commands/.hidden.md", "not a command");
    let (custom, notices) = loaded(&ground, ProjectTrust::Trusted);
    assert_eq!(names(&custom), ["git:commit", "review"]);
    assert_eq!(notices, []);
    let commit = &custom[0];
    assert_eq!(commit.descriptor.description, "Write a commit");
    assert_eq!(commit.descriptor.argument_hint.as_deref(), Some("[scope]"));
    assert_eq!((commit.body.as_str(), commit.descriptor.kind), ("Commit $1", CommandKind::Turn));
    assert_eq!(custom[1].descriptor.description, "Review the diff");
}

#[test]
fn the_project_s_command_wins_over_the_user_s_and_ours_over_others() {
    let ground = Ground::new();
    let config = ground.config();
    ground.write(config.join("commands/a.md"), "user a");
    ground.write(config.join("commands/b.md"), "user b");
    ground.write(".claude/commands/b.md", "claude b");
    ground.write(".claude/commands/c.md", "claude c");
    ground.write(".hanzo/commands/c.md", "hanzo c");
    let (custom, _) = loaded(&ground, ProjectTrust::Trusted);
    let bodies: Vec<&str> = custom.iter().map(|custom| custom.body.as_str()).collect();
    assert_eq!(bodies, ["user a", "claude b", "hanzo c"]);
    assert_eq!(custom[0].descriptor.origin, Origin::User);
}

#[test]
fn a_file_that_makes_no_sense_is_left_out_and_said() {
    let ground = Ground::new();
    ground.write(ground.outside().join("private.md"), "a secret");
    for (name, text) in [
        ("open", "---\ndescription: x\nno end"),
        ("odd", "---\nthis is not a field\n---\nbody"),
        ("empty", "---\ndescription: x\n---\n \n"),
        ("help", "takes the place of a built-in"),
        ("two words", "cannot be typed"),
        ("1st", "cannot be typed"),
        ("large", &"x".repeat(70_000)),
    ] {
        ground.write(format!(".hanzo/commands/{name}.md"), text);
    }
    ground.write(".hanzo/commands/binary.md", b"\xff\xfe\x00");
    ground.link(".hanzo/commands/stolen.md", ground.outside().join("private.md"));
    ground.write(".hanzo/commands/good.md", "fine");
    let (custom, notices) = loaded(&ground, ProjectTrust::Trusted);
    assert_eq!(names(&custom), ["good"]);
    assert_eq!(notices.len(), 9, "{notices:#?}");
    assert!(notices.iter().all(|notice| notice.text.contains(".md` is left out: ")), "{notices:#?}");
}

#[test]
fn commands_of_an_untrusted_workspace_load_and_say_what_they_are() {
    let ground = Ground::new();
    ground.write(".hanzo/commands/deploy.md", "Deploy it");
    let (custom, notices) = loaded(&ground, ProjectTrust::Untrusted);
    assert_eq!(custom[0].descriptor.origin, Origin::UntrustedProject);
    assert!(notices[0].text.contains("not trusted") && notices[0].text.contains("only text"), "{notices:?}");
    assert!(Registry::with_custom(custom).help().contains("not trusted: only text to the model"));
}

#[tokio::test]
async fn built_in_commands_act_and_never_reach_the_model() {
    let registry = Registry::built_in();
    for &action in Action::ALL.iter().filter(|action| action.kind() != CommandKind::Turn) {
        let input = format!("/{} some words", action.name());
        let acted = Dispatch::Act { action, arguments: "some words".into() };
        assert_eq!(run(&registry, &input).await, Ok(acted));
    }
    let local = [
        "compact",
        "new",
        "clear",
        "effort",
        "mcp",
        "help",
        "model",
        "mode",
        "permissions",
        "memory",
        "resume",
        "fork",
        "rewind",
        "export",
        "copy",
        "context",
        "cost",
        "doctor",
        "theme",
        "branch",
        "commit",
        "commit-push-pr",
        "worktree",
        "diff",
        "stash",
    ];
    for name in local {
        let found = Action::ALL.iter().find(|action| action.name() == name).unwrap();
        assert_ne!(found.kind(), CommandKind::Turn, "{name}");
    }
}

#[tokio::test]
async fn a_custom_command_and_init_become_a_turn() {
    let ground = Ground::new();
    ground.write(".hanzo/commands/review.md", "Review $1 and $2, all of $ARGUMENTS");
    let registry = Registry::with_custom(loaded(&ground, ProjectTrust::Trusted).0);
    let text = "Review a and b, all of a b".to_owned();
    assert_eq!(run(&registry, "/review a b").await, Ok(Dispatch::Turn { text, origin: Origin::Project }));
    let Ok(Dispatch::Turn { text, .. }) = run(&registry, "/init for the tests").await else {
        panic!("a turn")
    };
    assert!(text.contains("AGENTS.md") && text.ends_with("for the tests"), "{text}");
}

#[tokio::test]
async fn an_unknown_command_is_named_with_what_may_have_been_meant() {
    let error = run(&Registry::built_in(), "/compcat").await.unwrap_err().to_string();
    assert_eq!(error, "there is no command `/compcat`\n\nhint: did you mean `/compact`?");
    let error = run(&Registry::built_in(), "/zzzzzz").await.unwrap_err().to_string();
    assert!(error.ends_with("hint: `/help` lists the commands"), "{error}");
}

/// Prompts of a server.
struct Prompts;

impl CommandSource for Prompts {
    fn name(&self) -> &'static str {
        "mcp"
    }

    fn commands(&self) -> Vec<Descriptor> {
        let command = |name: &str| Descriptor {
            name: name.into(),
            description: "a prompt\u{1b}[31m".into(),
            argument_hint: None,
            kind: CommandKind::Engine,
            origin: Origin::BuiltIn,
        };
        ["mcp__srv__ask", "mcp__srv__fail", "help", "not a name"].map(command).to_vec()
    }

    fn render<'a>(&'a self, name: &'a str, arguments: &'a str) -> BoxFuture<'a, Result<String, String>> {
        Box::pin(async move {
            if name.ends_with("fail") {
                Err("the server is gone".into())
            } else {
                Ok(format!("ask {arguments}"))
            }
        })
    }
}

#[tokio::test]
async fn a_source_s_commands_join_and_cannot_pose_as_others() {
    let mut registry = Registry::built_in();
    registry.register_source(Arc::new(Prompts));
    let list = registry.list();
    let joined: Vec<&Descriptor> =
        list.iter().filter(|descriptor| descriptor.origin == Origin::Source("mcp".into())).collect();
    assert_eq!(joined.len(), 2, "{joined:?}");
    assert!(joined.iter().all(|descriptor| descriptor.kind == CommandKind::Turn));
    assert!(!registry.help().contains('\u{1b}'));
    assert!(matches!(run(&registry, "/help").await, Ok(Dispatch::Act { action: Action::Help, .. })));
    let origin = Origin::Source("mcp".into());
    let asked = Dispatch::Turn { text: "ask why".into(), origin };
    assert_eq!(run(&registry, "/mcp__srv__ask why").await, Ok(asked));
    let error = run(&registry, "/mcp__srv__fail").await.unwrap_err().to_string();
    assert_eq!(error, "cannot run `/mcp__srv__fail`: the server is gone");
}

#[test]
fn help_is_generated_from_the_registry() {
    let help = Registry::built_in().help();
    for action in Action::ALL {
        assert!(help.contains(&format!("`/{}", action.name())), "{help}");
    }
    assert_eq!(help, include_str!("golden/help.md"), "look at the change, then write it to golden/help.md");
}

proptest! {
    #[test]
    fn no_input_and_no_template_panics(input in any::<String>(), body in any::<String>()) {
        if let Some(found) = parse(&input) {
            prop_assert!(input.contains(found.name) && input.contains(found.arguments));
        }
        let _ = render(&body, &input);
    }

    #[test]
    fn text_without_a_dollar_is_kept(body in "[^$]{0,200}", arguments in "[a-z ]{0,20}") {
        let rendered = render(&body, &arguments);
        prop_assert!(rendered.starts_with(body.trim()));
        prop_assert!(rendered.ends_with(arguments.trim()));
    }

    #[test]
    fn any_front_matter_loads_or_is_left_out(text in "(---\n)?([a-z: \n\"-]{0,40})(---\n)?.{0,40}") {
        let ground = Ground::new();
        ground.write(".hanzo/commands/x.md", &text);
        let (custom, notices) = loaded(&ground, ProjectTrust::Trusted);
        prop_assert_eq!(custom.len() + notices.len(), 1);
    }
}
