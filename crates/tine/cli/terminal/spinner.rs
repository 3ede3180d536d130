//! Something that turns while the run works.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A spinner on standard error. It is taken away before anything else is written.
pub(super) struct Spinner {
    bar: Option<ProgressBar>,
}

impl Spinner {
    pub(super) fn new() -> Self {
        Self { bar: None }
    }

    /// Shows it, or turns it by one.
    pub(super) fn turn(&mut self, work: &str) {
        let bar = self.bar.get_or_insert_with(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            // The built-in template says the same in more columns.
            match ProgressStyle::with_template("  {spinner} {wide_msg}") {
                Ok(style) => bar.with_style(style),
                Err(_) => bar,
            }
        });
        if bar.message() == work {
            bar.tick();
        } else {
            bar.set_message(work.to_owned()); // which draws
        }
    }

    /// Takes it away.
    pub(super) fn hide(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}
