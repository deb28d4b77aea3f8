// Tools without a matching REST call: plans, explanations, filters, measures and profiles.
import assert from 'node:assert/strict';
import { check } from './report.mjs';

const TRAILS = { indexName: 'trails' };

export async function checkBeyond(peer) {
  await checkPlans(peer);

  await check('explain why a document is not found', async () => {
    const told = await peer.call('explainSearch', {
      ...TRAILS,
      search: 'lantern glacier',
      key: 't02',
      clientRequestId: 'tour-9',
    });
    assert.equal(told.clientRequestId, 'tour-9');
    assert.equal(told.document.exists, true);
    assert.equal(told.document.variants.any.matches, false);
    assert(
      told.reasons.some((reason) => reason.includes('contains a word of the query')),
      told.reasons.join(' | '),
    );
    const byWords = told.tokens.find((tokens) => tokens.analyzer === 'en.lucene');
    assert.deepEqual(byWords.tokens, ['lantern', 'glacier']);
    const counts = Object.fromEntries(told.variants.map((variant) => [variant.name, variant.count]));
    assert.deepEqual([counts.any, counts.all], [3, 0]);
  });

  await check('explain where a document ranks, and a filter', async () => {
    const { embedding } = await peer.call('getDocument', { ...TRAILS, key: 't01', select: 'embedding' });
    const args = { ...TRAILS, search: 'lantern', key: 't01', vector: embedding, scoringParameters: ['likes-loop'] };
    const told = await peer.call('explainSearch', args);
    for (const variant of ['any', 'all', 'full', 'profile:well-rated', 'semantic', 'vector', 'hybrid']) {
      assert.equal(told.document.variants[variant]?.rank, 1, `${variant}: ${JSON.stringify(told.document.variants)}`);
    }
    const filtered = await peer.call('explainSearch', {
      ...TRAILS,
      search: 'lantern',
      key: 't01',
      filter: "region eq 'Saltmarsh'",
    });
    assert.equal(filtered.document.passesFilter, false);
    const none = await peer.call('explainSearch', { ...TRAILS, search: 'lantern', key: 't99' });
    assert.equal(none.document.exists, false);
  });

  await check('build a filter', async () => {
    const all = [
      { field: 'region', op: 'eq', value: 'Northfold' },
      { field: 'rating', op: 'ge', value: 4 },
      { field: 'huts', on: 'any', where: { field: 'staffed', op: 'eq', value: true } },
    ];
    const built = await peer.call('buildFilter', { ...TRAILS, conditions: { all } });
    assert.equal(built.valid, true, JSON.stringify(built));
    const args = { ...TRAILS, filter: built.filter, count: true, top: 0 };
    assert.equal((await peer.call('searchDocuments', args)).count, built.matches);
    assert(built.matches > 0, `nothing matches ${built.filter}`);
  });

  await check('build a filter with an apostrophe and lists', async () => {
    const any = [
      { field: 'name', op: 'eq', value: "Shepherd's Way" },
      { field: 'id', op: 'in', value: ['t01', 't02'] },
      { field: 'lengthKm', op: 'between', value: [3, 3.1] },
    ];
    const built = await peer.call('buildFilter', { ...TRAILS, conditions: { any } });
    assert.equal(built.valid, true, JSON.stringify(built));
    assert(built.filter.includes("'Shepherd''s Way'"), built.filter);
    assert(built.matches >= 2, `${built.matches} match ${built.filter}`);
  });

  await check('a filter with a wrong field names the nearest', async () => {
    for (const args of [{ filter: 'ratting ge 4' }, { conditions: { field: 'ratting', op: 'ge', value: 4 } }]) {
      const told = await peer.call('buildFilter', { ...TRAILS, ...args });
      assert.equal(told.valid, false);
      assert.equal(told.problems[0].field, 'ratting');
      assert.match(told.problems[0].fix, /\brating\b/);
    }
    const typed = await peer.call('buildFilter', {
      ...TRAILS,
      conditions: { field: 'rating', op: 'ge', value: 'high' },
    });
    assert.equal(typed.valid, false);
    assert.equal(typed.problems[0].field, 'rating');
  });

  await check('evaluate relevance', async () => {
    const queries = [
      { id: 'lantern', search: 'lantern', judgments: { t01: 3 } },
      { id: 'otters', search: 'otters at dusk', judgments: { t02: 3, t33: 1 } },
    ];
    const told = await peer.call('evaluateRelevance', { ...TRAILS, queries, k: 5 });
    assert.equal(told.queries, 2);
    const mean = told.mean.baseline ?? told.mean;
    assert(mean.ndcg > 0.5 && mean.ndcg <= 1 && mean.recall > 0, JSON.stringify(told.mean));
  });

  await check('evaluate relevance of two ways', async () => {
    const queries = [{ id: 'lantern', search: 'lantern', judgments: { t01: 3 } }];
    const candidate = { filter: "region eq 'Saltmarsh'" };
    const told = await peer.call('evaluateRelevance', { ...TRAILS, queries, baseline: {}, candidate });
    assert.equal(told.mean.baseline.ndcg, 1);
    assert(told.mean.candidate.ndcg === 0, JSON.stringify(told.mean));
    assert.deepEqual([told.gains, told.losses, told.meanNdcgChange], [0, 1, -1]);
  });

  await check('no measure is minus zero', async () => {
    const queries = [{ search: 'nothinglikeit', judgments: { t02: 3 } }];
    const told = await peer.call('evaluateRelevance', { ...TRAILS, queries });
    assert(!JSON.stringify(told, (_, value) => (Object.is(value, -0) ? 'minus zero' : value)).includes('minus zero'));
  });

  await check('profile an index', async () => {
    const told = await peer.call('profileIndex', { ...TRAILS, sample: 40, clientRequestId: 'tour-10' });
    assert.equal(told.clientRequestId, 'tour-10');
    assert.equal(told.documents, 40);
    const field = (name) => told.fields.find((field) => field.name === name);
    assert.equal(field('region').distinct, '5');
    assert.deepEqual(field('difficulty').topValues[0], { count: 15, value: 'easy' });
    assert.equal(field('rating').fillRate, 1);
    assert(field('embedding'), 'there is nothing on the vectors');
    await peer.refused('resource_not_found', 'profileIndex', { indexName: 'nope' });
  });
}

