// Indexers: runs with progress and as tasks, their status, notifications about it, and diagnosis.
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Peer } from './peer.mjs';
import { check, skip } from './report.mjs';

const INDEXER = { indexerName: 'trail-reports-indexer' };
const STATUS = 'search://indexers/trail-reports-indexer/status';
const TASKS = 'io.modelcontextprotocol/tasks';
/** Enough rows to observe a run in progress. */
const ROWS = 3_000;

export async function checkIndexing(peer, server) {
  await check('state of an indexer', async () => {
    const told = await peer.call('getIndexerStatus', { ...INDEXER, clientRequestId: 'tour-20' });
    assert.equal(told.clientRequestId, 'tour-20');
    assert.equal(told.isRunning, false);
    assert.deepEqual(
      [told.lastResult.status, told.lastResult.itemsProcessed, told.lastResult.itemsFailed],
      ['success', 12, 1],
    );
    await peer.refused('resource_not_found', 'getIndexerStatus', { indexerName: 'nope' });
  });

  await check('run an indexer that has nothing to do', async () => {
    const told = await peer.call('runIndexer', { ...INDEXER, clientRequestId: 'tour-21' });
    assert.equal(told.clientRequestId, 'tour-21');
    assert.deepEqual([told.status, told.itemsProcessed, told.attached], ['success', 0, false]);
  });

  await check('reset and run an indexer when the user agrees', async () => {
    const said = await peer.declining(/trail-reports-indexer/, () =>
      peer.failed('runIndexer', { ...INDEXER, reset: true }),
    );
    assert.match(said, /did not agree/);
    const told = await peer.answering(/trail-reports-indexer/, () =>
      peer.call('runIndexer', { ...INDEXER, reset: true }),
    );
    assert.deepEqual([told.status, told.itemsProcessed, told.itemsFailed], ['success', 12, 1]);
    const { lastResult } = await peer.call('getIndexerStatus', INDEXER);
    assert.equal(lastResult.startTime, told.startTime);
  });

  await checkProgress(peer, server);
  await checkSubscription(peer);
  await checkTask(peer, server);

  await check('start an indexer and do not wait', async () => {
    const told = await peer.call('runIndexer', { ...INDEXER, wait: false });
    assert.equal(told.status, 'started');
    const waited = await peer.call('runIndexer', INDEXER);
    assert.equal(waited.status, 'success');
    await peer.refused('resource_not_found', 'runIndexer', { indexerName: 'nope' });
  });

  // A run without news forgets the row, so everything is read again.
  await peer.call('runIndexer', { ...INDEXER, reset: true });
  await check('diagnose an indexer', async () => {
    const told = await peer.call('diagnoseIndexer', { ...INDEXER, clientRequestId: 'tour-22' });
    assert.equal(told.clientRequestId, 'tour-22');
    const error = told.findings.find((finding) => finding.severity === 'error');
    assert.match(error.why, /stars.*excellent/);
    assert.match(error.keys[0], /2026-spring\.csv$/);
    assert(error.fix, 'there is no fix');
    assert.equal(told.lastRun.itemsFailed, 1);
    assert.deepEqual(
      told.retry.map((call) => call.tool),
      ['callOperation', 'runIndexer'],
    );
  });

  await check('diagnose names the row', async () => {
    const { findings } = await peer.call('diagnoseIndexer', INDEXER);
    assert.match(JSON.stringify(findings), /item 6|r06/);
  });

  await check('what diagnose advises can be called', async () => {
    const { retry } = await peer.call('diagnoseIndexer', INDEXER);
    for (const { tool, arguments: args } of retry) await peer.call(tool, args);
    const told = await peer.call('diagnoseIndexer', { ...INDEXER, run: true });
    assert(told.lastRun.status, JSON.stringify(told.lastRun));
  });
}

