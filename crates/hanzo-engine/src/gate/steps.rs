//! The steps that need neither a rule nor a person: capability, plan mode, the sandbox's wall.

use std::path::Path;

use hanzo_permissions::{Decision, plan_mode};
use hanzo_protocol::engine::Mode;
use hanzo_protocol::narrowing::Narrowing;
use hanzo_protocol::tool::{Effect, Place, Reach, ToolCaller};
use serde_json::{Value, json};

use super::call::with_call;
use super::policy::Consent;
use super::refused::Refused;
use super::types::{GateStep, Refusal};
use crate::capability::Capabilities;

/// Step 1: is the action in the agent's set, and in the remote caller's?
pub(super) fn capability(
    step: &GateStep,
    agent: &Capabilities,
    remote: &Capabilities,
    reach: &Reach,
) -> Result<(), Refused> {
    let refuse = |who: &str, lack: crate::capability::Lack| {
        Refused::new(
            Refusal::Capability,
            format!("{who} may not do this: {lack}. Go on with the tools there are, or say what is missing."),
        )
    };
    agent.check(reach).map_err(|lack| refuse("this agent", lack))?;
    match step.caller {
        ToolCaller::Local => Ok(()),
        ToolCaller::Remote => remote.check(reach).map_err(|lack| refuse("the caller", lack)),
    }
}

/// Step 1, too: is the action in what the thread is confined to at the moment?
pub(super) fn narrowed(narrowing: &dyn Narrowing, reach: &Reach) -> Result<(), Refused> {
    narrowing.check(reach).map_err(|narrowed| Refused::new(Refusal::Capability, narrowed.to_string()))
}

/// Step 2: plan mode has no writers. Leaving it, and asking the user, are for the user to decide.
pub(super) fn plan(
    step: &GateStep,
    reach: &Reach,
    arguments: &Value,
    workspace: &Path,
) -> Result<(), Refused> {
    if step.mode != Mode::Plan {
        return Ok(());
    }
    with_call(reach, arguments, workspace, |call, facts| {
        if plan_mode(call) == Decision::Allow {
            return Ok(());
        }
        Err(Refused::new(
            Refusal::PlanMode,
            format!(
                "`{}` changes something, and the thread is in plan mode, where nothing is changed. Look, plan, and propose the plan with the tool `plan` and its action `exit`.",
                facts.tool_id()
            ),
        ))
    })
}

/// Step 7: the sandbox's wall. What changes files outside needs a consent that was given for it; what a remote caller names must be
/// inside. What a process does is held by the kernel.
pub(super) fn wall(step: &GateStep, reach: &Reach, consent: &Consent) -> Result<(), Refused> {
    let Some(path) = reach.paths.iter().find(|path| path.place == Place::Outside) else { return Ok(()) };
    let refuse = |what: &str, hint: &str| {
        let shown = path.real.display().to_string();
        Err(Refused::new(
            Refusal::Sandbox,
            format!("{what} `{shown}`, which is outside the workspace. {hint}"),
        )
        .with_details(json!({ "path": shown })))
    };
    if step.caller == ToolCaller::Remote {
        return refuse("a remote caller may not reach", "Only the workspace can be reached from elsewhere.");
    }
    let changes_files =
        matches!(reach.effect, Effect::Write | Effect::Network | Effect::Screen | Effect::Memory);
    if changes_files && !consent.covers_outside() {
        return refuse(
            "the sandbox does not let this call change",
            "Work inside the workspace or ask the user.",
        );
    }
    Ok(())
}
