//! What model references mean.

use hanzo_config::{ModelError, Provider, first_usable_model, resolve_model};

use crate::world::World;

const PROVIDERS: &str = "
[[providers]]
name = 'deepseek'
base_url = 'https://api.deepseek.com'
models = ['flash', 'pro', 'shared']
default = 'pro'
context_window = 1000000
price = { input = 0.5, output = 2 }
[[providers]]
name = 'mimo'
model = 'mimo-pro'
context_window = 0
[[providers]]
name = 'anthropic'
kind = 'anthropic'
models = ['opus', 'shared']
[[providers]]
name = 'router'
models = ['anthropic/opus', 'meta/llama']
[[providers]]
name = 'open'
";

fn providers() -> Vec<Provider> {
    World::new().user("settings.toml", PROVIDERS).load().settings().providers.clone()
}

fn resolved(reference: &str) -> Result<String, ModelError> {
    resolve_model(&providers(), reference).map(|model| model.to_string())
}

#[test]
fn a_provider_lists_one_model_or_several_with_a_default() {
    let providers = providers();
    let defaults: Vec<_> = providers.iter().map(Provider::default_model).collect();
    assert_eq!(defaults, [Some("pro"), Some("mimo-pro"), Some("opus"), Some("anthropic/opus"), None]);
    let both = World::new()
        .user("settings.toml", "[[providers]]\nname = 'p'\nmodel = 'a'\nmodels = ['b']\n")
        .error();
    assert!(both.to_string().contains("`providers.p.models` cannot stand beside `model`"), "{both}");
    let stray = World::new()
        .user("settings.toml", "[[providers]]\nname = 'p'\nmodels = ['b']\ndefault = 'c'\n")
        .error();
    assert!(stray.to_string().ends_with(":4:11: `providers.p.default` is not one of `models`"), "{stray}");
}

#[test]
fn a_reference_is_a_provider_a_model_or_both() {
    assert_eq!(resolved("deepseek").unwrap(), "deepseek/pro");
    assert_eq!(resolved("flash").unwrap(), "deepseek/flash");
    assert_eq!(resolved("deepseek/flash").unwrap(), "deepseek/flash");
    assert_eq!(resolved("mimo").unwrap(), "mimo/mimo-pro");
    assert_eq!(resolved(" opus ").unwrap(), "anthropic/opus");
}

#[test]
fn model_names_with_a_slash_follow_the_documented_order() {
    assert_eq!(resolved("anthropic/opus").unwrap(), "anthropic/opus");
    assert_eq!(resolved("router/anthropic/opus").unwrap(), "router/anthropic/opus");
    assert_eq!(resolved("meta/llama").unwrap(), "router/meta/llama");
    assert_eq!(resolved("open/any/thing").unwrap(), "open/any/thing");
    assert_eq!(resolved("open").unwrap_err(), ModelError::NoDefault { provider: "open".to_owned() });
}

#[test]
fn an_ambiguous_name_lists_the_candidates_and_an_unknown_one_the_nearest() {
    let ModelError::Ambiguous { candidates, .. } = resolved("shared").unwrap_err() else { panic!() };
    assert_eq!(candidates, ["deepseek/shared", "anthropic/shared"]);
    assert_eq!(resolved("anthropic/shared").unwrap(), "anthropic/shared");
    let unknown = resolved("deepseek/flsh").unwrap_err();
    assert_eq!(
        unknown.to_string(),
        "no provider has a model `deepseek/flsh`; did you mean `deepseek/flash`?"
    );
    assert_eq!(resolved("zzzzzz").unwrap_err().to_string(), "no provider has a model `zzzzzz`");
    assert_eq!(resolve_model(&[], "x").unwrap_err(), ModelError::NoProviders);
}

#[test]
fn the_reference_comes_from_default_model_and_from_a_flag() {
    let world = World::new().user("settings.toml", format!("default_model = 'deepseek'\n{PROVIDERS}"));
    let meaning = |world: &World| {
        let config = world.load();
        let settings = config.settings();
        resolve_model(&settings.providers, settings.model.as_deref().unwrap()).unwrap().to_string()
    };
    assert_eq!(meaning(&world), "deepseek/pro");
    assert_eq!(meaning(&world.flag("model=mimo")), "mimo/mimo-pro");
}

#[test]
fn window_and_price_belong_to_the_provider() {
    let providers = providers();
    assert_eq!(providers[0].context_window, Some(1_000_000));
    assert_eq!(providers[1].context_window, Some(0));
    assert_eq!(providers[2].context_window, None);
    let price = providers[0].price.unwrap();
    assert!((price.input - 0.5).abs() < f64::EPSILON && (price.output - 2.0).abs() < f64::EPSILON);
}

#[test]
fn without_a_reference_the_first_provider_with_a_credential_is_used() {
    let providers = providers();
    let chosen =
        first_usable_model(&providers, |provider| provider.name == "open" || provider.name == "mimo");
    assert_eq!(chosen.unwrap().to_string(), "mimo/mimo-pro");
    assert!(first_usable_model(&providers, |_| false).is_none());
}

#[test]
fn providers_merge_by_name_and_a_secret_stays_with_its_address() {
    let world = World::new()
        .user(
            "settings.toml",
            "[[providers]]\nname = 'p'\nmodels = ['a', 'b']\ndefault = 'b'\nbase_url = 'https://user.example'\napi_key = 'sk'\n",
        )
        .project("[[providers]]\nname = 'p'\nmodel = 'c'\n");
    let config = world.load();
    let provider = &config.settings().providers[0];
    assert_eq!((provider.default_model(), provider.models.len()), (Some("c"), 0));
    assert_eq!(provider.api_key.as_ref().unwrap().expose(), "sk");
    let moved = world.local("[[providers]]\nname = 'p'\nbase_url = 'https://other.example'\n").load();
    let provider = &moved.settings().providers[0];
    assert_eq!(provider.base_url.as_ref().unwrap().expanded(), "https://other.example");
    assert_eq!(provider.api_key, None);
}

#[test]
fn the_key_comes_from_the_variable_the_provider_names() {
    let world = World::new()
        .user("settings.toml", "[[providers]]\nname = 'p'\nmodel = 'm'\napi_key_env = 'P_KEY'\n")
        .file(".env", "P_KEY=from-dot-env\n");
    let key = |world: &World| {
        let config = world.load();
        let key = config.provider_key(&config.settings().providers[0]).unwrap();
        key.map(|key| key.expose().to_owned())
    };
    assert_eq!(key(&world).as_deref(), Some("from-dot-env"));
    let world = world.env("P_KEY", "from-environment");
    assert_eq!(key(&world).as_deref(), Some("from-environment"));
    let none =
        World::new().user("settings.toml", "[[providers]]\nname = 'p'\nmodel = 'm'\napi_key_env = 'P_KEY'\n");
    assert_eq!(key(&none), None);
}
