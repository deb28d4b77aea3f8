// A tour of `bindpost search` and its sample with npm @modelcontextprotocol/client: every tool, resource and prompt.
// node tour.mjs legacy|auto <bindpost> <empty folder>
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { checkBeyond } from './beyond.mjs';
import { checkDefinitions, checkDeletions } from './definitions.mjs';
import { checkDocuments } from './documents.mjs';
import { checkIndexing } from './indexing.mjs';
import { checkOperations } from './operations.mjs';
import { Peer } from './peer.mjs';
import { checkQueries } from './queries.mjs';
import { checkPrompts, checkResources } from './reading.mjs';
import { check, main } from './report.mjs';
import { start } from './server.mjs';
import { checkReadOnly, checkStdio } from './starts.mjs';

const [mode, program, folder] = process.argv.slice(2);
const modern = mode === 'auto';

/** Returns the path of a new folder for a server. */
function place(name) {
  const path = join(folder, name);
  mkdirSync(path, { recursive: true });
  return path;
}

async function wholeTour() {
  const server = await check('start', () => start(program, place('whole')));
  const peer = server && (await check('connect', () => Peer.overHttp(server.mcp, modern)));
  if (!peer) return;
  const listed = await check('list tools', async () => {
    const { tools } = await peer.client.listTools();
    assert(JSON.stringify(tools).length < 40_000, 'tools/list is larger than 40 KB');
    assert(
      tools.every((tool) => tool.description && tool.annotations),
      'a tool has no description or no hints',
    );
    return tools.map((tool) => tool.name);
  });

  await checkResources(peer);
  await checkPrompts(peer);
  await checkQueries(peer);
  await checkDocuments(peer);
  await checkDefinitions(peer);
  await checkIndexing(peer, server);
  await checkBeyond(peer);
  await checkOperations(peer);
  await checkDeletions(peer);

  await check('every listed tool was called', async () => {
    assert(listed?.length > 0, 'no tool is listed');
    assert.deepEqual(
      listed.filter((name) => !peer.called.has(name)),
      [],
    );
  });
  await peer.client.close();
  server.stop();
}

await main(async () => {
  await wholeTour();
  await checkReadOnly(program, place('read-only'), modern);
  await checkStdio(program, place('stdio'), modern);
});
