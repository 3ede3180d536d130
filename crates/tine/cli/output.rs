//! The one writer of each output stream.

use super::env::Device;
use anstyle::{AnsiColor, Style};
use std::io::{self, Write};

/// Standard output or standard error, with what is known of where it leads.
///
/// A stream that its reader closed (`tine ... | head`) swallows the rest in silence; [`Stream::closed`] tells.
pub(crate) struct Stream {
    writer: Box<dyn Write + Send>,
    device: Device,
    closed: bool,
    error: Option<io::Error>,
}

/// What a piece of text is, for its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Strong,
    Faint,
    Good,
    Bad,
    Hint,
}

impl Tone {
    fn style(self) -> Style {
        match self {
            Self::Plain => Style::new(),
            Self::Strong => Style::new().bold(),
            Self::Faint => Style::new().dimmed(),
            Self::Good => AnsiColor::Green.on_default(),
            Self::Bad => AnsiColor::Red.on_default().bold(),
            Self::Hint => AnsiColor::Cyan.on_default(),
        }
    }
}

impl Stream {
    /// Standard output.
    pub(crate) fn stdout(device: Device) -> Self {
        Self::new(Box::new(io::stdout()), device)
    }

    /// Standard error.
    pub(crate) fn stderr(device: Device) -> Self {
        Self::new(Box::new(io::stderr()), device)
    }

    fn new(writer: Box<dyn Write + Send>, device: Device) -> Self {
        Self {
            writer,
            device,
            closed: false,
            error: None,
        }
    }

    /// A stream that swallows everything, in the place of one that is lent out.
    pub(crate) fn nowhere(device: Device) -> Self {
        let mut stream = Self::new(Box::new(io::sink()), device);
        stream.closed = true;
        stream
    }

    /// Where it leads.
    pub(crate) fn device(&self) -> Device {
        self.device
    }

    /// Writes text as it is.
    pub(crate) fn write(&mut self, text: &str) {
        if self.closed || self.error.is_some() {
            return;
        }
        let written = self
            .writer
            .write_all(text.as_bytes())
            .and_then(|()| self.writer.flush());
        match written {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.closed = true,
            Err(error) => self.error = Some(error),
        }
    }

    /// Writes a line.
    pub(crate) fn line(&mut self, text: &str) {
        self.write(&format!("{text}\n"));
    }

    /// Colours text, if this stream is to be coloured.
    pub(crate) fn paint(&self, tone: Tone, text: &str) -> String {
        let style = tone.style();
        if self.device.colour && !text.is_empty() {
            format!("{style}{text}{style:#}")
        } else {
            text.to_owned()
        }
    }

    /// Whether nobody reads on.
    pub(crate) fn closed(&self) -> bool {
        self.closed
    }

    /// Takes the error that ended the writing, if one did.
    pub(crate) fn take_error(&mut self) -> Option<io::Error> {
        self.error.take()
    }
}
