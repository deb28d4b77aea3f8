// A connected client, with the functions by which the tour calls tools.
import assert from 'node:assert/strict';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

export class Peer {
  /** The names of the tools that were called. */
  called = new Set();
  /** The questions to the user, and the response to the next questions. */
  asked = [];
  agrees = true;

  static overHttp(url, modern, capabilities) {
    return Peer.over(new StreamableHTTPClientTransport(new URL(url)), modern, capabilities);
  }

  static async over(transport, modern, capabilities = {}) {
    const peer = new Peer();
    peer.modern = modern;
    peer.client = new Client(
      { name: 'search-tour', version: '1.0.0' },
      { capabilities: { elicitation: {}, ...capabilities }, ...(modern && { versionNegotiation: { mode: 'auto' } }) },
    );
    peer.client.setRequestHandler('elicitation/create', ({ params }) => {
      peer.asked.push(params.message);
      return peer.agrees ? { action: 'accept', content: { confirm: true } } : { action: 'decline' };
    });
    await peer.client.connect(transport);
    assert.equal(peer.client.getNegotiatedProtocolVersion(), modern ? '2026-07-28' : '2025-11-25');
    return peer;
  }

  /** Returns the structured result of a successful call. The text must be equal. */
  async call(name, args = {}, options) {
    const result = await this.result(name, args, options);
    assert(!result.isError, `${name} failed: ${result.content[0]?.text}`);
    assert.deepEqual(JSON.parse(result.content[0].text), result.structuredContent);
    return result.structuredContent;
  }

  /** Returns the JSON of a call that must fail with this kind of error. */
  async refused(kind, name, args) {
    const text = await this.failed(name, args);
    const told = JSON.parse(text);
    assert.equal(told.error, kind, text);
    assert(told.message, `there is no message: ${text}`);
    return told;
  }

  /** Returns the text of a call that must fail. */
  async failed(name, args) {
    const result = await this.result(name, args);
    assert(result.isError, `${name} worked: ${JSON.stringify(result).slice(0, 300)}`);
    return result.content[0].text;
  }

  async result(name, args, options) {
    this.called.add(name);
    return this.client.callTool({ name, arguments: args }, options);
  }

  /** Runs `body` while the user declines all questions. This question must be asked. */
  async declining(question, body) {
    this.agrees = false;
    try {
      return await this.answering(question, body);
    } finally {
      this.agrees = true;
    }
  }

  /** Runs `body`, in which the user must get this question exactly once. */
  async answering(question, body) {
    this.asked = [];
    const value = await body();
    assert.equal(this.asked.length, 1, `the user was asked ${this.asked.length} times`);
    assert.match(this.asked[0], question);
    return value;
  }

  /** Returns the items of all pages of a list. */
  async pages(name, args, limit) {
    const pages = [];
    let cursor;
    do {
      const page = await this.call(name, { ...args, limit, ...(cursor && { cursor }) });
      assert.equal(page.hasMore, page.nextCursor !== undefined, 'hasMore and nextCursor differ');
      assert(page.items.length <= limit, `${page.items.length} items are more than the limit ${limit}`);
      pages.push(page.items);
      cursor = page.nextCursor;
      assert(pages.length < 100, 'the list does not end');
    } while (cursor);
    return pages;
  }
}