async function checkPlans(peer) {
  const live = () => peer.call('getIndex', TRAILS);

  await check('plan a change that needs no rebuild', async () => {
    const body = await live();
    const nothing = await peer.call('planIndexChange', { ...TRAILS, body });
    assert.deepEqual(nothing.changes, []);
    const added = { name: 'season', type: 'Edm.String', filterable: true };
    const plan = await peer.call('planIndexChange', { ...TRAILS, body: { ...body, fields: [...body.fields, added] } });
    assert.equal(plan.strategy, 'updateInPlace');
    assert.equal(plan.changes[0].path, 'fields/season');
    assert.equal((await live())['@odata.etag'], body['@odata.etag']);
  });

  const wanted = async () => {
    const body = await live();
    const fields = body.fields.map((field) =>
      field.name === 'name' ? { ...field, analyzer: 'standard.lucene' } : field,
    );
    return { body: { ...body, fields }, etag: body['@odata.etag'] };
  };

  await check('plan a rebuild behind an alias', async () => {
    const plan = await peer.call('planIndexChange', {
      indexName: 'trails-current',
      ...(await wanted()),
      clientRequestId: 'tour-11',
    });
    assert.equal(plan.clientRequestId, 'tour-11');
    assert.equal(plan.strategy, 'rebuildBehindAlias');
    assert.deepEqual([plan.indexName, plan.newIndexName, plan.estimatedDocuments], ['trails', 'trails-v2', 40]);
    assert.deepEqual(
      plan.changes.map((change) => [change.path, change.effect]),
      [['fields/name/analyzer', 'rebuild']],
    );
    assert.equal(plan.steps[0].tool, 'planIndexChange');
  });

  await check('a plan for an index that has changed is refused', async () => {
    const told = await peer.refused('conflict', 'planIndexChange', {
      ...TRAILS,
      ...(await wanted()),
      etag: '"0x0"',
      apply: true,
    });
    assert.equal(told.currentETag, (await live())['@odata.etag']);
  });

  await check('rebuild behind an alias when the user agrees', async () => {
    const args = { ...TRAILS, ...(await wanted()), apply: true };
    const said = await peer.declining(/trails/, () => peer.failed('planIndexChange', args));
    assert.match(said, /did not agree/);
    await peer.refused('resource_not_found', 'getIndex', { indexName: 'trails-v2' });

    const { applied } = await peer.answering(/trails/, () => peer.call('planIndexChange', args));
    assert.deepEqual([applied.indexName, applied.documents, applied.aliasName], ['trails-v2', 40, 'trails-current']);
    const { indexes } = await peer.call('getAlias', { aliasName: 'trails-current' });
    assert.deepEqual(indexes, ['trails-v2']);
    const pages = await peer.pages('searchDocuments', { indexName: 'trails-current', select: 'id' }, 20);
    assert.equal(new Set(pages.flat().map((item) => item.id)).size, 40);
    // The new analyzer does not stem plurals of names.
    const fields = { searchFields: 'name', search: 'lanterns', select: 'id' };
    assert.equal((await peer.call('searchDocuments', { indexName: 'trails-current', ...fields })).items.length, 0);
    assert.equal((await peer.call('searchDocuments', { indexName: 'trails', ...fields })).items.length, 1);

    await peer.call(applied.undo.tool, applied.undo.arguments);
    const back = await peer.call('getAlias', { aliasName: 'trails-current' });
    assert.deepEqual(back.indexes, ['trails']);
    await peer.call('deleteIndex', { indexName: 'trails-v2' });
  });
}
