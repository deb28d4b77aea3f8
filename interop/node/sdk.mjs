// npm @modelcontextprotocol/sdk, the package before the split into client and server.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { answer } from './checks.mjs';

export async function connect(transport) {
  const client = new Client({ name: 'interop-sdk', version: '1.0.0' }, { capabilities: { elicitation: {} } });
  client.setRequestHandler(ElicitRequestSchema, answer);
  await client.connect(transport);
  return { client, call: (name, args, options) => client.callTool({ name, arguments: args }, undefined, options) };
}
