//! Being told to stop.

/// Waits until the user presses Ctrl-C or the process is told to end.
///
/// Where signals can not be heard it waits forever, and they end the process as usual.
pub(crate) async fn stop() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let (Ok(mut interrupt), Ok(mut terminate)) = (
            signal(SignalKind::interrupt()),
            signal(SignalKind::terminate()),
        ) {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    #[cfg(not(unix))]
    if tokio::signal::ctrl_c().await.is_ok() {
        return;
    }
    std::future::pending::<()>().await;
}
