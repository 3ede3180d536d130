//! A model provider on this machine, for tests of those who speak to one.
//!
//! It answers each request with the next exchange of its script: whole, in pieces cut at any byte, late, never, or not
//! to the end. It knows no protocol above HTTP, and keeps what it was asked. Nothing in it sleeps: a peer that waits for
//! an answer that does not come can be seen to wait.

use serde_json::Value;
use std::collections::VecDeque;
use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// A request as it came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// `POST`.
    pub method: String,
    /// `/v1/chat/completions`, with its query.
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
}

impl Request {
    /// The value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The body as JSON; null if it is none.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }
}

/// What happens to a connection, in order.
#[derive(Clone, Debug)]
enum Step {
    /// Bytes of the body go out, as a chunk of their own.
    Send(Vec<u8>),
    /// Waits for [`Provider::release`].
    Wait,
    /// Nothing comes any more, until the peer goes.
    Hang,
    /// The connection ends here.
    Close,
}

/// How one request is answered.
#[derive(Clone, Debug)]
pub struct Exchange {
    head: Option<Head>,
    steps: Vec<Step>,
}

#[derive(Clone, Debug)]
struct Head {
    status: u16,
    headers: Vec<(String, String)>,
}

impl Exchange {
    /// An answer with this content type and body, in one piece.
    #[must_use]
    pub fn new(content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            head: Some(Head {
                status: 200,
                headers: vec![("content-type".to_owned(), content_type.to_owned())],
            }),
            steps: vec![Step::Send(body.into())],
        }
    }

    /// A JSON document.
    #[must_use]
    pub fn json(body: &Value) -> Self {
        Self::new("application/json", body.to_string())
    }

    /// A stream of events, each with this data, and `[DONE]` at its end.
    pub fn events<'a>(events: impl IntoIterator<Item = &'a Value>) -> Self {
        let mut stream: String = events
            .into_iter()
            .map(|event| format!("data: {event}\n\n"))
            .collect();
        stream.push_str("data: [DONE]\n\n");
        Self::new("text/event-stream", stream)
    }

    /// No answer at all: the request is read, and nothing comes.
    #[must_use]
    pub fn hang() -> Self {
        Self {
            head: None,
            steps: vec![Step::Hang],
        }
    }

    /// The connection ends without an answer.
    #[must_use]
    pub fn close() -> Self {
        Self {
            head: None,
            steps: vec![Step::Close],
        }
    }

    /// With another status.
    #[must_use]
    pub fn status(mut self, status: u16) -> Self {
        if let Some(head) = &mut self.head {
            head.status = status;
        }
        self
    }

    /// With one more header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        if let Some(head) = &mut self.head {
            head.headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }

    /// Cut into pieces of so many bytes.
    #[must_use]
    pub fn cut(mut self, size: usize) -> Self {
        let cut = |step: Step| match step {
            Step::Send(bytes) => bytes
                .chunks(size.max(1))
                .map(|piece| Step::Send(piece.to_vec()))
                .collect(),
            other => vec![other],
        };
        self.steps = self.steps.into_iter().flat_map(cut).collect();
        self
    }

    /// Cut off after so many bytes of the body.
    #[must_use]
    pub fn first(mut self, mut bytes: usize) -> Self {
        for step in &mut self.steps {
            if let Step::Send(piece) = step {
                piece.truncate(bytes);
                bytes -= piece.len();
            }
        }
        self
    }

    /// More of the body, after [`Provider::release`].
    #[must_use]
    pub fn then_late(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.steps.extend([Step::Wait, Step::Send(body.into())]);
        self
    }

    /// And then nothing more comes.
    #[must_use]
    pub fn then_hang(mut self) -> Self {
        self.steps.push(Step::Hang);
        self
    }

    /// And then the connection ends, though the body does not.
    #[must_use]
    pub fn then_close(mut self) -> Self {
        self.steps.push(Step::Close);
        self
    }
}

