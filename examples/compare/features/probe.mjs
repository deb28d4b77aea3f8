// Tries every row of the table of features: node probe.mjs '{"name": …, "command": […]}' …
import { spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { Client, within } from './client.mjs';

const LEGACY = '2025-11-25';
const MODERN = '2026-07-28';
const HERE = new URL('.', import.meta.url);
const verbose = process.env.PROBE_VERBOSE;
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** A running server. */
class Server {
  static async start({ name, command }, mode) {
    const server = new Server();
    server.port = await freePort();
    server.origin = `http://127.0.0.1:${server.port}`;
    server.url = `${server.origin}/mcp`;
    const [program, ...args] = [...command, mode, String(server.port)];
    server.child = spawn(program, args, { stdio: ['ignore', 'ignore', verbose ? 'inherit' : 'ignore'], cwd: HERE });
    server.ended = new Promise((resolve) => server.child.once('exit', resolve));
    for (let tries = 0; ; tries++) {
      try {
        await fetch(server.url, { method: 'POST' }).then((response) => response.arrayBuffer());
        return server;
      } catch (error) {
        if (tries > 300 || server.child.exitCode !== null) throw new Error(`${name} ${mode} did not start: ${error}`);
        await pause(100);
      }
    }
  }

  async stop() {
    this.child.kill('SIGKILL');
    await this.ended;
  }
}

/** Returns the members of a schema, whether they are inline or references. */
function members(schema) {
  const resolve = (it) => (it.$ref ? { ...schema.$defs[it.$ref.split('/').at(-1)], ...it } : it);
  const flat = (it) => {
    const found = resolve(it);
    const other = found.anyOf ?? found.allOf;
    return other ? { ...found, ...resolve(other.find(({ type }) => type !== 'null')) } : found;
  };
  return Object.fromEntries(Object.entries(schema.properties ?? {}).map(([name, it]) => [name, flat(it)]));
}

const tool = async (client, name) => (await client.request('tools/list')).tools.find((it) => it.name === name);
const FORM = { elicitation: { form: {}, url: {} }, sampling: {} };
const accept = { 'elicitation/create': () => ({ action: 'accept', content: { email: 'a@b.example', weeks: 2, pick_up: 'locker' } }) };
const opens = { 'elicitation/create': ({ mode, url }) => ({ action: mode === 'url' && url ? 'accept' : 'decline' }) };
const samples = {
  'sampling/createMessage': ({ maxTokens }) => ({
    role: 'assistant',
    model: 'probe',
    content: { type: 'text', text: maxTokens === 100 ? 'short' : 'long' },
  }),
};

/** Whether a tool works with these answers, in both kinds of revisions. */
const asks = (name, args, answers, expected) => async (server) => {
  const found = [];
  for (const revision of [LEGACY, MODERN]) {
    try {
      const client = await Client.connect(server.url, revision, { capabilities: FORM, answers });
      if ((await client.text(name, args)) === expected) found.push(revision);
      await client.close();
    } catch (error) {
      if (verbose) console.error(name, revision, error);
    }
  }
  return found.length === 2 || (found.length ? `only ${found[0]}` : false);
};

/** Every row: the chapter, the label, the mode of the server, the probe. */
const rows = [
  ['first-tool', 'the documentation of the function is the description', 'open', async ({ client }) => {
    const { description, inputSchema } = await tool(client, 'add');
    return description.trim() === 'Adds two numbers.' && members(inputSchema).a.type === 'integer';
  }],
  ['arguments', 'limits of arguments are in the schema', 'open', async ({ client }) => {
    const { words, sort, limit } = members((await tool(client, 'find_books')).inputSchema);
    return words.minLength === 2 && sort.enum?.length === 2 && limit.maximum === 50 && limit.default === 10;
  }],
  ['arguments', 'arguments are validated before the function runs', 'open', async ({ client }) => {
    const texts = await Promise.all([{ words: 'x' }, { words: 'sea', limit: 51 }, { words: 'sea', sort: 'x' }].map((it) => client.text('find_books', it)));
    return texts.every((text) => text !== 'found') && (await client.text('find_books', { words: 'sea' })) === 'found';
  }],
  ['arguments', 'one error names every mistake', 'open', async ({ client }) => {
    const text = await client.text('find_books', { words: 'x', limit: 51, sort: 'x' });
    return ['words', 'limit', 'sort'].every((name) => text.includes(name));
  }],
  ['arguments', 'unknown arguments are rejected', 'open', async ({ client }) => (await client.text('find_books', { words: 'sea', limti: 3 })) !== 'found'],
  ['arguments', 'a misspelled argument is answered with the known name', 'open', async ({ client }) => {
    const text = await client.text('find_books', { words: 'sea', limti: 3 });
    return text !== 'found' && /\blimit\b/.test(text);
  }],
  ['results', 'structured content with an output schema', 'open', async ({ client }) => {
    const { outputSchema } = await tool(client, 'get_book');
    const { structuredContent } = await client.call('get_book', { id: 1 });
    return outputSchema?.properties?.pages !== undefined && structuredContent?.pages > 0;
  }],
  ['results', 'an error of a tool is text for the model', 'open', async ({ client }) => {
    const { isError, content } = await client.call('get_book', { id: 7 });
    return isError === true && content[0].text.includes('7');
  }],
  ['results', 'the text of a propagated error stays on the server', 'open', async ({ client }) => {
    const text = await client.text('count_lines');
    return !/srv.private|no such file/i.test(text);
  }],
  ['results', 'a panic or crash is answered, and the session goes on', 'open', async ({ client }) => {
    const crashed = await within(3, client.send('tools/call', { name: 'crash', arguments: {} }));
    return (crashed.error || crashed.result?.isError) && (await client.text('add', { a: 1, b: 2 })) === '3';
  }],
  ['state', 'clients share state', 'open', async ({ server, client }) => {
    const other = await Client.connect(server.url, LEGACY);
    return Number(await client.text('next_number')) + 1 === Number(await other.text('next_number'));
  }],
  ['resources', 'resource templates', 'open', async ({ client }) => {
    const { resourceTemplates } = await client.request('resources/templates/list');
    if (resourceTemplates[0].uriTemplate !== 'note:///{name}') return false;
    const { contents } = await client.request('resources/read', { uri: 'note:///rules' });
    return contents[0].text === 'be quiet';
  }],
  ['resources', 'a function lists resources', 'open', async ({ client }) => {
    await client.call('write_note', { name: 'late', text: 'x' });
    const uris = (await client.request('resources/list')).resources.map(({ uri }) => uri);
    return uris.includes('note:///rules') && uris.includes('note:///late');
  }],
  ['resources', 'subscribers of a resource are notified, 2025-11-25', 'open', async ({ client, writer }) => {
    await client.request('resources/subscribe', { uri: 'note:///rules' });
    await writer.call('write_note', { name: 'rules', text: 'be quiet' });
    return client.saw('notifications/resources/updated', ({ uri }) => uri === 'note:///rules');
  }],
  ['resources', 'changed lists are announced to all clients, 2025-11-25', 'open', async ({ client, writer }) => {
    await writer.call('write_note', { name: `new-${Date.now()}`, text: 'x' });
    return client.saw('notifications/resources/list_changed');
  }],
  ['resources', 'both are announced to `subscriptions/listen`, 2026-07-28', 'open', async ({ modern, writer }) => {
    const notifications = { resourcesListChanged: true, resourceSubscriptions: ['note:///rules'] };
    const stop = new AbortController();
    const listening = modern.send('subscriptions/listen', { notifications }, { signal: stop.signal }).catch(() => {});
    await pause(300);
    await writer.call('write_note', { name: `newer-${Date.now()}`, text: 'x' });
    await writer.call('write_note', { name: 'rules', text: 'be quiet' });
    const seen = (await modern.saw('notifications/resources/list_changed')) && (await modern.saw('notifications/resources/updated'));
    stop.abort();
    await listening;
    return seen;
  }],
  ['prompts', 'prompts with arguments', 'open', async ({ client }) => {
    const { messages } = await client.request('prompts/get', { name: 'review', arguments: { author: 'Austen', title: 'Emma' } });
    return messages[0].content.text.includes('Emma');
  }],
  ['prompts', 'completion of arguments', 'open', async ({ client }) => {
    const ref = { type: 'ref/prompt', name: 'review' };
    const { completion } = await client.request('completion/complete', { ref, argument: { name: 'author', value: 'As' } });
    return completion.values.join() === 'Asimov';
  }],
  ['prompts', 'completion knows the chosen arguments', 'open', async ({ client }) => {
    const ref = { type: 'ref/prompt', name: 'review' };
    const context = { arguments: { author: 'Austen' } };
    const { completion } = await client.request('completion/complete', { ref, argument: { name: 'title', value: '' }, context });
    return completion.values.join() === 'Emma,Persuasion';
  }],
  ['asking', 'typed elicitation in all revisions', 'open', ({ server }) => asks('reserve', { book: 'Dune' }, accept, 'Dune 2 locker')(server)],
  ['asking', 'the answer is validated', 'open', async ({ server }) => {
    const wrong = { 'elicitation/create': () => ({ action: 'accept', content: { email: 'a@b.example', weeks: 99, pick_up: 'locker' } }) };
    for (const revision of [LEGACY, MODERN]) {
      const client = await Client.connect(server.url, revision, { capabilities: FORM, answers: wrong });
      const text = await within(5, client.text('reserve', { book: 'Dune' }));
      await client.close();
      if (text.startsWith('Dune')) return false;
    }
    return true;
  }],
  ['asking', 'a page to open (URL elicitation)', 'open', ({ server }) => asks('pay_fee', {}, opens, 'paid')(server)],
  ['asking', 'sampling in all revisions', 'open', ({ server }) => asks('summarize', { text: 'x' }, samples, 'short')(server)],
  ['asking', 'a client that cannot be asked gets a clear error', 'open', async ({ client, modern }) => {
    const told = await Promise.all([client, modern].map((it) => within(5, it.text('reserve', { book: 'Dune' }))));
    return told.every((text) => /elicit/i.test(text) && !/the server asks/.test(text));
  }],
  ['progress', 'progress and log messages', 'open', async ({ client }) => {
    await client.request('logging/setLevel', { level: 'info' });
    const params = { name: 'check_shelf', arguments: { books: 3 }, _meta: { progressToken: 'p' } };
    await client.request('tools/call', params);
    return (await client.saw('notifications/progress', ({ progress }) => progress === 3)) && (await client.saw('notifications/message', ({ level }) => level === 'warning'));
  }],
  ['progress', 'a cancelled call ends its handler, 2025-11-25', 'open', async ({ client }) => {
    const before = Number(await client.text('cancelled_scans'));
    const running = client.send('tools/call', { name: 'scan', arguments: {} }, { id: 'scan-1' }).catch(() => {});
    await pause(300);
    await client.notify('notifications/cancelled', { requestId: 'scan-1' });
    await pause(700);
    void running;
    return Number(await client.text('cancelled_scans')) === before + 1;
  }],
  ['progress', 'a client that disconnects cancels its call, 2026-07-28', 'open', async ({ modern }) => {
    const before = Number(await modern.text('cancelled_scans'));
    const stop = new AbortController();
    const running = modern.send('tools/call', { name: 'scan', arguments: {} }, { signal: stop.signal }).catch(() => {});
    await pause(300);
    stop.abort();
    await running;
    await pause(1000);
    return Number(await modern.text('cancelled_scans')) === before + 1;
  }],
  ['tasks', 'calls that run as tasks, 2026-07-28', 'open', async ({ server }) => {
    const capabilities = { extensions: { 'io.modelcontextprotocol/tasks': {} } };
    const client = await Client.connect(server.url, MODERN, { capabilities });
    const { resultType, taskId } = await client.call('rebuild_index');
    if (resultType !== 'task') return false;
    for (let tries = 0; tries < 50; tries++) {
      const { status, result } = await client.request('tasks/get', { taskId });
      if (status === 'completed') return result.content[0].text === 'rebuilt';
      await pause(100);
    }
    return false;
  }],
  ['tasks', 'the same tool for clients without tasks', 'open', async ({ client }) => (await client.text('rebuild_index')) === 'rebuilt'],
  ['auth', 'requests without a key are answered with 401', 'auth', async ({ url }) => {
    const response = await Client.connect(url, MODERN).then((client) => client.send('tools/call', { name: 'my_books', arguments: {} })).catch((error) => error);
    return response.status === 401;
  }],
  ['auth', 'one tool is open to callers without a key', 'auth', async ({ url }) => (await (await Client.connect(url, MODERN)).text('opening_hours')) === '9 to 18'],
  ['auth', 'the function knows its caller', 'auth', async ({ ann }) => (await ann.text('my_books')) === 'books of ann'],
  ['auth', 'a tool needs a scope', 'auth', async ({ ann, bob }) => (await ann.text('cancel_order', { id: 7 })) !== 'cancelled 7' && (await bob.text('cancel_order', { id: 7 })) === 'cancelled 7'],
  ['auth', 'a missing scope is a 403 with a challenge', 'auth', async ({ url }) => {
    const client = new Client(url, MODERN, { headers: { authorization: 'Bearer ann-key' } });
    const params = { name: 'cancel_order', arguments: { id: 7 } };
    const meta = { 'io.modelcontextprotocol/protocolVersion': MODERN, 'io.modelcontextprotocol/clientCapabilities': {} };
    const response = await client.post({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { ...params, _meta: meta } });
    await response.arrayBuffer();
    return response.status === 403 && /insufficient_scope/.test(response.headers.get('www-authenticate') ?? '');
  }],
  ['hooks', 'a hook around every call', 'open', async ({ client }) => {
    const before = Number(await client.text('audited'));
    await client.text('add', { a: 1, b: 2 });
    return Number(await client.text('audited')) === before + 2;
  }],
  ['hooks', 'a quota for each caller and tool', 'open', async ({ client }) => {
    const texts = [];
    for (let calls = 0; calls < 4; calls++) texts.push(await client.text('order_book', { title: 'x' }));
    return texts.slice(0, 3).every((text) => text === 'ordered') && texts[3] !== 'ordered' && (await client.text('add', { a: 1, b: 2 })) === '3';
  }],
  ['hooks', 'each caller sees its own entries', 'auth', async ({ ann, bob }) => {
    const sees = async (client) => Boolean(await tool(client, 'count_till'));
    return (await sees(bob)) && !(await sees(ann)) && (await ann.text('count_till')) !== '12.50';
  }],
  ['mounting', 'mounted beside the routes of an app', 'open', async ({ origin }) => (await (await fetch(`${origin}/page`)).text()) === 'a page'],
  ['mounting', 'stdio', 'command', async ({ command }) => {
    const [program, ...args] = [...command, 'stdio'];
    const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'ignore'], cwd: HERE });
    const clientInfo = { name: 'probe', version: '1.0.0' };
    const params = { protocolVersion: LEGACY, capabilities: {}, clientInfo };
    child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params })}\n`);
    const first = new Promise((resolve) => child.stdout.once('data', (data) => resolve(String(data))));
    const text = await within(20, first).finally(() => child.kill('SIGKILL'));
    return JSON.parse(text.split('\n')[0]).result.protocolVersion === LEGACY;
  }],
  ['mounting', 'a foreign `Host` is rejected by default', 'open', async ({ port }) => (await rawStatus(port, 'evil.example')) >= 400],
  ['mounting', 'a foreign `Origin` is rejected by default', 'open', async ({ port }) => (await rawStatus(port, `127.0.0.1:${port}`, 'https://evil.example')) >= 400],
  ['mounting', 'revisions on one address', 'open', async ({ server }) => {
    const spoken = [];
    for (const revision of ['2024-11-05', '2025-03-26', '2025-06-18', LEGACY]) {
      const client = await Client.connect(server.url, revision).catch(() => null);
      if (client?.opening.protocolVersion === revision) spoken.push(revision);
      await client?.close();
    }
    if (await Client.connect(server.url, MODERN).then(({ opening }) => opening.supportedVersions.includes(MODERN)).catch(() => false)) spoken.push(MODERN);
    return spoken.length === 5 ? 'all five' : spoken.join(', ');
  }],
  ['mounting', 'HTTP+SSE of 2024-11-05 on the same port', 'open', async ({ origin }) => {
    for (const path of ['/sse', '/mcp/sse']) {
      const stop = new AbortController();
      const response = await fetch(origin + path, { headers: { accept: 'text/event-stream' }, signal: stop.signal });
      if (!response.ok) continue;
      const { value } = await within(3, response.body.getReader().read());
      stop.abort();
      return String(Buffer.from(value)).includes('endpoint');
    }
    return false;
  }],
  ['extensions', 'a page for a tool (MCP Apps)', 'open', async ({ modern }) => {
    const uri = (await tool(modern, 'chart'))._meta?.ui?.resourceUri;
    const { contents } = await modern.request('resources/read', { uri });
    return contents[0].mimeType === 'text/html;profile=mcp-app';
  }],
  ['extensions', 'skills', 'open', async ({ modern }) => (await modern.request('skills/list')).skills.length === 1],
  ['testing', 'a client in memory, for tests', 'selftest', ({ flags }) => flags.call === true],
  ['testing', 'it answers questions of the server', 'selftest', ({ flags }) => flags.elicitation === true],
  ['testing', 'it enforces scopes without HTTP', 'selftest', ({ flags }) => flags.scopes === true],
  ['testing', 'it uses legacy and modern revisions', 'selftest', ({ flags }) => flags.revisions === true],
  ['deploying', 'SIGTERM lets running calls end', 'command', async (framework) => {
    // Some servers lose the call now and then.
    for (let tries = 0; tries < 5; tries++) {
      const server = await Server.start(framework, 'open');
      try {
        const client = await Client.connect(server.url, LEGACY);
        const running = client.send('tools/call', { name: 'rebuild_index', arguments: {} });
        await pause(100);
        server.child.kill('SIGTERM');
        const { result } = await within(5, running);
        if (result?.content[0].text !== 'rebuilt') return false;
      } finally {
        await server.stop();
      }
    }
    return true;
  }],
];

/** The status of an `initialize` with these headers, which `fetch` would not send. */
async function rawStatus(port, host, origin) {
  const { request } = await import('node:http');
  const clientInfo = { name: 'probe', version: '1.0.0' };
  const params = { protocolVersion: LEGACY, capabilities: {}, clientInfo };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params });
  const headers = {
    host,
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'content-length': Buffer.byteLength(body),
    ...(origin && { origin }),
  };
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, path: '/mcp', method: 'POST', headers }, (response) => {
      response.destroy();
      resolve(response.statusCode);
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

async function selftest({ command }) {
  const [program, ...args] = [...command, 'selftest'];
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', verbose ? 'inherit' : 'ignore'], cwd: HERE });
  let text = '';
  child.stdout.on('data', (data) => (text += data));
  await within(60, new Promise((resolve) => child.once('exit', resolve))).finally(() => child.kill('SIGKILL'));
  return JSON.parse(text);
}

/** Returns what a probe of this mode gets. */
async function prepare(framework, mode, servers) {
  if (mode === 'command') return framework;
  if (mode === 'selftest') return { flags: (servers.flags ??= await selftest(framework).catch(() => ({}))) };
  const server = (servers[mode] ??= await Server.start(framework, mode));
  const { url, origin, port } = server;
  const connect = (revision, key) => Client.connect(url, revision, key && { headers: { authorization: `Bearer ${key}` } });
  if (mode === 'auth') return { url, ann: await connect(MODERN, 'ann-key'), bob: await connect(MODERN, 'bob-key') };
  const [client, writer, modern] = [await connect(LEGACY), await connect(LEGACY), await connect(MODERN)];
  // The stream of notifications of a legacy client opens after its handshake.
  await pause(100);
  return { server, url, origin, port, client, writer, modern };
}

async function probe(framework) {
  const servers = {};
  const cells = [];
  for (const [, label, mode, run] of rows) {
    let cell = false;
    let given;
    try {
      given = await prepare(framework, mode, servers);
      cell = await within(60, run(given), label);
    } catch (error) {
      if (verbose) console.error(`${framework.name}: ${label}:`, error);
    }
    for (const client of [given?.client, given?.writer, given?.modern]) await client?.close().catch(() => {});
    // A note says how a framework does it, where "yes" alone would hide a difference.
    const yes = framework.notes?.[label] ?? 'yes';
    cells.push(typeof cell === 'string' ? cell : cell ? yes : 'no');
  }
  for (const server of [servers.open, servers.auth]) await server?.stop();
  return cells;
}

const frameworks = process.argv.slice(2).map((it) => JSON.parse(it));
const columns = [];
for (const framework of frameworks) columns.push(await probe(framework));
const line = (first, cells) => `| ${first} | ${cells.join(' | ')} |`;
console.log(line('', frameworks.map(({ name }) => name)));
console.log(`|---|${frameworks.map(() => '---|').join('')}`);
let last;
rows.forEach(([chapter, label], row) => {
  const link = chapter === last ? label : `[${chapter}](guide/${chapter}.md): ${label}`;
  last = chapter;
  console.log(line(link, columns.map((cells) => cells[row])));
});
process.exit(0);
