//! [`RoutedBody`]: the body of a response, of this host or of a server behind it.

use std::pin::Pin;
use std::task::{Context, Poll};

use bindpost_mcp_http::{BodyChunk, ReplyBody};
use hyper::body::{Body, Frame, SizeHint};

use crate::routes::stream::StreamedBody;
use crate::self_hosted::ServerBody;

/// The body of a response.
#[derive(Debug)]
pub(crate) enum RoutedBody {
    /// Of this host.
    Reply(ReplyBody),
    /// Of a function that streams.
    Streamed(Box<StreamedBody>),
    /// Of the server of a self-hosted app.
    Forwarded(Box<ServerBody>),
}

impl Body for RoutedBody {
    type Data = BodyChunk;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<BodyChunk>, hyper::Error>>> {
        match &mut *self {
            RoutedBody::Reply(body) => Pin::new(body)
                .poll_frame(context)
                .map(|frame| frame.map(|frame| frame.map_err(|never| match never {}))),
            RoutedBody::Streamed(body) => Pin::new(&mut **body)
                .poll_frame(context)
                .map(|frame| frame.map(|frame| frame.map(|frame| frame.map_data(BodyChunk::Shared)))),
            RoutedBody::Forwarded(body) => Pin::new(&mut **body)
                .poll_frame(context)
                .map(|frame| frame.map(|frame| frame.map(|frame| frame.map_data(BodyChunk::Shared)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            RoutedBody::Reply(body) => body.is_end_stream(),
            RoutedBody::Streamed(body) => body.is_end_stream(),
            RoutedBody::Forwarded(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            RoutedBody::Reply(body) => body.size_hint(),
            RoutedBody::Streamed(body) => body.size_hint(),
            RoutedBody::Forwarded(body) => body.size_hint(),
        }
    }
}
