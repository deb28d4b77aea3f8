// A shorter tour of the embedded search service: node tour.mjs <url> <admin key> <query key> <blobs>
// `<blobs>` is the service's folder of containers.

import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  AzureKeyCredential,
  GeographyPoint,
  KnowledgeRetrievalClient,
  SearchClient,
  SearchIndexClient,
  SearchIndexerClient,
  SearchIndexingBufferedSender,
  odata,
} from '@azure/search-documents';
import { check, main } from './report.mjs';

const [url, adminKey, queryKey, blobs] = process.argv.slice(2);
const options = { allowInsecureConnection: true };
const admin = new AzureKeyCredential(adminKey);
const indexes = new SearchIndexClient(url, admin, options);
const indexers = new SearchIndexerClient(url, admin, options);
const documentsOf = (index, key = admin) => new SearchClient(url, index, key, options);
const hotels = documentsOf('js-hotels');

const text = (name, more) => ({ name, type: 'Edm.String', searchable: true, ...more });
const simple = (name, type, more) => ({ name, type, filterable: true, sortable: true, facetable: true, ...more });
const index = {
  name: 'js-hotels',
  fields: [
    { name: 'id', type: 'Edm.String', key: true, filterable: true, sortable: true },
    text('name', { filterable: true, sortable: true }),
    text('description', { analyzerName: 'en.lucene', synonymMapNames: ['js-words'] }),
    { name: 'tags', type: 'Collection(Edm.String)', searchable: true, filterable: true, facetable: true },
    simple('rating', 'Edm.Double'),
    simple('rooms', 'Edm.Int32'),
    simple('opened', 'Edm.DateTimeOffset'),
    { name: 'place', type: 'Edm.GeographyPoint', filterable: true, sortable: true },
    { name: 'address', type: 'Edm.ComplexType', fields: [text('city', { filterable: true })] },
    {
      name: 'v',
      type: 'Collection(Edm.Single)',
      searchable: true,
      vectorSearchDimensions: 3,
      vectorSearchProfileName: 'p',
    },
  ],
  suggesters: [{ name: 'sg', searchMode: 'analyzingInfixMatching', sourceFields: ['name', 'tags'] }],
  scoringProfiles: [
    {
      name: 'rated',
      functions: [
        { type: 'magnitude', fieldName: 'rating', boost: 10, parameters: { boostingRangeStart: 0, boostingRangeEnd: 5 } },
      ],
    },
  ],
  vectorSearch: {
    algorithms: [{ name: 'h', kind: 'hnsw' }],
    profiles: [{ name: 'p', algorithmConfigurationName: 'h' }],
  },
};

const hotel = (id, name, description, tags, rating, rooms, year, [longitude, latitude], city, v) => ({
  id, name, description, tags, rating, rooms, v,
  opened: new Date(Date.UTC(year, 5, 1)),
  place: new GeographyPoint({ longitude, latitude }),
  address: { city },
});
const HOTELS = [
  hotel('1', 'Grand Hotel', 'A grand hotel with running water', ['pool'], 4.5, 200, 2011, [-122.3, 47.6], 'Seattle', [1, 0, 0]),
  hotel('2', 'Budget Inn', 'Cheap rooms near the motel', ['wifi'], 2.5, 40, 2015, [-122.4, 47.2], 'Tacoma', [0, 1, 0]),
  hotel('3', 'Sea View', 'Views of the sea', ['pool', 'view'], 3.9, 80, 2019, [-122.3, 47.7], 'Seattle', [0.9, 0.1, 0]),
];

/** Returns all items of a list or a search, over all pages. */
async function rows(iterator) {
  const all = [];
  for await (const row of iterator) all.push(row);
  return all;
}

/** Returns the keys in the order of the hits. */
async function found(words, how) {
  const { results } = await hotels.search(words, how);
  return (await rows(results)).map(({ document }) => document.id).join('');
}

async function refused(status, calling) {
  await assert.rejects(calling, (error) => error.statusCode === status || assert.fail(`not ${status}: ${error}`));
}

const outcomes = ({ results }) => results.map(({ key, succeeded, statusCode }) => [key, succeeded, statusCode]);

