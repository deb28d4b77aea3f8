// npm @modelcontextprotocol/sdk over stdio: node sdk-stdio.mjs conformance|<scenario> <server>
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { checkCancel, checkConversation } from './checks.mjs';
import { check, main } from './report.mjs';
import { checkScenario, library } from './scenario.mjs';
import { connect } from './sdk.mjs';

const [scenario, server] = process.argv.slice(2);

function connectStdio(command) {
  return connect(new StdioClientTransport({ command, args: ['--stdio'] }));
}

async function conformance() {
  const peer = await check('connect', () => connectStdio(server));
  if (!peer) return;
  await checkConversation(peer, { modern: false });
  await checkCancel(peer);
  await peer.client.close();
}

await main(() =>
  scenario === 'conformance' ? conformance() : checkScenario(scenario, { open: server }, library(connectStdio)),
);
