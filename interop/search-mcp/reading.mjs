// Resources, templates with their completions, and prompts.
import assert from 'node:assert/strict';
import { check } from './report.mjs';

/** The inputs for each template: the variable, the typed prefix, the completions, and a value. */
const TEMPLATES = {
  'search://indexes/{name}': ['name', 'trail', ['trail-reports', 'trails'], 'trails'],
  'search://agents/{name}': ['name', 'TRAIL', ['trail-guide'], 'trail-guide'],
  'search://knowledgesources/{name}': ['name', '', ['trails-knowledge'], 'trails-knowledge'],
  'search://indexers/{name}/status': ['name', 't', ['trail-reports-indexer'], 'trail-reports-indexer'],
  'search-schema://{definition}': ['definition', 'SearchInd', ['SearchIndex', 'SearchIndexer'], 'SearchIndex'],
  'search://indexes/{name}/profile': ['name', 'trails', ['trails'], 'trails'],
};

/** The resources that always exist, and those of the sample. */
const RESOURCES = [
  'search://agents',
  'search://agents/trail-guide',
  'search://indexers/trail-reports-indexer/status',
  'search://indexes',
  'search://indexes/trail-reports',
  'search://indexes/trails',
  'search://indexstats',
  'search://knowledgesources',
  'search://knowledgesources/trails-knowledge',
  'search://servicestats',
];

/** The expected content of each resource. */
const HOLDS = {
  'search://indexes': (it) => assert.deepEqual(names(it.items), ['trail-reports', 'trails']),
  'search://agents': (it) => assert.deepEqual(names(it.items), ['trail-guide']),
  'search://knowledgesources': (it) => assert.deepEqual(names(it.items), ['trails-knowledge']),
  'search://servicestats': (it) => assert.equal(it.counters.documentCount.usage, 51),
  'search://indexstats': (it) =>
    assert.deepEqual(
      it.value.map((index) => [index.name, index.documentCount]),
      [
        ['trail-reports', 11],
        ['trails', 40],
      ],
    ),
  'search://indexes/trails': (it) => assert.equal(it.fields.length, 13),
  'search://indexes/trail-reports': (it) => assert.equal(it.name, 'trail-reports'),
  'search://agents/trail-guide': (it) => assert.equal(it.knowledgeSources[0].name, 'trails-knowledge'),
  'search://knowledgesources/trails-knowledge': (it) => assert.equal(it.kind, 'searchIndex'),
  'search://indexers/trail-reports-indexer/status': (it) => assert.equal(it.lastResult.itemsFailed, 1),
  'search-schema://SearchIndex': (it) =>
    assert(it.properties.fields && it.$defs.SearchField, 'fields are not described'),
  'search://indexes/trails/profile': (it) => assert.equal(it.documents, 40),
};

export async function checkResources({ client }) {
  await check('list resources', async () => {
    const { resources } = await client.listResources();
    assert.deepEqual(resources.map((resource) => resource.uri).sort(), RESOURCES);
    assert(
      resources.every((resource) => resource.mimeType === 'application/json'),
      'one is no JSON',
    );
  });

  await check('list templates', async () => {
    const { resourceTemplates } = await client.listResourceTemplates();
    const listed = resourceTemplates.map((template) => template.uriTemplate);
    assert.deepEqual(listed.sort(), Object.keys(TEMPLATES).sort());
  });

  for (const uri of RESOURCES) {
    await check(`read ${plain(uri)}`, async () => HOLDS[uri](await read(client, uri)));
  }

  for (const [template, [variable, typed, expected, value]] of Object.entries(TEMPLATES)) {
    const uri = template.replace(`{${variable}}`, value);
    if (!RESOURCES.includes(uri)) {
      await check(`read ${plain(uri)}`, async () => HOLDS[uri](await read(client, uri)));
    }
    const complete = async () => {
      const ref = { type: 'ref/resource', uri: template };
      const { completion } = await client.complete({ ref, argument: { name: variable, value: typed } });
      for (const name of expected) assert(completion.values.includes(name), `${name} is not in ${completion.values}`);
      assert(
        completion.values.every((name) => name.toLowerCase().startsWith(typed.toLowerCase())),
        'one does not fit',
      );
    };
    await check(`complete ${plain(template)}`, complete);
  }

  await check('read what is not there', async () => {
    for (const uri of ['search://indexes/nope', 'search://agents/nope', 'search-schema://Nope', 'search://nope']) {
      await assert.rejects(client.readResource({ uri }), /not found/, uri);
    }
  });
}

/** Arguments for each prompt, and the tools that its text must name. */
const PROMPTS = {
  answer_from_index: [
    { indexName: 'trails', question: 'Which "loops" are easy?' },
    ['profileIndex', 'searchDocuments'],
  ],
  tune_relevance: [{ indexName: 'trails', goal: 'huts first' }, ['evaluateRelevance', 'explainSearch']],
  debug_missing_document: [{ indexName: 'trails', key: 't02', search: 'glacier' }, ['explainSearch', 'analyzeText']],
  design_index: [{ sample: '{"id":"1"}', needs: 'filter by price' }, ['createOrUpdateIndex', 'uploadDocuments']],
  fix_indexer: [{ indexerName: 'trail-reports-indexer' }, ['diagnoseIndexer', 'runIndexer']],
  change_index_safely: [{ indexName: 'trails', change: 'another analyzer' }, ['planIndexChange', 'getIndex']],
};

export async function checkPrompts({ client }) {
  await check('list prompts', async () => {
    const { prompts } = await client.listPrompts();
    assert.deepEqual(prompts.map((prompt) => prompt.name).sort(), Object.keys(PROMPTS).sort());
    for (const prompt of prompts) {
      const required = prompt.arguments.filter((argument) => argument.required).map((argument) => argument.name);
      assert.deepEqual(required.sort(), Object.keys(PROMPTS[prompt.name][0]).sort());
    }
  });

  for (const [name, [args, tools]] of Object.entries(PROMPTS)) {
    await check(`prompt ${name}`, async () => {
      const { messages } = await client.getPrompt({ name, arguments: args });
      const { text } = messages[0].content;
      for (const value of Object.values(args)) {
        // A value is written as JSON, so that it cannot be mistaken for a step.
        const written = value.startsWith('{') ? value : JSON.stringify(value);
        assert(text.includes(written), `${written} is not in the text`);
      }
      for (const tool of tools) assert(text.includes(tool), `${tool} is not in the text`);
    });
  }

  await check('prompt without an argument is refused', async () => {
    await assert.rejects(client.getPrompt({ name: 'fix_indexer', arguments: {} }), /indexerName/);
  });
}

async function read(client, uri) {
  const { contents } = await client.readResource({ uri });
  assert.equal(contents[0].uri, uri);
  return JSON.parse(contents[0].text);
}

function names(items) {
  return items.map((item) => item.name);
}

/** A colon would end the name of a check. */
function plain(uri) {
  return uri.replace('://', ' ');
}
