// One test for every server of this comparison, over plain HTTP: node check.mjs http://127.0.0.1:8080/mcp KEY
import assert from 'node:assert/strict';
import { check, main } from '../../interop/node/report.mjs';

const [url, KEY] = process.argv.slice(2);
const DRINKS = [
  { id: 'lemonade', name: 'Lemonade', price: 3.5 },
  { id: 'tea', name: 'Green tea', price: 2.75 },
];

/** A client of one revision. `rpc` returns the HTTP status and the JSON-RPC response, if there is one. */
function peer(revision) {
  const modern = revision === '2026-07-28';
  const envelope = {
    _meta: {
      'io.modelcontextprotocol/protocolVersion': revision,
      'io.modelcontextprotocol/clientInfo': { name: 'check', version: '1.0.0' },
      'io.modelcontextprotocol/clientCapabilities': {},
    },
  };
  let session;
  let id = 0;

  async function post(message, { key = KEY } = {}) {
    const { method, params } = message;
    const name = params?.name ?? params?.uri;
    const response = await fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...(method !== 'initialize' && { 'mcp-protocol-version': revision }),
        ...(modern && { 'mcp-method': method }),
        ...(modern && name && { 'mcp-name': name }),
        ...(session && { 'mcp-session-id': session }),
        ...(key && { 'x-api-key': key }),
      },
      body: JSON.stringify(message),
    });
    session ??= response.headers.get('mcp-session-id');
    const text = await response.text();
    const type = response.headers.get('content-type') ?? '';
    const event = text.split('\n').findLast((line) => line.startsWith('data: {'))?.slice(6);
    const json = type.startsWith('application/json') ? text : event;
    return { status: response.status, ...(json && JSON.parse(json)) };
  }

  const rpc = (method, params = {}, options) =>
    post({ jsonrpc: '2.0', id: ++id, method, params: { ...params, ...(modern && envelope) } }, options);

  /** Returns the result of a request that must succeed. */
  async function get(method, params, options) {
    const { status, result, error } = await rpc(method, params, options);
    assert.equal(status, 200, method);
    assert(result, `${method}: ${JSON.stringify(error)}`);
    return result;
  }

  return {
    modern,
    post,
    rpc,
    get,
    call: (name, args, options) => get('tools/call', { name, arguments: args }, options),
  };
}

/** Returns the schema of a member, which may be inline, a reference, or one of several. */
function member(schema, ...path) {
  const resolve = (it) => (it.$ref ? { ...schema.$defs[it.$ref.split('/').at(-1)], ...it } : it);
  return path.reduce((it, key) => {
    const next = resolve(key === '[]' ? it.items : it.properties[key]);
    return next.anyOf ? { ...next, ...next.anyOf.find(({ type }) => type !== 'null') } : next;
  }, schema);
}

const ORDER = { customerId: 'c-1', items: [{ itemId: 'rolls', quantity: 2 }, { itemId: 'tea', quantity: 1 }] };

const BROKEN = {
  'quantity 0': { ...ORDER, items: [{ itemId: 'tea', quantity: 0 }] },
  'quantity 101': { ...ORDER, items: [{ itemId: 'tea', quantity: 101 }] },
  'quantity 1.5': { ...ORDER, items: [{ itemId: 'tea', quantity: 1.5 }] },
  'no items': { ...ORDER, items: [] },
  'no itemId': { ...ORDER, items: [{ quantity: 1 }] },
  'no customerId': { items: ORDER.items },
  'an unknown priority': { ...ORDER, priority: 'whenever' },
  'long notes': { ...ORDER, notes: 'x'.repeat(501) },
};

/** Requests that need the key. */
const CLOSED = [
  ['tools/call', { name: 'get_order', arguments: { orderId: '123' } }],
  ['tools/call', { name: 'create_order', arguments: ORDER }],
  ['resources/read', { uri: 'menu://categories/drinks' }],
  ['prompts/get', { name: 'order_summary', arguments: { orderId: '123' } }],
];

