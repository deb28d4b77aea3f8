// A server of the npm SDK, without sessions: each request has a server and a transport of its own.
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { createServer } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { z } from 'zod';

function server() {
  const server = new McpServer({ name: 'node-server', version: '1.0.0' });
  const numbers = { a: z.number(), b: z.number() };
  server.registerTool('add', { description: 'Adds two numbers.', inputSchema: numbers }, ({ a, b }) => ({
    content: [{ type: 'text', text: String(a + b) }],
  }));
  const steps = { description: 'Reports progress.', inputSchema: { count: z.number() } };
  server.registerTool('steps', steps, async ({ count }, { _meta, sendNotification }) => {
    for (let progress = 1; progress <= count; progress += 1) {
      const params = { progressToken: _meta.progressToken, progress, total: count };
      await sendNotification({ method: 'notifications/progress', params });
      await setTimeout(50);
    }
    return { content: [{ type: 'text', text: 'done' }] };
  });
  return server;
}

createServer(async (request, response) => {
  if (request.url !== '/mcp' || request.method !== 'POST') return response.writeHead(405).end();
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
  response.on('close', () => transport.close());
  await server().connect(transport);
  await transport.handleRequest(request, response);
}).listen(process.env.PORT);
