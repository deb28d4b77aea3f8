// npm @modelcontextprotocol/sdk over HTTP:
// node sdk-http.mjs conformance <url> <url of the proxy> | <scenario> <url> <url with keys>
import assert from 'node:assert/strict';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { checkCancel, checkConversation, checkResume } from './checks.mjs';
import { check, main } from './report.mjs';
import { checkScenario, library } from './scenario.mjs';
import { connect } from './sdk.mjs';

const [scenario, url, otherUrl] = process.argv.slice(2);

async function connectHttp(to, headers = {}) {
  const transport = new StreamableHTTPClientTransport(new URL(to), { requestInit: { headers } });
  const peer = await connect(transport);
  assert.equal(transport.protocolVersion, '2025-11-25');
  return peer;
}

async function conformance() {
  const peer = await check('connect', () => connectHttp(url));
  if (!peer) return;
  await checkConversation(peer, { modern: false });
  await checkCancel(peer);
  await checkResume(() => connectHttp(otherUrl));
  await peer.client.transport.terminateSession();
  await peer.client.close();
}

await main(() =>
  scenario === 'conformance'
    ? conformance()
    : checkScenario(scenario, { open: url, keys: otherUrl }, library(connectHttp)),
);