/// A provider that answers as it was told. It stops when it is dropped.
pub struct Provider {
    address: SocketAddr,
    shared: Arc<Shared>,
    listener: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    exchanges: VecDeque<Exchange>,
    requests: Vec<Request>,
    /// How many connections wait for their peer to go.
    hanging: usize,
    released: usize,
    stopped: bool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
        self.changed.notify_all();
    }

    fn wait(&self, until: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        let state = self.changed.wait_while(self.state(), |state| !until(state));
        state.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Provider {
    /// Begins to listen.
    ///
    /// # Errors
    /// If this machine has no port to give.
    pub fn start(exchanges: impl IntoIterator<Item = Exchange>) -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        shared.state().exchanges = exchanges.into_iter().collect();
        let heard = shared.clone();
        let listener = std::thread::spawn(move || {
            for connection in listener.incoming() {
                if heard.state().stopped {
                    break;
                }
                let heard = heard.clone();
                if let Ok(connection) = connection {
                    // What goes wrong with a connection is the peer's to notice.
                    std::thread::spawn(move || drop(serve(&connection, &heard)));
                }
            }
        });
        Ok(Self {
            address,
            shared,
            listener: Some(listener),
        })
    }

    /// What a configuration has as `base_url`.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// What was asked so far.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.shared.state().requests.clone()
    }

    /// Waits until so many connections hang.
    pub fn wait_for_hanging(&self, connections: usize) {
        drop(self.shared.wait(|state| state.hanging >= connections));
    }

    /// Lets one connection go on that waits.
    pub fn release(&self) {
        self.shared.change(|state| state.released += 1);
    }
}

impl fmt::Debug for Provider {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Provider")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.shared.change(|state| state.stopped = true);
        // Wakes the listener, so that it sees.
        drop(TcpStream::connect(self.address));
        if let Some(listener) = self.listener.take() {
            drop(listener.join());
        }
    }
}

fn serve(connection: &TcpStream, shared: &Shared) -> std::io::Result<()> {
    connection.set_nodelay(true)?;
    let mut reader = BufReader::new(connection);
    let request = read_request(&mut reader)?;
    let mut next = None;
    shared.change(|state| {
        state.requests.push(request);
        next = state.exchanges.pop_front();
    });
    let exchange = next.unwrap_or_else(|| {
        Exchange::new("text/plain", "the script of this provider is at its end").status(418)
    });
    let mut out = connection;
    if let Some(head) = &exchange.head {
        let mut text = format!("HTTP/1.1 {} Scripted\r\n", head.status);
        for (name, value) in &head.headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str("transfer-encoding: chunked\r\nconnection: close\r\n\r\n");
        out.write_all(text.as_bytes())?;
    }
    for step in exchange.steps {
        match step {
            Step::Send(bytes) if bytes.is_empty() => {}
            Step::Send(bytes) => {
                let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
                chunk.extend(bytes);
                chunk.extend(b"\r\n");
                out.write_all(&chunk)?;
            }
            Step::Wait => {
                let mut state = shared.wait(|state| state.released > 0 || state.stopped);
                state.released = state.released.saturating_sub(1);
            }
            Step::Hang => {
                shared.change(|state| state.hanging += 1);
                // The peer has nothing to say but that it goes.
                let mut byte = [0];
                while reader.read(&mut byte)? > 0 {}
                return Ok(());
            }
            Step::Close => return connection.shutdown(Shutdown::Both),
        }
    }
    out.write_all(b"0\r\n\r\n")?;
    connection.shutdown(Shutdown::Write)
}

fn read_request(reader: &mut impl BufRead) -> std::io::Result<Request> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace();
    let mut request = Request {
        method: words.next().unwrap_or_default().to_owned(),
        path: words.next().unwrap_or_default().to_owned(),
        ..Request::default()
    };
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        let (name, value) = (name.to_ascii_lowercase(), value.trim().to_owned());
        if name == "content-length" {
            length = value.parse().unwrap_or_default();
        }
        request.headers.push((name, value));
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    request.body = String::from_utf8_lossy(&body).into_owned();
    Ok(request)
}
