// npm mcp-remote, between a host on stdio and our server on HTTP:
// node mcp-remote.mjs legacy|auto conformance <url> <url of the proxy> | <scenario> <url> <url with keys>
import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { StdioClientTransport, getDefaultEnvironment } from '@modelcontextprotocol/sdk/client/stdio.js';
import { checkCancel, checkConversation, checkResume } from './checks.mjs';
import { check, main, skip } from './report.mjs';
import { checkScenario, library } from './scenario.mjs';
import { connect } from './sdk.mjs';

const [mode, scenario, url, otherUrl] = process.argv.slice(2);

async function remote(to, headers = {}) {
  const flags = Object.entries(headers).flatMap(([name, value]) => ['--header', `${name}:${value}`]);
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [path('./node_modules/mcp-remote/dist/proxy.js'), to, '--protocol', mode, ...flags],
    // It keeps tokens and locks in its own folder, by default in the home folder.
    env: { ...getDefaultEnvironment(), MCP_REMOTE_CONFIG_DIR: path('./mcp-auth') },
    stderr: 'pipe',
  });
  let log = '';
  transport.stderr.on('data', (data) => {
    log += data;
    process.stderr.write(data);
  });
  const peer = await connect(transport);
  // Only its log shows the revision that it uses with the server.
  assert.equal(log.includes('Remote server speaks MCP 2026-07-28'), mode === 'auto', 'another revision was used');
  return peer;
}

function path(relative) {
  return fileURLToPath(new URL(relative, import.meta.url));
}

async function conformance() {
  const peer = await check('connect', () => remote(url));
  if (!peer) return;
  if (mode === 'auto') {
    // The host's side stays a 2025-11-25 session: a question in a result of the server becomes a request to the host.
    await checkConversation(peer, { modern: true });
    skip('cancel', 'it posts notifications/cancelled, but 2026-07-28 cancels by closing the stream, and it does not');
  } else {
    await checkConversation(peer, { modern: false });
    await checkCancel(peer);
    await checkResume(() => remote(otherUrl));
  }
  await peer.client.close();
}

await main(() =>
  scenario === 'conformance'
    ? conformance()
    : checkScenario(scenario, { open: url, keys: otherUrl }, library(remote)),
);