/** A run of many rows, so that it reports progress. */
async function checkProgress(peer, server) {
  await check('run an indexer with progress', async () => {
    const folder = join(server.folder, server.service.data, 'blobs/tour-rows');
    mkdirSync(folder, { recursive: true });
    const rows = Array.from({ length: ROWS }, (_, row) => `row-${row},Row ${row} of many`);
    writeFileSync(join(folder, 'rows.csv'), ['id,text', ...rows].join('\n'));
    const name = 'tour-rows';
    const fields = [
      { name: 'id', type: 'Edm.String', key: true },
      { name: 'text', type: 'Edm.String' },
    ];
    await peer.call('createOrUpdateIndex', { indexName: name, body: { name, fields } });
    const credentials = { connectionString: 'UseDevelopmentStorage=true' };
    const source = { name, type: 'azureblob', credentials, container: { name } };
    await peer.call('createOrUpdateDataSource', { dataSourceName: name, body: source });
    const parameters = { configuration: { parsingMode: 'delimitedText', firstLineContainsHeaders: true } };
    const indexer = { name, dataSourceName: name, targetIndexName: name, parameters };
    await peer.call('createOrUpdateIndexer', { indexerName: name, body: indexer });

    // An indexer runs when it is created. This call waits for that run or starts its own.
    await peer.call('runIndexer', { indexerName: name });
    const arrived = [];
    const { onmessage } = peer.client.transport;
    peer.client.transport.onmessage = (message, extra) => {
      if (message.method === 'notifications/progress') arrived.push(message.params);
      onmessage(message, extra);
    };
    const told = await peer.call('runIndexer', { indexerName: name, reset: true }, { onprogress: () => {} });
    peer.client.transport.onmessage = onmessage;
    assert.deepEqual([told.status, told.itemsProcessed], ['success', ROWS]);
    const steps = arrived.map((params) => params.progress);
    assert(steps.length >= 2, `there are only ${steps.length} notifications`);
    for (const [place, step] of steps.slice(1).entries()) assert(step > steps[place], `not rising: ${steps}`);
    assert(
      arrived.every((params) => params.message),
      'a notification says nothing',
    );
    assert.equal((await peer.call('countDocuments', { indexName: name })).count, ROWS);

    await peer.call('deleteIndexer', { indexerName: name });
    await peer.call('deleteDataSource', { dataSourceName: name });
    await peer.call('deleteIndex', { indexName: name });
  });
}

async function checkSubscription(peer) {
  await check('subscribe to the state of an indexer', async () => {
    let tell;
    const updated = new Promise((resolve) => (tell = resolve));
    peer.client.setNotificationHandler('notifications/resources/updated', ({ params }) => tell(params.uri));
    let subscription;
    if (peer.modern) subscription = await peer.client.listen({ resourceSubscriptions: [STATUS] });
    else await peer.client.subscribeResource({ uri: STATUS });

    // The server must have read the status once to detect a change.
    await sleep(1_500);
    const { startTime } = await peer.call('runIndexer', INDEXER);
    const uri = await Promise.race([updated, sleep(10_000, 'nothing came')]);
    assert.equal(uri, STATUS);
    const { contents } = await peer.client.readResource({ uri });
    assert.equal(JSON.parse(contents[0].text).lastResult.startTime, startTime);

    if (peer.modern) await subscription.close();
    else await peer.client.unsubscribeResource({ uri: STATUS });
  });
}

/** Tasks need 2026-07-28, and a client that supports the result. */
async function checkTask(peer, server) {
  const name = 'run an indexer as a task';
  if (!peer.modern) return skip(name, 'this revision has none');
  const other = await Peer.overHttp(server.mcp, true, { extensions: { [TASKS]: {} } });
  const raw = [];
  const { onmessage } = other.client.transport;
  other.client.transport.onmessage = (message, extra) => {
    raw.push(message.result);
    onmessage(message, extra);
  };
  try {
    await check(name, async () => {
      const refusal = await other.result('runIndexer', INDEXER).catch((error) => error);
      // This client rejects the result, but it can send the requests that follow.
      assert.equal(refusal.code, 'UNSUPPORTED_RESULT_TYPE', `it answered ${JSON.stringify(refusal)}`);
      const task = raw.find((result) => result?.resultType === 'task');
      assert.equal(task.status, 'working');
      let now;
      for (let waited = 0; waited < 10_000; waited += 200) {
        now = await other.client.request({ method: 'tasks/get', params: { taskId: task.taskId } }, ANYTHING);
        if (now.status !== 'working') break;
        await sleep(200);
      }
      assert.equal(now.status, 'completed');
      assert.equal(now.result.structuredContent.status, 'success');
    });
  } finally {
    await other.client.close();
  }
}

/** A schema for results that the package has no type for. */
const ANYTHING = { '~standard': { version: 1, vendor: 'tour', validate: (value) => ({ value }) } };
