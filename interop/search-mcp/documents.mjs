// Single documents and batches, counts, and the analyzers.
import assert from 'node:assert/strict';
import { check } from './report.mjs';

const REPORTS = { indexName: 'trail-reports' };

export async function checkDocuments(peer) {
  await check('get a document', async () => {
    const whole = await peer.call('getDocument', { indexName: 'trails', key: 't01' });
    assert.equal(whole.name, 'Lantern Ridge Loop');
    assert.equal(whole.huts[0].beds, 34);
    const part = await peer.call('getDocument', { indexName: 'trails', key: 't01', select: ['id', 'huts/name'] });
    assert.deepEqual(part, { id: 't01', huts: [{ name: 'Lantern Hut' }] });
    const told = await peer.refused('resource_not_found', 'getDocument', { indexName: 'trails', key: 't99' });
    assert.equal(told.status, 404);
  });

  await check('count documents', async () => {
    const { count } = await peer.call('countDocuments', { indexName: 'trails' });
    assert.equal(count, 40);
  });

  await check('statistics of an index', async () => {
    const statistics = await peer.call('getIndexStats', { indexName: 'trails', clientRequestId: 'tour-3' });
    assert.equal(statistics.documentCount, 40);
    assert(statistics.storageSize > 0 && statistics.vectorIndexSize > 0, JSON.stringify(statistics));
    assert.equal(statistics.clientRequestId, 'tour-3');
  });

  await check('upload documents, one of which fails', async () => {
    const documents = [
      { id: 'tour-1', stars: 3, note: 'Made by the tour.', '@search.action': 'upload' },
      { id: 'tour-2', stars: 4 },
    ];
    const answer = await peer.call('uploadDocuments', {
      ...REPORTS,
      action: 'merge',
      documents,
      clientRequestId: 'tour-4',
    });
    assert.equal(answer.clientRequestId, 'tour-4');
    assert.deepEqual([answer.succeeded, answer.failed], [1, 1]);
    const told = answer.items.map((item) => [item.key, item.status, item.statusCode]);
    assert.deepEqual(told, [
      ['tour-2', false, 404],
      ['tour-1', true, 201],
    ]);
    assert.match(answer.items[0].errorMessage, /no document/);
  });

  await check('a batch that cannot be read changes nothing', async () => {
    const documents = [{ id: 'tour-3' }, { id: 'tour-4', stars: 'many' }];
    const told = await peer.refused('invalid_request', 'uploadDocuments', { ...REPORTS, documents });
    assert.match(told.message, /stars/);
    await peer.refused('resource_not_found', 'getDocument', { ...REPORTS, key: 'tour-3' });
  });

  await check('merge and delete documents', async () => {
    const merge = [{ id: 'tour-1', stars: 5 }];
    await peer.call('uploadDocuments', { ...REPORTS, action: 'mergeOrUpload', documents: merge });
    const merged = await peer.call('getDocument', { ...REPORTS, key: 'tour-1', select: 'stars,note' });
    assert.deepEqual(merged, { stars: 5, note: 'Made by the tour.' });
    const gone = [{ id: 'tour-1' }];
    await peer.call('uploadDocuments', { ...REPORTS, action: 'delete', documents: gone });
    assert.equal((await peer.call('countDocuments', REPORTS)).count, 11);
  });

  await check('analyze text', async () => {
    const tokens = async (args) => {
      const answer = await peer.call('analyzeText', { indexName: 'trails', ...args });
      return answer.tokens.map((token) => token.token);
    };
    const text = 'The Lanterns';
    assert.deepEqual(await tokens({ text, analyzer: 'en.lucene' }), ['lantern']);
    assert.deepEqual(await tokens({ text }), ['the', 'lanterns']);
    assert.deepEqual(await tokens({ text, tokenizer: 'whitespace', tokenFilters: ['uppercase'] }), ['THE', 'LANTERNS']);
    await peer.refused('invalid_request', 'analyzeText', { indexName: 'trails', text, analyzer: 'nope' });
  });

  await check('errors say their kind, status, code and request', async () => {
    const missing = await peer.refused('resource_not_found', 'searchDocuments', { indexName: 'nope', search: '*' });
    assert.equal(missing.status, 404);
    assert(missing.requestId, 'there is no id of the request');
    const wrong = await peer.refused('invalid_request', 'searchDocuments', {
      indexName: 'trails',
      filter: 'nope eq 1',
    });
    assert.equal(wrong.status, 400);
    assert(wrong.code && wrong.requestId, JSON.stringify(wrong));
    assert.match(wrong.message, /nope/);
  });

  await check('wrong arguments are named', async () => {
    assert.match(await peer.failed('searchDocuments', { indexName: 'trails', limit: 0 }), /limit/);
    assert.match(await peer.failed('getDocument', { indexName: 'trails' }), /key/);
    assert.match(await peer.failed('countDocuments', { indexName: 'trails', index: 'x' }), /"index" is unknown/);
  });
}
