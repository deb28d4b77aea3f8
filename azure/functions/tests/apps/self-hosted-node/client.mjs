// The official client of npm: client.mjs URL. Prints what it got as JSON.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const client = new Client({ name: 'test', version: '1.0.0' });
const transport = new StreamableHTTPClientTransport(new URL(process.argv[2]));
await client.connect(transport);
const { tools } = await client.listTools();
const added = await client.callTool({ name: 'add', arguments: { a: 2, b: 3 } });
const progress = [];
const onprogress = ({ progress: done, total }) => progress.push([done, total]);
await client.callTool({ name: 'steps', arguments: { count: 3 } }, undefined, { onprogress });
const found = {
  server: client.getServerVersion().name,
  revision: transport.protocolVersion,
  tools: tools.map((tool) => tool.name).sort(),
  sum: added.content[0].text,
  progress,
};
console.log(JSON.stringify(found));
await client.close();
