'use strict';

// Functions with HTTP triggers that are tools. The app in Python has the same ones.

const fs = require('node:fs');
const { app } = require('@azure/functions');

const query = (request) => Object.fromEntries(request.query);
const keyed = { authLevel: 'function' };

app.http('GetOrder', {
  ...keyed,
  route: 'orders/{id:int:min(1)}',
  methods: ['GET'],
  handler: (request) => ({
    jsonBody: {
      id: request.params.id,
      url: request.url,
      query: query(request),
      headers: Object.fromEntries(request.headers),
    },
  }),
});

app.http('Orders', {
  ...keyed,
  route: 'orders',
  methods: ['GET', 'POST', 'DELETE'],
  handler: async (request) => ({
    jsonBody: { method: request.method, query: query(request), body: await request.text() },
  }),
});

app.http('Masters', { authLevel: 'admin', route: 'orders/{name:alpha}', handler: () => ({ body: 'masters' }) });

app.http('Hidden', { ...keyed, route: 'hidden/{name}', handler: () => ({ body: 'hidden' }) });

app.http('Wild', {
  ...keyed,
  route: '{area}/{name}',
  methods: ['GET'],
  handler: (request) => ({ jsonBody: request.params }),
});

app.http('Parts', {
  ...keyed,
  route: 'parts/{first=one}/{second?}',
  methods: ['PUT'],
  handler: (request) => ({ jsonBody: request.params }),
});

app.http('Rest', {
  ...keyed,
  route: 'rest/{*path}',
  methods: ['GET'],
  handler: (request) => ({ jsonBody: { path: request.params.path ?? null, url: request.url } }),
});

const bytes = (text) => Buffer.from(text, 'latin1');
const bodies = {
  text: [200, 'text/plain', bytes('plain')],
  object: [200, 'text/plain', bytes(' {"a": 1}')],
  list: [200, 'application/json', bytes('[1, 2]')],
  number: [200, 'text/plain', bytes('7')],
  braces: [200, 'text/plain', bytes('{not json}')],
  page: [200, 'text/html', bytes('<html><body>hello</body></html>')],
  image: [200, 'image/png', bytes('\x89PNG\x00')],
  audio: [200, 'audio/ogg', bytes('Ogg\x00')],
  bytes: [200, 'application/zip', bytes('PK\x00\xff')],
  latin: [200, 'text/plain', bytes('caf\xe9')],
  broken: [200, 'application/json', bytes('{"a": "\xff')],
  empty: [204, 'text/plain', undefined],
  created: [201, 'application/json', bytes('{"made": true}')],
  invalid: [422, 'application/json', bytes('{"detail": [{"loc": ["query", "a"], "msg": "is missing"}]}')],
  missing: [404, 'text/plain', bytes('no such thing')],
  long: [400, 'text/plain', Buffer.from('ä'.repeat(10000))],
  binary: [500, 'application/zip', bytes('PK\x00\xff')],
  silent: [503, 'text/plain', bytes('')],
};

app.http('Reply', {
  ...keyed,
  route: 'reply/{kind}',
  methods: ['GET'],
  handler: (request) => {
    const [status, media, body] = bodies[request.params.kind];
    return { status, headers: { 'content-type': media }, body };
  },
});

app.http('Moved', {
  ...keyed,
  route: 'moved',
  methods: ['GET'],
  handler: (request) => ({ status: 307, headers: { Location: request.query.get('to') } }),
});

app.http('Failing', {
  ...keyed,
  route: 'failing',
  methods: ['POST'],
  handler: () => {
    throw new Error('a secret reason');
  },
});

app.http('Waiting', {
  ...keyed,
  route: 'waiting',
  methods: ['POST'],
  handler: async (_, context) => {
    context.log('mcp-progress 1/2 begun');
    while (!fs.existsSync('go')) await new Promise((resolve) => setTimeout(resolve, 20));
    return { body: 'done' };
  },
});

app.http('Greet', { ...keyed, route: 'greet', handler: () => ({ body: 'Hello from HTTP.' }) });

app.mcpTool('tool_greet', { toolName: 'greet', description: 'Greets.', toolProperties: {}, handler: () => 'Hello from a tool.' });
