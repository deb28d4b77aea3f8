'use strict';

// Functions with HTTP triggers, and one tool. The app in Python has the same ones.

const { app, input, output } = require('@azure/functions');

const query = (request) => Object.fromEntries(request.query);

app.http('Echo', {
  route: 'echo/{id:int?}',
  methods: ['GET', 'POST', 'PUT'],
  authLevel: 'anonymous',
  handler: async (request, context) => {
    context.log(`echo of ${request.method}`);
    return {
      jsonBody: {
        method: request.method,
        url: request.url,
        query: query(request),
        params: request.params,
        header: request.headers.get('x-test'),
        body: await request.text(),
        trace: context.traceContext.traceParent,
      },
    };
  },
});

app.http('Created', {
  route: 'created',
  handler: () => ({
    status: 201,
    body: 'made',
    headers: { 'X-Made': 'yes', 'content-type': 'text/x-made; charset=utf-8' },
    cookies: [
      { name: 'a', value: '1', path: '/', httpOnly: true, sameSite: 'Lax', maxAge: 60 },
      { name: 'b', value: '2', secure: true, expires: new Date('2026-10-21T07:28:00Z') },
    ],
  }),
});

app.http('Binary', {
  route: 'binary',
  methods: ['POST'],
  handler: async (request) => ({
    body: new Uint8Array(await request.arrayBuffer()).reverse(),
    headers: { 'content-type': 'application/octet-stream' },
  }),
});

app.http('Failing', {
  route: 'failing',
  handler: () => {
    throw new Error('a secret reason');
  },
});

app.http('Nothing', { route: 'nothing', handler: () => undefined });

app.http('Strange', { route: 'strange', handler: (request) => ({ status: Number(request.query.get('status')), body: 'x' }) });

const file = { path: 'notes/{folder}/{name}.txt', connection: 'AzureWebJobsStorage' };

const saved = output.storageBlob(file);
app.http('Save', {
  route: 'save/{folder}',
  methods: ['POST'],
  extraOutputs: [saved],
  handler: async (request, context) => {
    context.extraOutputs.set(saved, (await request.json()).text);
    return { body: 'saved' };
  },
});

const loaded = input.storageBlob(file);
app.http('Load', {
  route: 'load/{folder}/{name}',
  methods: ['GET'],
  extraInputs: [loaded],
  handler: (_, context) => {
    const text = context.extraInputs.get(loaded);
    return text == null ? { status: 404, body: 'none' } : { body: text };
  },
});

app.http('Keyed', { route: 'keyed', authLevel: 'function', handler: () => ({ body: 'keyed' }) });

app.http('Masters', { route: 'masters', authLevel: 'admin', handler: () => ({ body: 'masters' }) });

app.http('Slow', {
  route: 'slow',
  handler: async (request) => {
    await new Promise((resolve) => setTimeout(resolve, Number(request.query.get('seconds')) * 1000));
    return { body: 'slept' };
  },
});

app.mcpTool('greet', { toolName: 'greet', description: 'Greets.', toolProperties: {}, handler: () => 'Hello from a tool.' });