async function checkServer(revision) {
  const { modern, post, rpc, get, call } = peer(revision);
  const named = (name) => `${name} ${revision}`;

  /** Connects as a client would. */
  async function connect(options) {
    if (modern) return get('server/discover', {}, options);
    const clientInfo = { name: 'check', version: '1.0.0' };
    const result = await get('initialize', { protocolVersion: revision, capabilities: {}, clientInfo }, options);
    assert.equal(result.protocolVersion, revision);
    await post({ jsonrpc: '2.0', method: 'notifications/initialized' }, options);
    return result;
  }

  await check(named('connect'), async () => {
    const result = await connect();
    const serverInfo = result.serverInfo ?? result._meta?.['io.modelcontextprotocol/serverInfo'];
    assert.equal(serverInfo?.name, 'orders-compare');
  });

  await check(named('list'), async () => {
    const { tools } = await get('tools/list');
    const tool = Object.fromEntries(tools.map((tool) => [tool.name, tool]));
    assert.deepEqual(Object.keys(tool).sort(), ['create_order', 'get_order', 'get_time']);
    assert.equal(tool.get_order.annotations.readOnlyHint, true);
    assert.equal(member(tool.get_order.inputSchema, 'orderId').description, "The order's id");
    assert.deepEqual(Object.keys(tool.get_order.outputSchema.properties).sort(), ['id', 'status', 'total']);

    const schema = tool.create_order.inputSchema;
    assert.deepEqual([...schema.required].sort(), ['customerId', 'items']);
    assert.equal(member(schema, 'items').minItems, 1);
    const { type, minimum, maximum } = member(schema, 'items', '[]', 'quantity');
    assert.deepEqual([type, minimum, maximum], ['integer', 1, 100]);
    assert.deepEqual(member(schema, 'priority').enum, ['low', 'normal', 'high', 'urgent']);
    assert.equal(member(schema, 'priority').default, 'normal');
    assert.equal(member(schema, 'notes').maxLength, 500);

    const { resourceTemplates } = await get('resources/templates/list');
    assert.equal(resourceTemplates[0].uriTemplate, 'menu://categories/{categoryId}');
    assert.equal(resourceTemplates[0].name, 'Menu category');
    const { prompts } = await get('prompts/list');
    assert.equal(prompts[0].name, 'order_summary');
    assert.deepEqual(prompts[0].arguments.map(({ name, required = false }) => [name, required]), [
      ['orderId', true],
      ['tone', false],
    ]);
  });

  await check(named('call'), async () => {
    const known = await call('get_order', { orderId: '123' });
    assert.deepEqual(known.structuredContent, { id: '123', status: 'open', total: 18.5 });
    assert.deepEqual(JSON.parse(known.content[0].text), known.structuredContent);
    const { structuredContent: created } = await call('create_order', { ...ORDER, notes: 'no onions' });
    assert.deepEqual([created.status, created.total], ['open', 15.75]);
    const { structuredContent: found } = await call('get_order', { orderId: created.id });
    assert.deepEqual(found, created);
    const { content } = await call('get_time', {});
    assert(Math.abs(Date.now() - Date.parse(content[0].text)) < 60_000, content[0].text);
  });

  await check(named('broken'), async () => {
    for (const [what, args] of Object.entries(BROKEN)) {
      const { result, error } = await rpc('tools/call', { name: 'create_order', arguments: args });
      assert(error || result?.isError, `${what} was accepted`);
    }
  });

  await check(named('unknown'), async () => {
    const { isError, content } = await call('get_order', { orderId: '999' });
    assert.equal(isError, true);
    assert.equal(content[0].text, 'unknown order: 999');
  });

  await check(named('read'), async () => {
    const { contents } = await get('resources/read', { uri: 'menu://categories/drinks' });
    assert.equal(contents[0].mimeType, 'application/json');
    assert.deepEqual(JSON.parse(contents[0].text), DRINKS);
    for (const category of ['desserts', 'constructor']) {
      const { error } = await rpc('resources/read', { uri: `menu://categories/${category}` });
      assert([-32002, -32602].includes(error?.code), `${category}: ${JSON.stringify(error)}`);
    }
  });

  await check(named('prompt'), async () => {
    const { messages } = await get('prompts/get', {
      name: 'order_summary',
      arguments: { orderId: '123', tone: 'dry' },
    });
    assert.equal(messages.length, 1);
    assert.equal(messages[0].role, 'user');
    assert.match(messages[0].content.text, /123.*dry/);
    const { error } = await rpc('prompts/get', { name: 'order_summary', arguments: {} });
    assert(error, 'a prompt without its argument was accepted');
  });

  await check(named('key'), async () => {
    for (const [method, params] of CLOSED) {
      for (const key of [null, 'x', `${KEY}x`, KEY.replace(/.$/, '!')]) {
        const { status } = await rpc(method, params, { key });
        assert.equal(status, 401, `${method} ${params.name ?? params.uri} with key ${key}`);
      }
    }
    // A batch must not bypass the key.
    const [method, params] = CLOSED[0];
    const { status } = await post([{ jsonrpc: '2.0', id: 1, method, params }], { key: null });
    assert(status >= 400, `a batch without a key: ${status}`);
  });

  await check(named('open'), async () => {
    await connect({ key: null });
    const { content } = await call('get_time', {}, { key: null });
    assert(Date.parse(content[0].text) > 0, content[0].text);
  });
}

await main(async () => {
  for (const revision of ['2025-11-25', '2026-07-28']) await checkServer(revision);
});
