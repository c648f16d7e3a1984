//! `hanzo-dev setup`: finds models, and writes a settings file to begin with.

mod file;
mod probe;

use hanzo_config::{LoadInputs, Tier, ignore_local_tier, settings_files, write_default};
use hanzo_providers::presets::{self, Preset};

use crate::cli::Global;
use crate::commands::settings;
use crate::exit::{Exit, Failure};
use crate::output::Printer;

/// A way to a model that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The provider's name.
    pub name: String,
    /// What it is called on screen.
    pub title: String,
    /// The protocol.
    pub kind: String,
    /// Where it is, when that is not the vendor's usual address.
    pub base_url: Option<String>,
    /// The variable that holds its key.
    pub api_key_env: Option<String>,
    /// Its models, the one to begin with first.
    pub models: Vec<String>,
}

/// Which file to write, and where else to look.
pub struct Wanted<'a> {
    /// The project's.
    pub project: bool,
    /// One's own in this project.
    pub local: bool,
    /// More model servers to look at.
    pub probe: &'a [String],
}

/// Looks for models, writes the file of one tier and says what it did.
pub fn run(global: &Global, wanted: &Wanted<'_>, printer: &mut Printer) -> Result<(), Failure> {
    let tier = match (wanted.project, wanted.local) {
        (_, true) => Tier::Local,
        (true, false) => Tier::Project,
        (false, false) => Tier::User,
    };
    let inputs = settings::inputs(global, settings::trust(false))?;
    let Some(file) = settings_files(&inputs).into_iter().find(|file| file.tier == tier) else {
        let text = "nothing says where your settings belong\n\nhint: set `HOME`, or `HANZO_CONFIG_DIR`";
        return Err(Failure::message(Exit::Config, text));
    };
    if tier != Tier::User {
        // A project names no addresses and no keys: they do not count before it is trusted.
        write_default(&file.path).map_err(|error| settings::failure(Exit::Config, &error))?;
        if tier == Tier::Local {
            let ignored = ignore_local_tier(&inputs.workspace_root);
            ignored.map_err(|error| settings::failure(Exit::Config, &error))?;
        }
        return printer.line(&file.path.display().to_string());
    }
    let found = look(&inputs, wanted.probe, printer);
    for entry in &found {
        printer.note(&format!("found {}", entry.words()));
    }
    let written = file::write(&file.path, &found)?;
    printer.line(&file.path.display().to_string())?;
    for line in next_steps(&written, &found) {
        printer.note(&line);
    }
    Ok(())
}

impl Found {
    /// What was found, in words.
    fn words(&self) -> String {
        let models = match self.models.as_slice() {
            [] => String::new(),
            [one] => format!(", model `{one}`"),
            [first, rest @ ..] => format!(", model `{first}` and {} more", rest.len()),
        };
        match (&self.api_key_env, &self.base_url) {
            (Some(name), _) => format!("a key for {} in `{name}`{models}", self.title),
            (None, Some(url)) => format!("{} at {url}{models}", self.title),
            (None, None) => format!("{}{models}", self.title),
        }
    }
}

/// Keys in the environment, then servers on this machine.
fn look(inputs: &LoadInputs, more: &[String], printer: &mut Printer) -> Vec<Found> {
    let with_key = |preset: &Preset| {
        let key = preset.api_key_env.iter().find(|name| inputs.environment.get(name).is_some())?;
        let default = preset.default_model.iter().cloned();
        let others = preset.models.iter().map(|model| model.name.clone());
        let others = others.filter(|name| Some(name) != preset.default_model.as_ref());
        Some(Found {
            name: preset.name.clone(),
            title: preset.title.clone(),
            kind: preset.kind.clone(),
            base_url: None,
            api_key_env: Some(key.clone()),
            models: default.chain(others).collect(),
        })
    };
    let mut found: Vec<Found> = presets::all().iter().filter_map(with_key).collect();
    let mut places: Vec<probe::Place> = presets::all().iter().filter_map(probe::Place::usual).collect();
    for url in more {
        match probe::Place::given(url) {
            Some(place) => places.push(place),
            None => printer
                .warning(&format!("`--probe {url}` is not an address such as `http://127.0.0.1:8080/v1`")),
        }
    }
    found.extend(probe::all(&places));
    found
}

fn next_steps(written: &file::Written, found: &[Found]) -> Vec<String> {
    let mut lines = vec![match written {
        file::Written::New => "wrote your settings; every setting is explained in them".to_owned(),
        file::Written::Added(names) => format!("added {} to your settings", names.join(", ")),
        file::Written::Nothing => "your settings are there already; nothing was changed".to_owned(),
        file::Written::ByHand(text) => format!("your settings are JSON, so add this yourself:\n\n{text}"),
    }];
    if found.is_empty() && matches!(written, file::Written::New | file::Written::Nothing) {
        lines.push(
            "\nno model was found: there is no key of a vendor we know in the environment, and no model server on this machine\n\n\
             to use a vendor   export ANTHROPIC_API_KEY=…   (or OPENAI_API_KEY, DEEPSEEK_API_KEY, GEMINI_API_KEY, …)\n\
             to use your own   start Ollama, LM Studio, llama.cpp or vLLM\n\
             then              hanzo-dev setup\n\
             without a model   hanzo-dev demo"
                .to_owned(),
        );
        return lines;
    }
    lines.push("\nnext: hanzo-dev run \"explain this repository\"".to_owned());
    lines
}
