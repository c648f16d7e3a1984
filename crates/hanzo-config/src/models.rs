//! Which model a name means.
//!
//! A reference is tried in this order, and the first that fits wins:
//!
//! 1. a provider's name: its default model;
//! 2. `provider/model`, split at the first `/`, when that provider lists the model;
//! 3. a model name, whole (it may contain `/` itself), when exactly one provider lists it;
//! 4. `provider/model` with a provider that lists no models at all: the rest is passed on as it is.
//!
//! So with providers `anthropic` (model `opus`) and `router` (model `anthropic/opus`), `anthropic/opus` is the
//! first one's and `router/anthropic/opus` the second one's. A model name listed by several providers is an error
//! that names the ways to be exact.

use crate::check::nearest;
use crate::settings::Provider;

/// A provider and one of its models.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ModelRef<'p> {
    /// The provider.
    pub provider: &'p Provider,
    /// The model, as the vendor calls it.
    pub model: &'p str,
}

impl std::fmt::Display for ModelRef<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.provider.name, self.model)
    }
}

/// A reference that means no model, or several.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// Several providers list it.
    #[error("`{reference}` is a model of several providers; say which: {}", candidates.join(", "))]
    Ambiguous {
        /// What was asked for.
        reference: String,
        /// The exact spellings.
        candidates: Vec<String>,
    },
    /// Nobody lists it.
    #[error("no provider has a model `{reference}`{}", suggestion.as_ref().map(|s| format!("; did you mean `{s}`?")).unwrap_or_default())]
    Unknown {
        /// What was asked for.
        reference: String,
        /// The nearest spelling that works.
        suggestion: Option<String>,
    },
    /// A provider's name alone, but the provider lists no model.
    #[error("provider `{provider}` lists no model; write `{provider}/MODEL`")]
    NoDefault {
        /// The provider.
        provider: String,
    },
    /// No provider at all.
    #[error("no provider is configured")]
    NoProviders,
}

/// What `reference` means among `providers`. See the module for the order in which meanings are tried.
pub fn resolve_model<'p>(providers: &'p [Provider], reference: &'p str) -> Result<ModelRef<'p>, ModelError> {
    let reference = reference.trim();
    if providers.is_empty() {
        return Err(ModelError::NoProviders);
    }
    if let Some(provider) = providers.iter().find(|provider| provider.name == reference) {
        let model = provider.default_model();
        return model
            .map(|model| ModelRef { provider, model })
            .ok_or_else(|| ModelError::NoDefault { provider: provider.name.clone() });
    }
    let explicit = reference.split_once('/').and_then(|(name, model)| {
        let provider = providers.iter().find(|provider| provider.name == name)?;
        (!model.is_empty()).then_some(ModelRef { provider, model })
    });
    if let Some(exact) = explicit
        && exact.provider.model_names().any(|name| name == exact.model)
    {
        return Ok(exact);
    }
    let listed: Vec<ModelRef<'p>> = providers
        .iter()
        .filter_map(|provider| {
            let model = provider.model_names().find(|name| *name == reference)?;
            Some(ModelRef { provider, model })
        })
        .collect();
    match (&listed[..], explicit) {
        ([one], _) => Ok(*one),
        ([], Some(open)) if open.provider.model_names().next().is_none() => Ok(open),
        ([], _) => Err(unknown(providers, reference)),
        (several, _) => Err(ModelError::Ambiguous {
            reference: reference.to_owned(),
            candidates: several.iter().map(ToString::to_string).collect(),
        }),
    }
}

/// The model to use when nothing names one: the default of the first provider that has a credential.
pub fn first_usable_model(
    providers: &[Provider],
    has_credential: impl Fn(&Provider) -> bool,
) -> Option<ModelRef<'_>> {
    providers
        .iter()
        .filter(|provider| has_credential(provider))
        .find_map(|provider| Some(ModelRef { provider, model: provider.default_model()? }))
}

fn unknown(providers: &[Provider], reference: &str) -> ModelError {
    let mut spellings: Vec<String> = Vec::new();
    for provider in providers {
        spellings.push(provider.name.clone());
        for model in provider.model_names() {
            spellings.push(model.to_owned());
            spellings.push(format!("{}/{model}", provider.name));
        }
    }
    let suggestion = nearest(reference, spellings.iter().map(String::as_str)).map(str::to_owned);
    ModelError::Unknown { reference: reference.to_owned(), suggestion }
}
