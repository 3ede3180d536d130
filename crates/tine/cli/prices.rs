//! What the models of a configuration cost.

use super::env::Env;
use super::failure::Failure;
use std::collections::BTreeSet;
use std::sync::Arc;
use tine::models::Pricing;
use tine::tools::config::Config;

/// The prices of models, by alias.
#[derive(Debug, Default)]
pub(crate) struct Prices {
    pub(crate) known: Vec<(String, Pricing)>,
    /// Why there are none, although the configuration has some.
    pub(crate) warning: Option<String>,
}

impl Prices {
    /// Reads the `pricing` of each model. Sums of several currencies would mean nothing, so then nothing has a price.
    pub(crate) fn read(env: &Env, config: &Config) -> Result<Self, Failure> {
        let mut known: Vec<(String, Pricing)> = Vec::new();
        for entry in config.models() {
            let Some(given) = entry.settings.with(env).value("pricing")? else {
                continue;
            };
            let pricing = serde_json::from_value(given).map_err(|error| {
                let place = entry.settings.place_of("pricing");
                let name = &entry.name;
                Failure::usage(format!("{place}: `pricing` of model `{name}`: {error}"))
                    .hint("config/README.md explains its keys")
            })?;
            known.push((entry.name.clone(), pricing));
        }
        let currencies: BTreeSet<Arc<str>> = known
            .iter()
            .map(|(_, prices)| prices.currency.clone())
            .collect();
        if currencies.len() > 1 {
            let currencies: Vec<&str> = currencies.iter().map(|currency| &**currency).collect();
            let warning = format!(
                "{}: the models have prices in {}, so no costs are counted",
                config.file(),
                currencies.join(" and ")
            );
            return Ok(Self {
                warning: Some(warning),
                ..Self::default()
            });
        }
        // As for the models: graphs say `default` for whichever comes first.
        let named = config.models().iter().any(|model| model.name == "default");
        if let Some(first) = config.models().first()
            && let Some((_, prices)) = known.iter().find(|(name, _)| *name == first.name)
            && !named
        {
            known.push(("default".to_owned(), prices.clone()));
        }
        Ok(Self {
            known,
            warning: None,
        })
    }
}
