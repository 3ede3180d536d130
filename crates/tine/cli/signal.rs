//! Being told to stop.

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Hears when the user presses Ctrl-C, closes the terminal, or the process is told to end; from when it is made, so
/// make it before what is to be stopped begins.
///
/// Where signals can not be heard, they end the process as usual.
pub(crate) struct Stops {
    #[cfg(unix)]
    signals: Option<[Signal; 3]>,
}

impl Stops {
    /// Begins to listen.
    pub(crate) fn listen() -> Self {
        Self {
            #[cfg(unix)]
            signals: signals().ok(),
        }
    }

    /// Waits until it is told; forever, where nothing can be heard.
    pub(crate) async fn next(&mut self) {
        #[cfg(unix)]
        if let Some([interrupt, terminate, hangup]) = &mut self.signals {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                _ = hangup.recv() => {}
            }
            return;
        }
        #[cfg(not(unix))]
        if tokio::signal::ctrl_c().await.is_ok() {
            return;
        }
        std::future::pending::<()>().await;
    }
}

#[cfg(unix)]
fn signals() -> std::io::Result<[Signal; 3]> {
    Ok([
        signal(SignalKind::interrupt())?,
        signal(SignalKind::terminate())?,
        signal(SignalKind::hangup())?,
    ])
}
