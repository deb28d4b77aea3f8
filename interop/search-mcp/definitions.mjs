// Definitions of every kind: created once, changed with ETags, listed in pages, and deleted after confirmation.
import assert from 'node:assert/strict';
import { check } from './report.mjs';

/**
 * One kind with its name in the tools. `body` is the created definition and `change` the changed members. `sample` is
 * the name of the definition of this kind in the sample. A kind follows the kinds that it references.
 */
const KINDS = [
  {
    kind: 'SynonymMap',
    plural: 'SynonymMaps',
    argument: 'synonymMapName',
    sample: ['trail-words'],
    body: { format: 'solr', synonyms: 'brook, creek' },
    change: { synonyms: 'brook, creek, stream' },
  },
  {
    kind: 'Index',
    plural: 'Indexes',
    argument: 'indexName',
    sample: ['trail-reports', 'trails'],
    body: {
      description: 'Gear.',
      fields: [
        { name: 'id', type: 'Edm.String', key: true },
        { name: 'title', type: 'Edm.String' },
      ],
    },
    change: { description: 'Gear for the tour.' },
  },
  {
    kind: 'Alias',
    plural: 'Aliases',
    argument: 'aliasName',
    sample: ['trails-current'],
    body: { indexes: ['tour-made'] },
    change: { indexes: ['trail-reports'] },
  },
  {
    kind: 'DataSource',
    plural: 'DataSources',
    argument: 'dataSourceName',
    sample: ['trail-reports-files'],
    body: {
      type: 'azureblob',
      container: { name: 'trail-reports' },
      credentials: { connectionString: 'UseDevelopmentStorage=true' },
    },
    change: { description: 'Files for the tour.' },
    secret: (made) => assert.equal(made.credentials.connectionString, null),
  },
  {
    kind: 'Indexer',
    plural: 'Indexers',
    argument: 'indexerName',
    sample: ['trail-reports-indexer'],
    body: { dataSourceName: 'tour-made', targetIndexName: 'tour-made', disabled: true },
    change: { description: 'It never runs.' },
  },
  {
    kind: 'KnowledgeSource',
    plural: 'KnowledgeSources',
    argument: 'sourceName',
    sample: ['trails-knowledge'],
    body: { kind: 'searchIndex', searchIndexParameters: { searchIndexName: 'trails' } },
    change: { description: 'The trails again.' },
  },
  {
    kind: 'Agent',
    plural: 'Agents',
    argument: 'agentName',
    sample: ['trail-guide'],
    body: {
      models: [
        {
          kind: 'azureOpenAI',
          azureOpenAIParameters: {
            resourceUri: 'https://example.invalid',
            deploymentId: 'none',
            modelName: 'gpt-4o-mini',
          },
        },
      ],
      knowledgeSources: [{ name: 'tour-made' }],
    },
    change: { description: 'Gives no answers.' },
  },
];

const NAME = 'tour-made';

/** No alias may have the name of an index. */
function nameOf(kind) {
  return kind.kind === 'Alias' ? 'tour-alias' : NAME;
}

