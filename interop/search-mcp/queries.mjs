// Searches, suggestions and completions.
import assert from 'node:assert/strict';
import { check } from './report.mjs';

const TRAILS = { indexName: 'trails' };

export async function checkQueries(peer) {
  const search = (args, options) => peer.call('searchDocuments', { ...TRAILS, ...args }, options);

  await check('search by words with count and clientRequestId', async () => {
    const found = await search({ search: 'lantern', count: true, select: 'id,name', clientRequestId: 'tour-1' });
    assert.equal(found.clientRequestId, 'tour-1');
    assert.equal(found.count, 1);
    assert.deepEqual(Object.keys(found.items[0]).sort(), ['@search.score', 'id', 'name']);
    assert.equal(found.items[0].id, 't01');
  });

  await check('search pages over all documents', async () => {
    for (const args of [{ select: 'id' }, { select: 'id', orderby: 'rating desc' }]) {
      const pages = await peer.pages('searchDocuments', { ...TRAILS, ...args }, 7);
      const keys = pages.flat().map((item) => item.id);
      assert.equal(keys.length, 40);
      assert.equal(new Set(keys).size, 40);
    }
  });

  await check('search pages by the cursor alone', async () => {
    const first = await search({ search: '*', filter: "region eq 'Northfold'", orderby: 'id', select: 'id', limit: 5 });
    const second = await search({ cursor: first.nextCursor });
    const keys = [...first.items, ...second.items].map((item) => item.id);
    assert.equal(new Set(keys).size, 8);
    assert.deepEqual(keys, [...keys].sort());
    assert.equal(second.hasMore, false);
  });

  await check('search refuses a cursor that it did not give', async () => {
    await peer.refused('invalid_request', 'searchDocuments', { ...TRAILS, cursor: 'bm90LW91cnM' });
  });

  await check('search with a filter', async () => {
    const filter = "region eq 'Northfold' and rating ge 4.5 and huts/any(hut: hut/staffed)";
    const { items } = await search({ filter, select: ['id', 'region', 'rating', 'huts'] });
    assert(items.length > 0, 'nothing is found');
    for (const item of items) {
      assert.equal(item.region, 'Northfold');
      assert(item.rating >= 4.5, `${item.id} has the rating ${item.rating}`);
      assert(
        item.huts.some((hut) => hut.staffed),
        `${item.id} has no staffed hut`,
      );
    }
  });

  await check('search with a filter by distance', async () => {
    const distance = "geo.distance(location, geography'POINT(8.221 46.812)')";
    const { items } = await search({ filter: `${distance} le 5`, orderby: distance, select: 'id' });
    assert.equal(items[0].id, 't01');
    assert(items.length < 40, 'the filter leaves nothing out');
  });

  await check('search with facets and without hits', async () => {
    const found = await search({ top: 0, facets: ['region', 'tags,count:3', 'rating,interval:1'], count: true });
    assert.deepEqual(found.items, []);
    assert.equal(found.count, 40);
    const facets = found['@search.facets'];
    assert.deepEqual(
      facets.region.map((facet) => facet.count),
      [8, 8, 8, 8, 8],
    );
    assert.equal(facets.tags.length, 3);
    assert.equal(
      facets.rating.reduce((sum, facet) => sum + facet.count, 0),
      40,
    );
  });

  await check('search in order', async () => {
    const { items } = await search({ orderby: 'rating desc,lengthKm', select: 'id,rating,lengthKm', limit: 40 });
    assert.equal(items.length, 40);
    for (const [place, item] of items.slice(1).entries()) {
      const before = items[place];
      const inOrder =
        before.rating > item.rating || (before.rating === item.rating && before.lengthKm <= item.lengthKm);
      assert(inOrder, `${before.id} is before ${item.id}`);
    }
  });

  await check('search with highlights and synonyms', async () => {
    const { items } = await search({ search: 'refuge', highlight: 'description', select: 'id' });
    const texts = items.flatMap((item) => item['@search.highlights']?.description ?? []);
    assert(
      texts.some((text) => /<em>huts?<\/em>/i.test(text)),
      `no hut is highlighted: ${texts}`,
    );
  });

  await check('search in Lucene syntax, by all words, and in named fields', async () => {
    const full = await search({ search: 'name:lantrn~1', queryType: 'full', select: 'id' });
    assert.deepEqual(
      full.items.map((item) => item.id),
      ['t01'],
    );
    const all = await search({ search: 'lantern glacier', searchMode: 'all', select: 'id' });
    assert.deepEqual(all.items, []);
    const named = await search({ search: 'Northfold', searchFields: 'region', select: 'id', count: true });
    assert.equal(named.count, 8);
  });

  await check('search with a scoring profile', async () => {
    const args = { search: 'loop', select: 'id', scoringProfile: 'well-rated' };
    const boosted = await search({ ...args, scoringParameters: ['likes-views'] });
    const plain = await search({ search: 'loop', select: 'id' });
    assert(boosted.items[0]['@search.score'] > plain.items[0]['@search.score'], 'nothing is boosted');
    await peer.refused('invalid_request', 'searchDocuments', { ...TRAILS, ...args });
  });

  await check('search by meaning says that it is partial', async () => {
    // The embedded service has no semantic ranker and returns 206 with the keyword results.
    const args = { queryType: 'semantic', semanticConfiguration: 'reading', captions: 'extractive' };
    const found = await search({ search: 'where can I see birds', select: 'id', ...args });
    assert(found.items.length > 0, 'nothing is found');
    assert.deepEqual([found.partial.reason, found.partial.results], ['capacityOverloaded', 'baseResults']);
  });

  await check('search by a vector, and by words and a vector', async () => {
    const { embedding } = await peer.call('getDocument', { ...TRAILS, key: 't01', select: 'embedding' });
    assert.equal(embedding.length, 8);
    const vectorQueries = [{ kind: 'vector', vector: embedding, fields: 'embedding', k: 3 }];
    const near = await search({ vectorQueries, select: 'id' });
    assert.equal(near.items.length, 3);
    assert.equal(near.items[0].id, 't01');
    const both = await search({ search: 'lantern', vectorQueries, select: 'id' });
    assert.equal(both.items[0].id, 't01');
    const short = [{ ...vectorQueries[0], vector: [1, 0] }];
    await peer.refused('invalid_request', 'searchDocuments', { ...TRAILS, vectorQueries: short });
  });

  await check('search leaves vectors out unless they are named', async () => {
    const { items } = await search({ limit: 1 });
    assert(items[0].name && !('embedding' in items[0]), `there is ${Object.keys(items[0])}`);
  });

  await check('search by an alias', async () => {
    const found = await peer.call('searchDocuments', { indexName: 'trails-current', search: 'lantern', select: 'id' });
    assert.equal(found.items[0].id, 't01');
  });

  await check('suggest', async () => {
    const { items } = await peer.call('suggest', {
      ...TRAILS,
      search: 'lant',
      select: 'id,region',
      highlightPreTag: '[',
      highlightPostTag: ']',
    });
    assert.deepEqual(
      items.map((item) => [item.id, item.region, item['@search.text']]),
      [['t01', 'Northfold', '[Lant]ern Ridge Loop']],
    );
    const fuzzy = await peer.call('suggest', {
      ...TRAILS,
      search: 'lamtern',
      fuzzy: true,
      filter: "region eq 'Northfold'",
    });
    assert.equal(fuzzy.items[0].id, 't01');
  });

  await check('autocomplete', async () => {
    const { items } = await peer.call('autocomplete', { ...TRAILS, search: 'lan', suggesterName: 'names' });
    assert(
      items.some((item) => item.text === 'lantern'),
      JSON.stringify(items),
    );
    const two = await peer.call('autocomplete', { ...TRAILS, search: 'lant', autocompleteMode: 'twoTerms' });
    assert.deepEqual(
      two.items.map((item) => item.text),
      ['lantern ridge'],
    );
  });

  await check('retrieve', async () => {
    const answer = await peer.call('retrieve', {
      agentName: 'trail-guide',
      query: 'otters at dusk',
      clientRequestId: 'tour-2',
    });
    assert.equal(answer.clientRequestId, 'tour-2');
    assert.equal(answer.references[0].docKey, 't02');
    assert.equal(answer.activity[0].knowledgeSourceName, 'trails-knowledge');
    const messages = [{ role: 'user', content: 'a loop with lanterns' }];
    const talked = await peer.call('retrieve', { agentName: 'trail-guide', messages });
    assert(
      talked.references.some((reference) => reference.docKey === 't01'),
      'the loop is not found',
    );
    await peer.refused('invalid_request', 'retrieve', { agentName: 'trail-guide' });
    await peer.refused('resource_not_found', 'retrieve', { agentName: 'nope', query: 'x' });
  });
}
