// Measures MCP servers over the same Swagger with one client: node measure.mjs PLAN
//
// PLAN is JSON: the `folder` and `names` of the documents, and `subjects`. A subject has the `servers`
// that serve the documents together and the server to `start` for the time measurement. Prints one line
// of JSON per subject.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { connect as dial, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { hasHints, isUsable, subtypesIn, toolOf } from './count.mjs';
import { demands } from './swagger.mjs';

const STARTS = 5;
const PATIENCE = 60_000;

const plan = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const { operations, subtypes } = demands(plan.folder, plan.names);

/** Starts a server and lists its tools. The messages on the wire are measured, not those the client parsed. */
async function open({ command, http }) {
  const begin = performance.now();
  const { transport, stop } = http ? await overHttp(command) : overStdio(command);
  try {
    const client = new Client({ name: 'compare', version: '1.0.0' }, { capabilities: {} });
    await client.connect(transport, { timeout: PATIENCE });
    const pages = [];
    const receive = transport.onmessage;
    transport.onmessage = (message, extra) => {
      if (message.result?.tools) pages.push(message.result);
      receive(message, extra);
    };
    let refusal;
    let cursor;
    do {
      const before = pages.length;
      await client
        .request({ method: 'tools/list', params: cursor ? { cursor } : {} }, { timeout: PATIENCE })
        .catch((error) => (refusal = error));
      if (pages.length === before) throw refusal ?? new Error('no response to tools/list');
      cursor = pages.at(-1).nextCursor;
    } while (cursor);
    const seconds = (performance.now() - begin) / 1000;
    return { client, pages, refusal, seconds, close: () => client.close().finally(stop) };
  } catch (error) {
    await transport.close().catch(() => {});
    throw new Error(stop() || error.message, { cause: error });
  }
}

/** Collects the output of a process. The returned function gives its last error line. */
function collect(...outputs) {
  let said = '';
  // The last lines are enough, without colours.
  const keep = (data) => (said = (said + data).replaceAll(/\x1b\[\d*m/g, '').slice(-20_000));
  for (const output of outputs) output?.on('data', keep);
  return () =>
    said
      .trim()
      .split('\n')
      .findLast((line) => /error/i.test(line)) ?? '';
}

function overStdio([command, ...args]) {
  const transport = new StdioClientTransport({ command, args, env: process.env, stderr: 'pipe' });
  return { transport, stop: collect(transport.stderr) };
}

async function overHttp(command) {
  const port = await freePort();
  const [program, ...args] = command.map((word) => word.replace('{port}', port));
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  const said = collect(child.stdout, child.stderr);
  const stop = () => (child.kill(), said());
  let ended = false;
  child.on('error', () => (ended = true)).on('exit', () => (ended = true));
  const deadline = performance.now() + PATIENCE;
  while (!(await listens(port))) {
    if (ended || performance.now() > deadline) {
      // The last output may still be in transit.
      await sleep(50);
      throw new Error(stop() || 'it does not listen');
    }
    await sleep(5);
  }
  return { transport: new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${port}/mcp`)), stop };
}

const freePort = () =>
  new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });

const listens = (port) =>
  new Promise((resolve) => {
    const socket = dial(port, '127.0.0.1', () => resolve(true));
    socket.on('error', () => resolve(false)).on('connect', () => socket.destroy());
  });

/** Reads `describeOperation` and its definitions, for servers with three tools for all operations. */
async function described(client) {
  const ask = async (args) => {
    const result = await client.callTool({ name: 'describeOperation', arguments: args });
    return result.isError ? undefined : result.structuredContent;
  };
  const known = new Map();
  const lookUp = async (definition) => {
    if (!known.has(definition)) known.set(definition, (await ask({ definition }))?.schema);
    return known.get(definition);
  };
  const told = new Map();
  for (const { id } of operations) {
    const answer = await ask({ operation: id });
    if (answer) told.set(id, answer);
    for (const name of answer?.definitions ?? []) await lookUp(name);
  }
  return { told, known, lookUp };
}

async function measure({ name, servers, start }) {
  const tools = [];
  const figures = { name, tools: 0, bytes: 0, usable: 0, hints: 0, outputs: 0 };
  let more;
  for (const server of servers) {
    const { client, pages, refusal, close } = await open(server);
    for (const page of pages) {
      figures.bytes += Buffer.byteLength(JSON.stringify(page));
      tools.push(...page.tools);
    }
    if (refusal) figures.refusal = refusal.message;
    if (tools.some((tool) => tool.name === 'describeOperation')) more = await described(client);
    await close();
  }
  figures.tools = tools.length;

  figures.unusable = [];
  for (const operation of operations) {
    const tool = toolOf(operation, tools);
    const told = more?.told.get(operation.id);
    const schema = told?.inputSchema ?? tool?.inputSchema;
    if (schema && (await isUsable(operation, schema, more?.lookUp))) figures.usable += 1;
    else figures.unusable.push(operation.id);
    if (told ? told.readOnly != null : hasHints(tool?.annotations)) figures.hints += 1;
    if (told ? told.outputSchema : tool?.outputSchema) figures.outputs += 1;
  }

  const listed = tools.flatMap((tool) => [[tool.inputSchema], [tool.outputSchema]]);
  const lookedUp = [...(more?.told.values() ?? [])].flatMap((told) => [
    [told.inputSchema],
    [told.outputSchema],
  ]);
  const definitions = [...(more?.known ?? [])].map(([name, schema]) => [schema, name]);
  const inList = subtypesIn(listed, subtypes);
  const inAll = subtypesIn([...listed, ...lookedUp, ...definitions], subtypes);
  figures.subtypes = { named: inList.named.size, described: inList.described.size };
  figures.reachable = { named: inAll.named.size, described: inAll.described.size };

  figures.seconds = await median(start);
  if (start.all) figures.secondsOfAll = await median(start.all);
  return figures;
}

async function median(server) {
  const seconds = [];
  for (let count = 0; count < STARTS; count += 1) {
    const opened = await open(server);
    seconds.push(opened.seconds);
    await opened.close();
  }
  return seconds.sort((a, b) => a - b)[Math.floor(STARTS / 2)];
}

const answering = operations.filter((operation) => operation.answers).length;
console.log(JSON.stringify({ operations: operations.length, answering, subtypes: subtypes.length }));
for (const subject of plan.subjects) {
  // A peer that could not be installed is reported with its error.
  const failed = (error) => ({ name: subject.name, error: error.message });
  const figures = subject.error ? subject : await measure(subject).catch(failed);
  console.log(JSON.stringify(figures));
}
process.exit(0);
