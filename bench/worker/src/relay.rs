//! The least there can be between an HTTP client and a worker: finds the end of a request, sends the worker a frame
//! that is ready, and answers with bytes that are ready. It reads no JSON and knows no MCP, so what it loses against
//! the worker alone is the price of HTTP and of a third process on this machine.
use crate::{Request, DIGITS, MISSING};
use memchr::memmem;
use mio::net::{TcpListener, TcpStream, UnixStream};
use mio::{Events, Interest, Poll, Token};
use std::io::{ErrorKind, Read, Write};

const WORKER: Token = Token(0);
const LISTENER: Token = Token(1);
const FIRST: usize = 2;

/// Serves for ever; says its port on stdout first.
pub fn serve(stream: std::os::unix::net::UnixStream, request: &Request, marker: &str) -> ! {
    let mut poll = Poll::new().expect("poll");
    stream.set_nonblocking(true).expect("a socket");
    let mut worker = UnixStream::from_std(stream);
    let mut listener = TcpListener::bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
    println!("{}", listener.local_addr().expect("its address").port());
    poll.registry().register(&mut worker, WORKER, Interest::READABLE).expect("poll");
    poll.registry().register(&mut listener, LISTENER, Interest::READABLE).expect("poll");
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1000000001,"result":{{"content":[{{"type":"text","text":"{marker}"}}]}}}}"#
    );
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut clients: Vec<Option<(TcpStream, Vec<u8>)>> = Vec::new();
    let mut events = Events::with_capacity(256);
    let (mut buffer, mut arrived, mut out) = (vec![0; 1 << 18], Vec::new(), Vec::new());
    loop {
        if let Err(error) = poll.poll(&mut events, None) {
            assert_eq!(error.kind(), ErrorKind::Interrupted, "{error}");
        }
        for event in &events {
            match event.token() {
                LISTENER => {
                    while let Ok((mut client, _)) = listener.accept() {
                        client.set_nodelay(true).expect("a socket");
                        let token = Token(FIRST + clients.len());
                        poll.registry().register(&mut client, token, Interest::READABLE).expect("poll");
                        clients.push(Some((client, Vec::new())));
                    }
                }
                WORKER => {
                    assert!(read(&mut worker, &mut buffer, &mut arrived), "{MISSING}");
                    let mut at = 0;
                    while let Some(header) = arrived[at..].first_chunk::<4>() {
                        let end = at + 4 + u32::from_be_bytes(*header) as usize;
                        let Some(message) = arrived.get(at + 4..end) else { break };
                        if let Some(id) = memmem::find(message, b"4000-8000-") {
                            let number =
                                std::str::from_utf8(&message[id + 10..id + 10 + DIGITS]).expect("the id");
                            let slot = usize::from_str_radix(number, 16).expect("a number");
                            if let Some((client, _)) = &mut clients[slot] {
                                write(client, answer.as_bytes());
                            }
                        }
                        at = end;
                    }
                    arrived.drain(..at);
                }
                Token(token) => {
                    let slot = token - FIRST;
                    let Some((client, arrived)) = &mut clients[slot] else { continue };
                    if !read(client, &mut buffer, arrived) {
                        clients[slot] = None;
                        continue;
                    }
                    if is_whole(arrived) {
                        arrived.clear();
                        request.push(&mut out, slot);
                    }
                }
            }
        }
        // All requests of one turn leave in one write, as they do in the host.
        write(&mut worker, &out);
        out.clear();
    }
}

/// Reads what is there; no at the end of the stream.
fn read(stream: &mut impl Read, buffer: &mut [u8], arrived: &mut Vec<u8>) -> bool {
    loop {
        match stream.read(buffer) {
            Ok(0) => return false,
            Ok(count) => {
                arrived.extend_from_slice(&buffer[..count]);
                if count < buffer.len() {
                    return true;
                }
            }
            Err(error) => return error.kind() == ErrorKind::WouldBlock,
        }
    }
}

fn write(stream: &mut impl Write, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::yield_now(),
            // The client has gone, and its next read says so.
            Err(_) => return,
        }
    }
}

/// One request at a time is on a connection, and its length comes last among the headers of `load`.
fn is_whole(request: &[u8]) -> bool {
    let Some(head) = memmem::find(request, b"\r\n\r\n") else { return false };
    let length = memmem::rfind(&request[..head], b"Content-Length: ").expect("a length") + 16;
    let length = std::str::from_utf8(&request[length..head]).expect("a length");
    request.len() >= head + 4 + length.parse::<usize>().expect("a length")
}
