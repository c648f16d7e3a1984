//! Commands of the terminal face in a real terminal: git, MCP servers, instruction files, the doctor, the search.

use std::path::Path;
use std::process::Command;

use hanzo_testkit::scripted::{Reply, Server};

use crate::face::{Tmux, world};
use crate::support::World;

fn git(directory: &Path, arguments: &[&str]) -> String {
    let ran = Command::new("git").arg("-C").arg(directory).args(arguments).output().unwrap();
    assert!(ran.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8_lossy(&ran.stdout).into_owned()
}

/// Makes the workspace a repository with a commit in it.
fn repository(world: &World) {
    let here = world.workspace();
    std::fs::remove_dir_all(here.join(".git")).unwrap();
    git(&here, &["init", "--quiet", "--initial-branch", "main"]);
    git(&here, &["config", "user.name", "Test"]);
    git(&here, &["config", "user.email", "test@example.org"]);
    world.write("project/greeting.txt", "hello\n");
    git(&here, &["add", "."]);
    git(&here, &["commit", "--quiet", "-m", "chore: begin"]);
}

/// A program of the user's, first in the search path.
fn program(world: &World, name: &str, script: &str) -> String {
    use std::os::unix::fs::PermissionsExt as _;
    world.write(&format!("bin/{name}"), format!("#!/bin/sh\n{script}\n"));
    let file = world.home().join("bin").join(name);
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
    format!("PATH='{}/bin:{}'", world.home().display(), std::env::var("PATH").unwrap())
}

#[test]
fn git_commands_act_on_a_real_repository_without_asking() {
    let server = Server::start([
        Reply::text("feat(greeting): greet the world"),
        Reply::text("I see the diff."),
        Reply::text("fix(greeting): be brief"),
    ]);
    let world = world(&server);
    repository(&world);
    let here = world.workspace();
    let path =
        program(&world, "gh", "echo \"$@\" > \"$HOME/gh-was-called\"; echo https://example.org/pull/1");
    git(world.home(), &["init", "--quiet", "--bare", "remote.git"]);
    git(&here, &["remote", "add", "origin", &world.home().join("remote.git").display().to_string()]);
    let Some(tmux) = Tmux::start_with(&world, (100, 40), &path, "", "what shall be done?") else { return };

    tmux.type_line("/branch greet");
    tmux.wait_for("Switched to a new branch 'greet'");
    tmux.wait_for("· greet");
    assert_eq!(git(&here, &["branch", "--show-current"]).trim(), "greet");

    // The model writes the message, the user accepts it.
    world.write("project/greeting.txt", "hello, world\n").write("project/untracked.txt", "mine\n");
    tmux.type_line("/commit");
    tmux.wait_for_dialog("Commit?");
    tmux.wait_for("feat(greeting): greet the world");
    tmux.key("Enter");
    tmux.wait_for_line("[greet ");
    assert_eq!(git(&here, &["log", "-1", "--format=%s"]).trim(), "feat(greeting): greet the world");
    assert_eq!(git(&here, &["status", "--short"]).trim(), "?? untracked.txt", "only tracked files");
    let asked = server.requests()[0].json().to_string();
    assert!(asked.contains("+hello, world") && asked.contains("conventional"), "{asked}");

    // What is staged and what is not is shown, and sent with the next message.
    world.write("project/greeting.txt", "hi\n");
    tmux.wait_for_rest();
    tmux.type_line("/diff");
    tmux.wait_for_line("hello, world");
    tmux.wait_for_rest();
    tmux.type_line("what do you think?");
    tmux.wait_for("I see the diff.");
    assert!(server.requests()[1].json().to_string().contains("+hi"));

    tmux.wait_for_rest();
    tmux.type_line("/stash");
    tmux.wait_for_line("Saved working directory");
    assert!(git(&here, &["stash", "list"]).contains("hanzo: 20"), "{}", git(&here, &["stash", "list"]));
    git(&here, &["stash", "pop"]);

    tmux.wait_for_rest();
    tmux.type_line("/worktree try");
    tmux.wait_until("the worktree", |_| world.home().join("project-try/greeting.txt").exists());
    let beside = world.home().join("project-try");
    assert_eq!(git(&beside, &["branch", "--show-current"]).trim(), "try");

    tmux.type_line("/commit-push-pr");
    tmux.wait_for_dialog("Commit?");
    tmux.wait_for("then push and open a pull request");
    tmux.key("Enter");
    tmux.wait_for_line("https://example.org/pull/1");
    let remote = world.home().join("remote.git");
    assert_eq!(git(&remote, &["log", "-1", "--format=%s", "greet"]).trim(), "fix(greeting): be brief");
    let called = std::fs::read_to_string(world.home().join("gh-was-called")).unwrap();
    assert_eq!(called.trim(), "pr create --fill");
    assert!(!tmux.everything().contains("Allow this?"), "the user typed these");
}

/// A server in the shell with a tool, a prompt and a resource.
#[cfg(target_os = "linux")]
const SERVER: &str = r#"
echo started >> starts
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  say() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
  case "$line" in
    *'"method":"initialize"'*) say '{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"prompts":{},"resources":{}},"serverInfo":{"name":"sh","version":"1"}}';;
    *'"method":"tools/list"'*) say '{"tools":[{"name":"look","description":"Looks","inputSchema":{"type":"object"}}]}';;
    *'"method":"prompts/list"'*) say '{"prompts":[{"name":"greet","description":"Greets somebody","arguments":[{"name":"who","required":true}]}]}';;
    *'"method":"prompts/get"'*'"Ada"'*) say '{"messages":[{"role":"user","content":{"type":"text","text":"Say hello to Ada Lovelace"}}]}';;
    *'"method":"resources/list"'*) say '{"resources":[{"uri":"note://one","name":"First note"}]}';;
    *'"method":"resources/templates/list"'*) say '{"resourceTemplates":[]}';;
    *'"method":"resources/read"'*) say '{"contents":[{"uri":"note://one","text":"the word is quokka"}]}';;
    *'"id":'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id";;
  esac
