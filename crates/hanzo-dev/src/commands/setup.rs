//! `hanzo-dev setup`: a settings file to begin with.

use hanzo_config::{Tier, Trust, ignore_local_tier, settings_files, write_default};

use crate::cli::Global;
use crate::commands::settings;
use crate::exit::{Exit, Failure};
use crate::output::Printer;

/// Writes the file of one tier and says where it is.
pub fn run(global: &Global, project: bool, local: bool, printer: &mut Printer) -> Result<(), Failure> {
    let tier = match (project, local) {
        (_, true) => Tier::Local,
        (true, false) => Tier::Project,
        (false, false) => Tier::User,
    };
    let inputs = settings::inputs(global, Trust::Untrusted)?;
    let Some(file) = settings_files(&inputs).into_iter().find(|file| file.tier == tier) else {
        let text = "nothing says where your settings belong\n\nhint: set `HOME`, or `HANZO_CONFIG_DIR`";
        return Err(Failure::message(Exit::Config, text));
    };
    write_default(&file.path).map_err(|error| settings::failure(Exit::Config, &error))?;
    if tier == Tier::Local {
        ignore_local_tier(&inputs.workspace_root).map_err(|error| settings::failure(Exit::Config, &error))?;
    }
    printer.line(&file.path.display().to_string())
}
