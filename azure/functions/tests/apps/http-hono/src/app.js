'use strict';

// An app with routes and middleware in the style of Express, behind one function whose responses stream.

const fs = require('node:fs');
const { app } = require('@azure/functions');
const { Hono } = require('hono');
const { streamSSE } = require('hono/streaming');

const api = new Hono();

api.use(async (c, next) => {
  await next();
  c.header('x-middleware', 'yes');
});
api.get('/items/:id', (c) => c.json({ id: c.req.param('id'), query: c.req.query() }));
api.post('/items', async (c) => c.json(await c.req.json(), 201));
api.get('/events', (c) =>
  streamSSE(c, async (stream) => {
    await stream.writeSSE({ data: 'first' });
    while (!fs.existsSync('go')) await stream.sleep(20);
    await stream.writeSSE({ data: 'second' });
  }),
);
api.get('/failing', () => {
  throw new Error('a secret reason');
});

app.setup({ enableHttpStream: true });
app.http('api', {
  route: '{*path}',
  methods: ['GET', 'POST', 'PUT', 'DELETE'],
  handler: async (request) => {
    const { url, method, headers, body } = request;
    const response = await api.fetch(new Request(url, { method, headers, body, duplex: 'half' }));
    return { status: response.status, headers: response.headers, body: response.body };
  },
});