export async function checkDefinitions(peer) {
  for (const kind of KINDS) {
    const name = nameOf(kind);
    const named = { [kind.argument]: name };
    const save = `createOrUpdate${kind.kind}`;

    await check(`create ${kind.kind} only once`, async () => {
      await peer.refused('resource_not_found', `get${kind.kind}`, named);
      const body = { name, ...kind.body };
      const made = await peer.call(save, { ...named, body, createOnly: true, clientRequestId: 'tour-5' });
      assert.equal(made.name, name);
      assert.equal(made.clientRequestId, 'tour-5');
      const got = await peer.call(`get${kind.kind}`, { ...named, clientRequestId: 'tour-6' });
      assert.equal(got.clientRequestId, 'tour-6');
      assert.equal(got['@odata.etag'], made['@odata.etag']);
      kind.secret?.(got);
      const told = await peer.refused('conflict', save, { ...named, body, createOnly: true });
      assert.equal(told.currentETag, made['@odata.etag']);
    });

    await check(`change ${kind.kind} by its ETag`, async () => {
      const before = await peer.call(`get${kind.kind}`, named);
      const body = { ...before, ...kind.change };
      const after = await peer.call(save, { ...named, body, etag: before['@odata.etag'] });
      assert.notEqual(after['@odata.etag'], before['@odata.etag']);
      const [member, value] = Object.entries(kind.change)[0];
      assert.deepEqual(after[member], value);

      // A caller with the old ETag gets the differences.
      const stale = await peer.refused('conflict', save, { ...named, body: before, etag: before['@odata.etag'] });
      assert.equal(stale.status, 412);
      assert.equal(stale.currentETag, after['@odata.etag']);
      const differing = stale.differences.find((difference) => difference.path.startsWith(`/${member}`));
      assert(differing, `${member} is not in ${JSON.stringify(stale.differences)}`);
      assert('current' in differing && 'yours' in differing, JSON.stringify(differing));
      assert.deepEqual((await peer.call(`get${kind.kind}`, named))[member], value);
    });

    await check(`list ${kind.plural} in pages`, async () => {
      const expected = [...kind.sample, name].sort();
      const pages = await peer.pages(`list${kind.plural}`, { select: 'name' }, 1);
      assert.deepEqual(
        pages,
        expected.map((name) => [{ name }]),
      );
      const all = await peer.call(`list${kind.plural}`, { clientRequestId: 'tour-7' });
      assert.equal(all.clientRequestId, 'tour-7');
      assert.deepEqual(
        all.items.map((item) => item.name),
        expected,
      );
      assert(
        all.items.every((item) => item['@odata.etag']),
        'one has no ETag',
      );
      const whole = await peer.call(`list${kind.plural}`, { select: '*' });
      assert(JSON.stringify(whole.items).length >= JSON.stringify(all.items).length, 'a list in short is longer');
      const told = await peer.refused('invalid_request', `list${kind.plural}`, { select: 'nam' });
      assert.match(told.fix, /name/);
      await peer.refused('invalid_request', `list${kind.plural}`, { cursor: 'bm90LW91cnM' });
    });
  }

  await check('a definition that is wrong is refused', async () => {
    const body = { name: 'tour-wrong', fields: [{ name: 'id', type: 'Edm.Nope', key: true }] };
    const told = await peer.refused('invalid_request', 'createOrUpdateIndex', { indexName: 'tour-wrong', body });
    assert.equal(told.status, 400);
    assert.match(told.message, /Edm\.Nope/);
  });

  await check('a name cannot lead elsewhere', async () => {
    for (const indexName of ['../../servicestats', '%2e%2e', 'http://example.invalid/x', "a')/docs('b"]) {
      const told = JSON.parse(await peer.failed('getIndex', { indexName }));
      assert(['invalid_request', 'resource_not_found'].includes(told.error), JSON.stringify(told));
    }
  });
}

/** Deletes the objects that `checkDefinitions` created. */
export async function checkDeletions(peer) {
  for (const kind of KINDS.toReversed()) {
    const name = nameOf(kind);
    const named = { [kind.argument]: name };
    const remove = `delete${kind.kind}`;

    await check(`delete ${kind.kind} when the user agrees`, async () => {
      const { '@odata.etag': etag } = await peer.call(`get${kind.kind}`, named);
      const said = await peer.declining(new RegExp(name), () => peer.failed(remove, named));
      assert.match(said, /did not agree/);
      await peer.call(`get${kind.kind}`, named);

      const stale = await peer.refused('conflict', remove, { ...named, etag: '"0x0"' });
      assert.equal(stale.currentETag, etag);

      const gone = await peer.answering(new RegExp(name), () =>
        peer.call(remove, { ...named, etag, clientRequestId: 'tour-8' }),
      );
      assert.deepEqual([gone.deleted, gone.clientRequestId], [true, 'tour-8']);
      await peer.refused('resource_not_found', `get${kind.kind}`, named);
      assert.equal((await peer.call(remove, named)).existed, false);
    });
  }
}