async function definitions() {
  await check('a synonym map is created', async () => {
    await indexes.createSynonymMap({ name: 'js-words', synonyms: ['motel, lodge'] });
    assert.deepEqual((await indexes.getSynonymMap('js-words')).synonyms, ['motel, lodge']);
  });
  await check('an index is created, read and listed', async () => {
    await indexes.createIndex(index);
    const read = await indexes.getIndex('js-hotels');
    assert.deepEqual(read.fields.map(({ name }) => name), index.fields.map(({ name }) => name));
    assert((await rows(indexes.listIndexes())).some(({ name }) => name === 'js-hotels'));
    assert((await rows(indexes.listIndexesNames())).includes('js-hotels'));
    await refused(404, indexes.getIndex('js-nothing'));
  });
  await check('a field is added and a stale etag is a conflict', async () => {
    const [first, second] = [await indexes.getIndex('js-hotels'), await indexes.getIndex('js-hotels')];
    first.fields.push(text('motto'));
    // The package reads the ETag as eTag and looks for it as etag.
    const update = (index) => indexes.createOrUpdateIndex({ ...index, etag: index.eTag }, { onlyIfUnchanged: true });
    await update(first);
    await refused(412, update(second));
  });
  await check('an alias leads to its index', async () => {
    await indexes.createAlias({ name: 'js-alias', indexes: ['js-hotels'] });
    assert.equal(await documentsOf('js-alias').getDocumentsCount(), 0);
    await indexes.deleteAlias('js-alias');
  });
  await check('text is analyzed', async () => {
    const { tokens } = await indexes.analyzeText('js-hotels', { text: 'The runners', analyzerName: 'en.lucene' });
    assert.deepEqual(tokens.map(({ token }) => token), ['runner']);
  });
}

async function documents() {
  await check('documents are uploaded, merged and looked up', async () => {
    assert.deepEqual(outcomes(await hotels.uploadDocuments(HOTELS)), HOTELS.map(({ id }) => [id, true, 201]));
    await hotels.mergeDocuments([{ id: '1', motto: 'Be grand' }]);
    await hotels.mergeOrUploadDocuments([{ id: '4', name: 'Four' }]);
    const read = await hotels.getDocument('1');
    assert.equal(read.motto, 'Be grand');
    assert(read.opened instanceof Date && read.place instanceof GeographyPoint);
    await hotels.deleteDocuments('id', ['4']);
    assert.equal(await hotels.getDocumentsCount(), 3);
    await refused(404, hotels.getDocument('missing'));
  });
  await check('a batch can fail in part', async () => {
    const seen = outcomes(await hotels.mergeDocuments([{ id: '1', motto: 'x' }, { id: 'missing', motto: 'y' }]));
    assert.deepEqual(seen, [['1', true, 200], ['missing', false, 404]]);
  });
  await check('a buffered sender sends all, and pages follow each other', async () => {
    const fields = [{ name: 'id', type: 'Edm.String', key: true, sortable: true }];
    await indexes.createIndex({ name: 'js-many', fields });
    const many = documentsOf('js-many');
    const sender = new SearchIndexingBufferedSender(many, ({ id }) => id, { autoFlush: false });
    await sender.uploadDocuments(Array.from({ length: 1100 }, (_, number) => ({ id: String(10_000 + number) })));
    await sender.flush();
    await sender.dispose();
    assert.equal(await many.getDocumentsCount(), 1100);
    const { results } = await many.search('*', { orderBy: ['id'] });
    const keys = (await rows(results)).map(({ document }) => document.id);
    assert.deepEqual([keys.length, keys[50], keys[1099]], [1100, '10050', '11099']);
    assert.equal((await rows((await many.search('*', { top: 1050 })).results)).length, 1050);
  });
  await check('statistics count documents', async () => {
    assert.equal((await indexes.getIndexStatistics('js-many')).documentCount, 1100);
    assert((await indexes.getServiceStatistics()).counters.indexCounter.usage >= 2);
  });
}

