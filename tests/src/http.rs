//! As much of HTTP/1.1 as a server on the loopback needs: requests with a length, one after the other.
//!
//! Neither chunked requests nor upgrades: no client of the stand sends them.

use serde_json::Value;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use crate::Result;

/// Longest head of a request, far above what a client of the stand sends.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// One request.
#[derive(Debug)]
pub struct Request {
    /// `GET`, `POST`, ….
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Names as sent, and values.
    pub headers: Vec<(String, String)>,
    /// What it carries.
    pub body: Vec<u8>,
}

impl Request {
    /// The body as JSON; as a string where it is none.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&self.body).into_owned()))
    }

    /// The value of the header `name`, whatever its case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let header = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        header.map(|(_, value)| value.as_str())
    }
}

/// Reads one request; `None` when the connection has ended. What follows it stays in `buffer`.
///
/// # Errors
///
/// What was sent is no request.
pub async fn read(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Result<Option<Request>> {
    loop {
        if let Some((head, mut request)) = parse(buffer)? {
            let length = request.header("content-length").map_or(Ok(0), str::parse::<usize>)?;
            if buffer.len() >= head + length {
                let mut whole: Vec<u8> = buffer.drain(..head + length).collect();
                request.body = whole.split_off(head);
                return Ok(Some(request));
            }
        }
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
}

/// The length of the head, and the request without its body; `None` while the head is not all there.
fn parse(buffer: &[u8]) -> Result<Option<(usize, Request)>> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut headers);
    let httparse::Status::Complete(head) = request.parse(buffer)? else {
        return if buffer.len() > HEAD_BYTES_MAX { Err("endless head".into()) } else { Ok(None) };
    };
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    let headers = request.headers.iter().map(|header| (header.name.to_owned(), text(header.value))).collect();
    let (method, path) = (request.method.unwrap_or_default(), request.path.unwrap_or_default());
    let request = Request { method: method.to_owned(), path: path.to_owned(), headers, body: Vec::new() };
    Ok(Some((head, request)))
}

/// A response with a JSON body; `headers` are whole lines.
#[must_use]
pub fn response(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{headers}Content-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}
