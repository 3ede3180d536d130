//! tine-agent.
