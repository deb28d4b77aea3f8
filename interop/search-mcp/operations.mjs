// Operations without their own tool: found, described and called.
import assert from 'node:assert/strict';
import { check } from './report.mjs';

const SKILLSET = {
  name: 'tour-skills',
  skills: [
    {
      '@odata.type': '#Microsoft.Skills.Text.SplitSkill',
      context: '/document',
      textSplitMode: 'pages',
      inputs: [{ name: 'text', source: '/document/content' }],
      outputs: [{ name: 'textItems', targetName: 'pages' }],
    },
  ],
};
const NAMED = { skillsetName: SKILLSET.name };

export async function checkOperations(peer) {
  const call = (operation, args) => peer.call('callOperation', { operation, arguments: args });
  const refused = (kind, operation, args) => peer.refused(kind, 'callOperation', { operation, arguments: args });

  await check('find operations', async () => {
    const { items } = await peer.call('findOperations', { query: 'skillset' });
    const byName = new Map(items.map((item) => [item.operation, item]));
    assert.equal(byName.get('Skillsets_Get').readOnly, true);
    assert.equal(byName.get('Skillsets_Delete').destructive, true);
    const pages = await peer.pages('findOperations', {}, 25);
    const names = pages.flat().map((item) => item.operation);
    assert.equal(names.length, 60);
    assert.equal(new Set(names).size, 60);
    const { items: deleting } = await peer.call('findOperations', { method: 'DELETE' });
    assert(deleting.length > 0 && deleting.every((item) => item.method === 'DELETE'), JSON.stringify(deleting));
  });

  await check('describe an operation and a definition', async () => {
    const told = await peer.call('describeOperation', { operation: 'Skillsets_CreateOrUpdate' });
    assert(
      told.inputSchema.properties.skillsetName && told.inputSchema.properties.body,
      JSON.stringify(told.inputSchema),
    );
    assert(!('api-version' in told.inputSchema.properties), 'what the server decides is asked for');
    assert(told.definitions.includes('SplitSkill'), `${told.definitions}`);
    const split = await peer.call('describeOperation', { definition: 'SplitSkill' });
    assert(JSON.stringify(split).includes('textSplitMode'), 'the definition is not whole');
    assert.match(await peer.failed('describeOperation', { operation: 'Skillsets_Got' }), /Skillsets_Get/);
  });

  await check('make, change and list skillsets by operations', async () => {
    const made = await call('Skillsets_CreateOrUpdate', { ...NAMED, body: SKILLSET, 'If-None-Match': '*' });
    assert.equal(made.name, SKILLSET.name);
    await refused('conflict', 'Skillsets_CreateOrUpdate', { ...NAMED, body: SKILLSET, 'If-None-Match': '*' });
    const body = { ...SKILLSET, description: 'Pages.' };
    const changed = await call('Skillsets_CreateOrUpdate', { ...NAMED, body, 'If-Match': made['@odata.etag'] });
    assert.equal(changed.description, 'Pages.');
    assert.equal((await call('Skillsets_Get', NAMED)).description, 'Pages.');
    const { value } = await call('Skillsets_List', {});
    assert.deepEqual(
      value.map((skillset) => skillset.name),
      [SKILLSET.name],
    );
  });

  await check('delete a skillset when the user agrees', async () => {
    const args = { operation: 'Skillsets_Delete', arguments: NAMED };
    const said = await peer.declining(/Skillsets_Delete|skillset/i, () => peer.failed('callOperation', args));
    assert.match(said, /did not agree/);
    await call('Skillsets_Get', NAMED);
    await peer.answering(/Skillsets_Delete|skillset/i, () => call('Skillsets_Delete', NAMED));
    const told = await refused('resource_not_found', 'Skillsets_Get', NAMED);
    assert.equal(told.status, 404);
  });

  await check('an argument of an operation cannot lead elsewhere', async () => {
    for (const skillsetName of ['../../servicestats', '%2e%2e', '..', 'a\u0000b', '']) {
      await refused('invalid_request', 'Skillsets_Get', { skillsetName });
    }
    const told = await refused('resource_not_found', 'Skillsets_Get', { skillsetName: 'http://example.invalid/x' });
    assert.equal(told.status, 404);
  });

  await check('wrong arguments of an operation are named', async () => {
    assert.match(await peer.failed('callOperation', { operation: 'Skillsets_Get', arguments: {} }), /skillsetName/);
    const wrong = { skillsetName: 'x', body: { name: 'x', skills: 'none' } };
    assert.match(
      await peer.failed('callOperation', { operation: 'Skillsets_CreateOrUpdate', arguments: wrong }),
      /skills/,
    );
    assert.match(await peer.failed('callOperation', { operation: 'Skillsets_Gett' }), /Skillsets_Get/);
  });

  await check('operations that only read', async () => {
    const statistics = await call('GetServiceStatistics', {});
    assert.equal(statistics.counters.aliasesCount.usage, 2);
    const { value } = await call('Indexers_List', { select: 'name' });
    assert.deepEqual(
      value.map((indexer) => indexer.name),
      ['tour-made', 'trail-reports-indexer'],
    );
  });
}