done
"#;

#[cfg(target_os = "linux")]
#[test]
fn mcp_servers_are_listed_switched_and_reconnected_and_their_prompts_and_resources_used() {
    let server = Server::start([Reply::text("Hello, Ada."), Reply::text("It is quokka.")]);
    let world = world(&server);
    let settings = std::fs::read_to_string(world.home().join(".config/hanzo/settings.toml")).unwrap();
    world.user(&format!(
        "{settings}\n[mcp_servers.notes]\ncommand = \"sh\"\nargs = [\"server.sh\"]\n\n[mcp_servers.gone]\ncommand = \"/nonexistent/server\"\n\n[mcp_servers.spare]\ncommand = \"sh\"\nargs = [\"server.sh\"]\ndisabled = true\n"
    ));
    world.write("project/server.sh", SERVER);
    let starts =
        || std::fs::read_to_string(world.workspace().join("starts")).unwrap_or_default().lines().count();
    let Some(tmux) = Tmux::start(&world, 110, 30, "") else { return };
    // The list tells how things are when it is opened.
    let open = |wanted: &str| {
        tmux.wait_until(wanted, |_| {
            tmux.wait_for_rest();
            tmux.type_line("/mcp");
            tmux.wait_for("type to narrow");
            let there = tmux.screen().contains(wanted);
            if !there {
                tmux.key("Escape");
            }
            there
        });
    };
    open("❯ notes  connected · 1 tool · 1 prompt · 1 resource");
    tmux.wait_for("`/nonexistent/server`");
    tmux.wait_for("spare  disabled");
    assert_eq!(starts(), 1, "what is disabled is not started");
    tmux.key("Enter");
    tmux.wait_for("MCP server notes");
    tmux.key("Down");
    tmux.key("Enter");
    tmux.wait_for("notes (stdio): connected, 1 tool, 1 prompt, 1 resource");
    assert_eq!(starts(), 2, "it was started anew");

    open("❯ notes  connected");
    for key in ["Enter", "Down", "Down", "Enter"] {
        tmux.key(key);
    }
    tmux.wait_for("notes (stdio): disabled");
    open("❯ notes  disabled");
    for key in ["Enter", "Down", "Enter"] {
        tmux.key(key);
    }
    tmux.wait_until("it is used again", |_| starts() == 3);
    open("❯ notes  connected");
    tmux.key("Escape");
    tmux.wait_for_rest();

    // A prompt is a command with arguments.
    tmux.run(&["send-keys", "-l", "/mcp__no"]);
    tmux.wait_for("❯ /mcp__notes__greet <who>");
    tmux.key("Enter");
    tmux.wait_for("› /mcp__notes__greet");
    tmux.type_line("Ada");
    tmux.wait_for("Hello, Ada.");
    assert!(server.requests()[0].json().to_string().contains("Say hello to Ada Lovelace"));

    // A resource is a reference beside files.
    tmux.wait_for_rest();
    tmux.run(&["send-keys", "-l", "what is in @notes:"]);
    tmux.wait_for("❯ notes:note://one First note");
    tmux.key("Tab");
    tmux.wait_for("› what is in @notes:note://one");
    tmux.key("Enter");
    tmux.wait_for("It is quokka.");
    assert!(server.requests()[1].json().to_string().contains("the word is quokka"));
}

