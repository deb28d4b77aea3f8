'use strict';

// Functions whose requests and responses stream.

const fs = require('node:fs');
const { app } = require('@azure/functions');

app.setup({ enableHttpStream: true });

/** Answers with each chunk of the request as it arrives, in upper case. */
app.http('Echo', {
  route: 'echo/{id}',
  methods: ['POST'],
  handler: (request) => ({
    status: 201,
    headers: { 'content-type': 'text/x-echo', 'x-id': request.params.id, 'x-url': request.url, 'x-test': request.headers.get('x-test') },
    cookies: [{ name: 'a', value: 'b', path: '/' }],
    body: request.body.pipeThrough(
      new TransformStream({
        transform: (chunk, controller) => controller.enqueue(Buffer.from(chunk).toString().toUpperCase()),
      }),
    ),
  }),
});

/** Writes a line, and another one when the file `go` exists. */
app.http('Lines', {
  route: 'lines',
  methods: ['GET'],
  handler: (_, context) => ({
    headers: { 'content-type': 'text/event-stream' },
    body: new ReadableStream({
      async start(controller) {
        controller.enqueue(Buffer.from('data: first\n\n'));
        while (!fs.existsSync('go')) await new Promise((resolve) => setTimeout(resolve, 20));
        controller.enqueue(Buffer.from('data: second\n\n'));
        controller.close();
        context.log('all lines are written');
      },
    }),
  }),
});

app.http('Failing', {
  route: 'failing',
  handler: () => {
    throw new Error('a secret reason');
  },
});

app.http('Plain', { route: 'plain', handler: async (request) => ({ body: `${request.method} ${await request.text()}` }) });

app.mcpTool('greet', { toolName: 'greet', description: 'Greets.', toolProperties: {}, handler: () => 'Hello from a tool.' });
