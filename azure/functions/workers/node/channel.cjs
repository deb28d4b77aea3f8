'use strict';

// The stream to the host. A frame has 4 bytes of length (big-endian) and that many bytes of JSON: one message.
// worker.cjs handles the messages.

const net = require('node:net');

const MAX_FRAME_BYTES = 256 * 1024 * 1024;
const READ_BUFFER_BYTES = 256 * 1024;
const HEADER_BYTES = 4;
/** The maximum number of messages per turn of the event loop, so that early answers do not wait for later ones. */
const AT_ONCE = 12;

/** Connects to `unix:/path` or `tcp:host:port`. `on` has `open()`, `message(object)` and `close(sentence or null)`. */
function connect(address, on) {
  const channel = new Channel();
  let arrived = [];
  const frames = new FrameReader((text) => arrived.push(text));
  let closed = false;
  const close = (reason) => {
    if (closed) return;
    closed = true;
    on.close(reason);
  };
  const unreadable = (error) => close(`The host sent a message that cannot be read: ${error.message}`);
  const handle = () => {
    const now = arrived;
    arrived = now.length > AT_ONCE ? now.splice(AT_ONCE) : [];
    if (arrived.length > 0) setImmediate(handle);
    try {
      for (const text of now) on.message(JSON.parse(text));
    } catch (error) {
      unreadable(error);
    }
  };
  const socket = net.connect({
    ...parseAddress(address),
    // One buffer for all reads: frames are decoded out of it before the next read fills it.
    onread: {
      buffer: Buffer.allocUnsafeSlow(READ_BUFFER_BYTES),
      callback(length, buffer) {
        const waiting = arrived.length > 0;
        try {
          frames.push(buffer, length);
        } catch (error) {
          unreadable(error);
        }
        if (!waiting && arrived.length > 0) handle();
        return !closed;
      },
    },
  });
  socket.setNoDelay(true);
  socket.on('connect', on.open);
  socket.on('end', () =>
    close(frames.isInsideFrame() ? 'The host closed the connection in the middle of a message.' : null),
  );
  socket.on('error', (error) => close(`The connection to the host failed: ${error.message}`));
  socket.on('close', () => close(null));
  channel.socket = socket;
  return channel;
}

class Channel {
  socket = null;
  #waiting = [];
  #waitingBytes = 0;

  /** Queues a message. All messages of one turn of the event loop leave in one write. */
  send(message) {
    const text = JSON.stringify(message);
    const length = Buffer.byteLength(text);
    if (length > MAX_FRAME_BYTES) {
      throw new Error(`The message has ${length} bytes, but the limit is ${MAX_FRAME_BYTES} bytes.`);
    }
    if (this.#waiting.length === 0) process.nextTick(() => this.flush());
    this.#waiting.push(text, length);
    this.#waitingBytes += HEADER_BYTES + length;
  }

  /** Writes the queued messages. `done` is called when they are written. */
  flush(done) {
    const waiting = this.#waiting;
    const bytes = Buffer.allocUnsafe(this.#waitingBytes);
    this.#waiting = [];
    this.#waitingBytes = 0;
    let at = 0;
    for (let i = 0; i < waiting.length; i += 2) {
      at = bytes.writeUInt32BE(waiting[i + 1], at);
      at += bytes.write(waiting[i], at);
    }
    if (at > 0 || done) this.socket.write(bytes, done);
  }
}

class FrameReader {
  #onFrame;
  #header = Buffer.alloc(HEADER_BYTES);
  #headerFilled = 0;
  #body = null;
  #bodyFilled = 0;

  constructor(onFrame) {
    this.#onFrame = onFrame;
  }

  isInsideFrame() {
    return this.#headerFilled > 0 || this.#body !== null;
  }

  /** Reads the first `end` bytes of `chunk`. A frame is copied, once, only if it continues in the next chunk. */
  push(chunk, end) {
    let at = 0;
    while (at < end) {
      if (this.#body === null) {
        while (this.#headerFilled < HEADER_BYTES && at < end) this.#header[this.#headerFilled++] = chunk[at++];
        if (this.#headerFilled < HEADER_BYTES) return;
        this.#headerFilled = 0;
        const length = this.#header.readUInt32BE(0);
        if (length > MAX_FRAME_BYTES) {
          throw new Error(`it has ${length} bytes, but the limit is ${MAX_FRAME_BYTES} bytes.`);
        }
        if (length <= end - at) {
          const start = at;
          at += length;
          this.#onFrame(chunk.toString('utf8', start, at));
          continue;
        }
        this.#body = Buffer.allocUnsafeSlow(length);
        this.#bodyFilled = 0;
      }
      const copied = chunk.copy(this.#body, this.#bodyFilled, at, end);
      at += copied;
      this.#bodyFilled += copied;
      if (this.#bodyFilled === this.#body.length) {
        const body = this.#body;
        this.#body = null;
        this.#onFrame(body.toString('utf8'));
      }
    }
  }
}

function parseAddress(address) {
  if (address.startsWith('unix:')) return { path: address.slice('unix:'.length) };
  const tcp = /^tcp:(.+):(\d+)$/.exec(address);
  if (tcp) return { host: tcp[1], port: Number(tcp[2]) };
  throw new Error(`"${address}" is not a valid address: expected unix:/path or tcp:host:port.`);
}

module.exports = { connect };
