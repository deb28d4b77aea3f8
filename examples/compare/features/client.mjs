// A small client of MCP servers over HTTP, for the probes. It answers questions of the server.

const MODERN = '2026-07-28';

/** Splits a stream of server-sent events into JSON messages. */
async function* messagesOf(body) {
  let text = '';
  for await (const chunk of body.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    for (let end; (end = text.search(/\r?\n\r?\n/)) >= 0; ) {
      const event = text.slice(0, end);
      text = text.slice(end).replace(/^\r?\n\r?\n/, '');
      const lines = event.split(/\r?\n/).filter((line) => line.startsWith('data:'));
      const data = lines.map((line) => line.slice(5).trimStart()).join('\n');
      if (data) yield JSON.parse(data);
    }
  }
}

/** Fails if something takes longer than some seconds. */
export function within(seconds, promise, what = 'an answer') {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no ${what} within ${seconds} s`)), seconds * 1000);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

export class Client {
  #url;
  #headers;
  #capabilities;
  #answers;
  #session;
  #nextId = 0;
  #stop = new AbortController();
  #waiting = new Map();
  /** All notifications that came. */
  notifications = [];
  /** The result of the handshake or of the discovery. */
  opening;

  /** `answers` has a function for each method that the server may call. */
  constructor(url, revision, { headers = {}, capabilities = {}, answers = {} } = {}) {
    this.#url = url;
    this.revision = revision;
    this.modern = revision === MODERN;
    this.#headers = headers;
    this.#capabilities = capabilities;
    this.#answers = answers;
  }

  static async connect(url, revision, options) {
    const client = new Client(url, revision, options);
    await client.open();
    return client;
  }

  async open() {
    const clientInfo = { name: 'probe', version: '1.0.0' };
    if (this.modern) {
      this.opening = await this.request('server/discover');
      return;
    }
    const params = { protocolVersion: this.revision, capabilities: this.#capabilities, clientInfo };
    this.opening = await this.request('initialize', params);
    await this.notify('notifications/initialized');
    // Some servers send requests and notifications on this stream only.
    void this.#listen();
  }

  async close() {
    this.#stop.abort();
    if (this.#session) {
      await fetch(this.#url, { method: 'DELETE', headers: this.#common() }).catch(() => {});
    }
  }

  #common() {
    return {
      ...this.#headers,
      ...(this.#session && { 'mcp-session-id': this.#session }),
      ...((this.modern || this.opening) && { 'mcp-protocol-version': this.revision }),
    };
  }

  async #listen() {
    try {
      const headers = { ...this.#common(), accept: 'text/event-stream' };
      const response = await fetch(this.#url, { headers, signal: this.#stop.signal });
      if (!response.ok || !response.headers.get('content-type')?.startsWith('text/event-stream')) return;
      for await (const message of messagesOf(response.body)) await this.#take(message);
    } catch {
      // The stream ends with the client.
    }
  }

  /** Handles a message of the server. */
  async #take(message) {
    if (message.method && message.id !== undefined) {
      const answer = this.#answers[message.method];
      const reply = answer
        ? { result: answer(message.params) }
        : { error: { code: -32601, message: 'not supported' } };
      await this.post({ jsonrpc: '2.0', id: message.id, ...reply });
    } else if (message.method) {
      this.notifications.push(message);
    } else {
      this.#waiting.get(message.id)?.(message);
      this.#waiting.delete(message.id);
    }
  }

  async post(message, { signal } = {}) {
    const { method, params } = message;
    const name = params?.name ?? params?.uri ?? params?.taskId;
    return fetch(this.#url, {
      method: 'POST',
      signal,
      headers: {
        ...this.#common(),
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...(this.modern && method && { 'mcp-method': method }),
        ...(this.modern && name && { 'mcp-name': name }),
      },
      body: JSON.stringify(message),
    });
  }

  async notify(method, params) {
    const response = await this.post({ jsonrpc: '2.0', method, ...(params && { params }) });
    await response.arrayBuffer();
  }

  /** Sends a request and returns the response, or the HTTP status if there is no JSON-RPC response. */
  async send(method, params = {}, { signal, id = ++this.#nextId } = {}) {
    const envelope = {
      'io.modelcontextprotocol/protocolVersion': this.revision,
      'io.modelcontextprotocol/clientInfo': { name: 'probe', version: '1.0.0' },
      'io.modelcontextprotocol/clientCapabilities': this.#capabilities,
    };
    const given = this.modern ? { ...params, _meta: { ...envelope, ...params._meta } } : params;
    const answered = new Promise((resolve) => this.#waiting.set(id, resolve));
    const response = await this.post({ jsonrpc: '2.0', id, method, params: given }, { signal });
    this.#session ??= response.headers.get('mcp-session-id');
    const type = response.headers.get('content-type') ?? '';
    if (type.startsWith('text/event-stream')) {
      for await (const message of messagesOf(response.body)) {
        if (message.id === id && !message.method) return { status: response.status, ...message };
        await this.#take(message);
      }
      return { status: response.status, ...(await within(10, answered)) };
    }
    const text = await response.text();
    if (!type.startsWith('application/json') || !text) return { status: response.status, text };
    return { status: response.status, ...JSON.parse(text) };
  }

  /** Returns the result of a request. Answers the questions of a modern server by sending it again. */
  async request(method, params = {}, options) {
    for (let given = params; ; ) {
      const { status, result, error } = await within(20, this.send(method, given, options), method);
      if (error) throw Object.assign(new Error(error.message), { code: error.code, data: error.data, status });
      if (!result) throw Object.assign(new Error(`HTTP ${status}`), { status });
      if (result.resultType !== 'input_required') return result;
      const answers = Object.entries(result.inputRequests).map(([key, { method, params }]) => {
        const answer = this.#answers[method];
        if (!answer) throw new Error(`the server asks for ${method}`);
        return [key, answer(params)];
      });
      given = { ...params, inputResponses: Object.fromEntries(answers), requestState: result.requestState };
    }
  }

  /** Calls a tool and returns its result. A failed tool has `isError`. */
  call(name, args = {}, options) {
    return this.request('tools/call', { name, arguments: args }, options);
  }

  /** Calls a tool and returns its text, whether it failed or not. A JSON-RPC error is its message. */
  async text(name, args) {
    try {
      const { content } = await this.call(name, args);
      return content.map((item) => item.text).join('\n');
    } catch (error) {
      return error.message;
    }
  }

  /** Returns whether a notification came, waiting a little for it. */
  async saw(method, fits = () => true) {
    for (let tries = 0; tries < 30; tries++) {
      if (this.notifications.some((note) => note.method === method && fits(note.params))) return true;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    return false;
  }
}
