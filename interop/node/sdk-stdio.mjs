// npm @modelcontextprotocol/sdk over stdio: node sdk-stdio.mjs <server>
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { checkCancel, checkConversation } from './checks.mjs';
import { check, main } from './report.mjs';
import { connect } from './sdk.mjs';

const [server] = process.argv.slice(2);

await main(async () => {
  const peer = await check('connect', () => connect(new StdioClientTransport({ command: server, args: ['--stdio'] })));
  if (!peer) return;
  await checkConversation(peer, { modern: false });
  await checkCancel(peer);
  await peer.client.close();
});
