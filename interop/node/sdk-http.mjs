// npm @modelcontextprotocol/sdk over HTTP: node sdk-http.mjs <url> <url of the proxy>
import assert from 'node:assert/strict';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { checkCancel, checkConversation, checkResume } from './checks.mjs';
import { check, main } from './report.mjs';
import { connect } from './sdk.mjs';

const [url, proxyUrl] = process.argv.slice(2);

await main(async () => {
  const transport = new StreamableHTTPClientTransport(new URL(url));
  const peer = await check('connect', () => connect(transport));
  if (!peer) return;
  assert.equal(transport.protocolVersion, '2025-11-25');
  await checkConversation(peer, { modern: false });
  await checkCancel(peer);
  await checkResume(() => connect(new StreamableHTTPClientTransport(new URL(proxyUrl))));
  await transport.terminateSession();
  await peer.client.close();
});
