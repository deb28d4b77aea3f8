// npm @modelcontextprotocol/client over HTTP:
// node client.mjs legacy|auto conformance <url> <url of the proxy> | <scenario> <url> <url with keys>
import assert from 'node:assert/strict';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { answer, checkCancel, checkConversation, checkResume } from './checks.mjs';
import { check, main } from './report.mjs';
import { checkScenario, library } from './scenario.mjs';

const [mode, scenario, url, otherUrl] = process.argv.slice(2);
const modern = mode === 'auto';

async function connect(to, headers = {}) {
  const client = new Client(
    { name: 'interop-client', version: '1.0.0' },
    { capabilities: { elicitation: {} }, ...(modern && { versionNegotiation: { mode } }) },
  );
  client.setRequestHandler('elicitation/create', answer);
  await client.connect(new StreamableHTTPClientTransport(new URL(to), { requestInit: { headers } }));
  assert.equal(client.getNegotiatedProtocolVersion(), modern ? '2026-07-28' : '2025-11-25');
  return { client, call: (name, args, options) => client.callTool({ name, arguments: args }, options) };
}

async function conformance() {
  const peer = await check('connect', () => connect(url));
  if (!peer) return;
  await checkConversation(peer, { modern });
  await checkCancel(peer);
  // From 2026-07-28 on a stream cannot be resumed: a dropped connection is a cancelled call.
  if (!modern) await checkResume(() => connect(otherUrl));
  await peer.client.close();
}

await main(() =>
  scenario === 'conformance'
    ? conformance()
    : checkScenario(scenario, { open: url, keys: otherUrl }, library(connect)),
);
