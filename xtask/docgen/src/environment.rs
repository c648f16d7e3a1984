//! `docs/environment.md`: every environment variable, from the table the code reads them by.

use std::fmt::Write as _;

use hanzo_config::ENVIRONMENT;

use crate::Documents;

pub fn add(documents: &mut Documents) {
    let mut page = String::from(
        "# Environment variables\n\nGenerated from the code by `cargo xtask docs`.\n\nA variable that sets a setting stands above every file and below the \
         command line. Variables named by `${NAME}` and\n`api_key_env` in a settings file come on top of these.\n\n| variable | sets | meaning |\n| --- | --- | --- |\n",
    );
    for variable in ENVIRONMENT {
        let key = variable.key.map_or_else(String::new, |key| format!("`{key}`"));
        let _ = writeln!(page, "| `{}` | {key} | {} |", variable.name, variable.doc);
    }
    page.push_str(
        "\n## For developers\n\n| variable | meaning |\n| --- | --- |\n\
         | `HANZO_DEV_VERSION` | While building: the version to report, instead of what git describes |\n\
         | `HANZO_TEST_VECTORS` | While testing: another directory of parity vectors |\n\
         | `HANZO_SOAK` | While testing: `1` runs loops at full size, as `cargo xtask soak` does |\n",
    );
    documents.insert("environment.md".into(), page);
}
