//! tine-models.
