// Other ways to start the server: read-only, and on stdin and stdout.
import assert from 'node:assert/strict';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { Peer } from './peer.mjs';
import { check } from './report.mjs';
import { environment, start } from './server.mjs';

export async function checkReadOnly(program, folder, modern) {
  const server = await check('start with --read-only', () => start(program, folder, ['--read-only']));
  const peer = server && (await check('read-only connect', () => Peer.overHttp(server.mcp, modern)));
  if (!peer) return;

  await check('read-only lists no tool that writes', async () => {
    const { tools } = await peer.client.listTools();
    const writing = tools.filter(
      (tool) => /^(create|delete|upload|run)/.test(tool.name) || !tool.annotations.readOnlyHint,
    );
    assert.deepEqual(
      writing.map((tool) => tool.name),
      [],
    );
    const named = new Map(tools.map((tool) => [tool.name, tool.inputSchema.properties]));
    assert(!('apply' in named.get('planIndexChange')), 'planIndexChange can apply');
    assert(!('run' in named.get('diagnoseIndexer')), 'diagnoseIndexer can run');
    await assert.rejects(peer.result('deleteIndex', { indexName: 'trails' }), /deleteIndex/);
  });

  await check('read-only refuses operations that write', async () => {
    const { items } = await peer.call('findOperations', { limit: 100 });
    assert(items.length > 0 && items.every((item) => item.readOnly), JSON.stringify(items));
    for (const [operation, args] of [
      ['Indexes_Delete', { indexName: 'trails' }],
      ['Skillsets_Delete', { skillsetName: 'x' }],
      ['Indexers_Run', { indexerName: 'trail-reports-indexer' }],
    ]) {
      await peer.failed('callOperation', { operation, arguments: args });
      await peer.failed('describeOperation', { operation });
    }
    assert.equal((await peer.call('countDocuments', { indexName: 'trails' })).count, 40);
  });

  await check('read-only still searches, and says so in prompts', async () => {
    const found = await peer.call('searchDocuments', { indexName: 'trails', search: 'lantern', select: 'id' });
    assert.equal(found.items[0].id, 't01');
    const given = { sample: '{}', needs: 'search' };
    const { messages } = await peer.client.getPrompt({ name: 'design_index', arguments: given });
    assert.match(messages[0].content.text, /read-only/);
    // Tools that only change data are not listed.
    const { prompts } = await peer.client.listPrompts();
    assert.equal(prompts.length, 4);
  });
  await peer.client.close();
  server.stop();
}

/** A server on stdio ends when its stdin ends, even if the tour fails. */
export async function checkStdio(program, folder, modern) {
  const transport = new StdioClientTransport({
    command: program,
    args: ['search', '--stdio'],
    cwd: folder,
    env: environment(),
    stderr: 'inherit',
  });
  const peer = await check('stdio connect', () => Peer.over(transport, modern));
  if (!peer) return;

  await check('stdio list', async () => {
    const { tools } = await peer.client.listTools();
    const { resources } = await peer.client.listResources();
    const { prompts } = await peer.client.listPrompts();
    assert.deepEqual([tools.length, resources.length, prompts.length], [48, 10, 6]);
  });

  await check('stdio search', async () => {
    const found = await peer.call('searchDocuments', { indexName: 'trails', search: 'lantern', select: 'id' });
    assert.deepEqual(
      found.items.map((item) => item.id),
      ['t01'],
    );
  });
  await check('stdio close', () => peer.client.close());
}