async function searches() {
  await check('both syntaxes', async () => {
    assert.equal(await found('pool', { orderBy: ['id'] }), '13');
    assert.equal(await found('running sea', { searchMode: 'all' }), '');
    assert.equal(await found('name:gran* OR name:budgte~', { queryType: 'full', orderBy: ['id'] }), '12');
    assert.equal(await found('lodge', { searchFields: ['description'] }), '2');
  });
  await check('a semantic query gives what words find, and says so', async () => {
    const seen = await hotels.search('pool', { queryType: 'semantic', semanticSearchOptions: {} });
    assert.equal((await rows(seen.results)).length, 2);
    assert.equal(seen.semanticErrorReason ?? seen.semanticPartialResponseReason, 'capacityOverloaded');
  });
  await check('filters and order', async () => {
    assert.equal(await found('*', { filter: odata`name eq ${'Sea View'}` }), '3');
    assert.equal(await found('*', { filter: "tags/any(t: t eq 'pool')", orderBy: ['rating desc'] }), '13');
    const far = "geo.distance(place, geography'POINT(-122.3 47.6)')";
    assert.equal(await found('*', { filter: `${far} lt 20`, orderBy: [`${far} desc`] }), '31');
    assert.equal(await found('*', { filter: "address/city eq 'Tacoma'" }), '2');
    await refused(400, found('*', { filter: 'nope eq 1' }));
  });
  await check('facets, count, highlights and select', async () => {
    const how = { facets: ['tags', 'rooms,interval:100'], includeTotalCount: true, select: ['id', 'address/city'] };
    const seen = await hotels.search('views', { ...how, highlightFields: 'description', highlightPreTag: '<b>', highlightPostTag: '</b>' });
    assert.deepEqual([seen.count, seen.facets.tags.length], [1, 2]);
    const [row] = await rows(seen.results);
    const { id, address, ...rest } = row.document;
    assert.deepEqual([id, address, rest.name], ['3', { city: 'Seattle' }, undefined]);
    assert.deepEqual(row.highlights.description, ['<b>Views</b> of the sea']);
  });
  await check('scoring profiles', async () => assert.equal(await found('*', { scoringProfile: 'rated' }), '132'));
  await check('vectors, alone and with words', async () => {
    const near = { kind: 'vector', vector: [1, 0, 0], kNearestNeighborsCount: 2, fields: ['v'] };
    const vectorSearchOptions = { queries: [near] };
    assert.equal(await found(undefined, { vectorSearchOptions }), '13');
    assert.equal(await found(undefined, { vectorSearchOptions, filter: 'rooms lt 100' }), '32');
    assert.equal((await found('motel', { vectorSearchOptions })).length, 3);
  });
  await check('suggestions and completions', async () => {
    const { results } = await hotels.suggest('budg', 'sg', { select: ['rooms'] });
    assert.deepEqual(results.map(({ text, document }) => [text, document.rooms]), [['Budget Inn', 40]]);
    const completed = await hotels.autocomplete('gr', 'sg', { autocompleteMode: 'twoTerms' });
    assert.deepEqual(completed.results.map(({ text }) => text), ['grand hotel']);
  });
  await check('keys', async () => {
    const reader = documentsOf('js-hotels', new AzureKeyCredential(queryKey));
    assert.equal(await reader.getDocumentsCount(), 3);
    await refused(403, reader.uploadDocuments([{ id: '1' }]));
    await refused(403, documentsOf('js-hotels', new AzureKeyCredential('wrong')).getDocumentsCount());
  });
}

async function pipelines() {
  await check('an indexer reads a folder', async () => {
    await mkdir(join(blobs, 'js-files'), { recursive: true });
    await writeFile(join(blobs, 'js-files', 'one.json'), '{"id": "f1", "name": "From a file"}');
    await indexers.createDataSourceConnection({
      name: 'js-source',
      type: 'azureblob',
      connectionString: 'UseDevelopmentStorage=true',
      container: { name: 'js-files' },
    });
    await indexers.createIndexer({
      name: 'js-indexer',
      dataSourceName: 'js-source',
      targetIndexName: 'js-hotels',
      parameters: { configuration: { parsingMode: 'json' } },
    });
    let last;
    do {
      await sleep(50);
      last = (await indexers.getIndexerStatus('js-indexer')).lastResult;
    } while (!last || last.status === 'inProgress');
    assert.deepEqual([last.status, last.itemCount, last.failedItemCount], ['success', 1, 0]);
    assert.equal((await hotels.getDocument('f1')).name, 'From a file');
    await indexers.resetIndexer('js-indexer');
    await indexers.runIndexer('js-indexer');
    assert.deepEqual(await indexers.listIndexersNames(), ['js-indexer']);
  });
  await check('a skillset is kept', async () => {
    const skill = {
      odatatype: '#Microsoft.Skills.Text.SplitSkill',
      textSplitMode: 'pages',
      inputs: [{ name: 'text', source: '/document/content' }],
      outputs: [{ name: 'textItems', targetName: 'pages' }],
    };
    await indexers.createSkillset({ name: 'js-skills', skills: [skill] });
    assert.equal((await indexers.getSkillset('js-skills')).skills[0].odatatype, skill.odatatype);
  });
  await check('a knowledge base is asked', async () => {
    const source = { name: 'js-knows', kind: 'searchIndex', searchIndexParameters: { searchIndexName: 'js-hotels' } };
    await indexes.createKnowledgeSource(source);
    await indexes.createKnowledgeBase({ name: 'js-base', knowledgeSources: [{ name: 'js-knows' }] });
    const client = new KnowledgeRetrievalClient(url, 'js-base', admin, options);
    const answer = await client.retrieve({ intents: [{ type: 'semantic', search: 'Where is the sea?' }] });
    assert.match(answer.response[0].content[0].text, /Views of the sea/);
    assert.equal(answer.references[0].docKey, '3');
  });
}

async function leaving() {
  await check('all definitions are deleted', async () => {
    await indexes.deleteKnowledgeBase('js-base');
    await indexes.deleteKnowledgeSource('js-knows');
    await indexers.deleteIndexer('js-indexer');
    await indexers.deleteSkillset('js-skills');
    await indexers.deleteDataSourceConnection('js-source');
    for (const name of ['js-hotels', 'js-many']) await indexes.deleteIndex(name);
    await indexes.deleteSynonymMap('js-words');
    await refused(404, hotels.getDocumentsCount());
  });
}

await main(async () => {
  for (const part of [definitions, documents, searches, pipelines, leaving]) await part();
});