#[test]
fn the_doctor_reports_and_an_instruction_file_is_changed_in_the_editor() {
    let server = Server::start([Reply::text("A quokka lives here.")]);
    let world = world(&server);
    world.write("project/AGENTS.md", "Be brief.\n").write("project/src/deep/AGENTS.md", "Deep.\n");
    let path = program(&world, "my-editor", "echo 'Be kind.' >> \"$1\"");
    let variables = format!("{path} EDITOR=my-editor");
    let Some(tmux) = Tmux::start_with(&world, (110, 50), &variables, "", "what shall be done?") else {
        return;
    };
    tmux.type_line("/doctor");
    for words in
        ["hanzo-dev ok", "scripted/test-model", "threads are kept in", "my-editor (EDITOR)", "git version"]
    {
        tmux.wait_for_line(words);
    }
    tmux.wait_for_rest();
    tmux.type_line("/memory");
    tmux.wait_for("❯ your AGENTS.md  for everything you do · not there yet");
    tmux.wait_for("src/deep/AGENTS.md  when the agent works there · 1 lines");
    tmux.key("Down");
    tmux.wait_for("❯ AGENTS.md  this workspace · 1 lines");
    tmux.key("Enter");
    tmux.wait_for_line("AGENTS.md was changed");
    let text = std::fs::read_to_string(world.workspace().join("AGENTS.md")).unwrap();
    assert_eq!(text, "Be brief.\nBe kind.\n");
    // A new thread is told.
    tmux.type_line("/new");
    tmux.wait_for_line("A new thread");
    tmux.wait_for_rest();
    tmux.type_line("who lives here?");
    tmux.wait_for("A quokka lives here.");
    assert!(server.requests()[0].json().to_string().contains("Be kind."));

    tmux.wait_for_rest();
    tmux.type_line("/find quokka");
    tmux.wait_for("Find in this thread");
    tmux.wait_for("❯ A quokka lives here.");
    tmux.key("Enter");
    tmux.wait_for_rest();
    assert_eq!(tmux.everything().matches("A quokka lives here.").count(), 2, "it is shown again");
}

#[test]
fn every_other_built_in_command_answers_and_a_file_of_the_user_s_is_a_command() {
    let server = Server::start([
        Reply::text("The first answer."),
        Reply::text("I wrote AGENTS.md."),
        Reply::text("I looked for errors."),
    ]);
    let world = world(&server);
    world.write(
        ".config/hanzo/commands/git/look.md",
        "---\ndescription: Look\n---\nLook at $1, all of: $ARGUMENTS",
    );
    let Some(tmux) = Tmux::start(&world, 110, 60, "") else { return };
    tmux.type_line("begin");
    tmux.wait_for("The first answer.");
    for (command, answer) in [
        ("/help", "Show what can be typed here"),
        ("/keys", "write in $EDITOR"),
        ("/compact", "There is nothing to fold yet."),
        ("/effort", "The effort is left to the model's vendor."),
        ("/effort high", "The effort is high."),
        ("/mode plan", "The mode is plan."),
        ("/mode normal", "The mode is normal."),
        ("/permissions", "The posture is ask."),
        ("/context", "tokens are in use"),
        ("/cost", "tokens sent"),
        ("/export", "Written to"),
        ("/copy", "Sent 17 characters to the terminal's clipboard (OSC 52)"),
        ("/fork", "This is a copy now"),
        ("/nonsense", "there is no command `/nonsense`"),
    ] {
        tmux.wait_for_rest();
        tmux.type_line(command);
        // A remark passes, so it is looked for on the screen; what stays may have scrolled away.
        tmux.wait_until(answer, |screen| screen.contains(answer) || tmux.everything().contains(answer));
    }
    for (command, list) in
        [("/model", "Which model?"), ("/theme", "Which theme?"), ("/resume", "Go on with which thread?")]
    {
        tmux.wait_for_rest();
        tmux.type_line(command);
        tmux.wait_for(list);
        tmux.key("Escape");
    }
    assert_eq!(server.requests().len(), 1, "none of these reached the model");

    tmux.wait_for_rest();
    tmux.type_line("/init the tests");
    tmux.wait_for("I wrote AGENTS.md.");
    assert!(server.requests()[1].json().to_string().contains("the tests"));
    tmux.wait_for_rest();
    tmux.type_line("/git:look errors now");
    tmux.wait_for("I looked for errors.");
    assert!(server.requests()[2].json().to_string().contains("Look at errors, all of: errors now"));

    tmux.wait_for_rest();
    tmux.type_line("/clear");
    tmux.wait_for("❯ Never mind");
    tmux.key("Down");
    tmux.key("Enter");
    tmux.wait_for_line("The thread was discarded");
    tmux.wait_for_rest();
    tmux.type_line("/quit");
    tmux.wait_for("ended");
}
