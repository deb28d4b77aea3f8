// The Inspector's command line, one process per request:
// node inspector.mjs legacy|modern conformance <url> <url of the proxy> | <scenario> <url> <url with keys>
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { becomes } from './checks.mjs';
import { check, main, skip } from './report.mjs';
import { checkScenario } from './scenario.mjs';

const [mode, scenario, url, otherUrl] = process.argv.slice(2);
const bin = path('./node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js');

function start(to, ...args) {
  return spawn(process.execPath, [bin, '--cli', to, '--protocol-era', mode, '--format', 'json', '--quiet', ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    // It keeps its files in the home folder. The files of this machine's user must not be changed.
    env: { ...process.env, HOME: path('./inspector-home') },
  });
}

async function request(to, method, ...args) {
  const cli = start(to, '--method', method, ...args);
  let output = '';
  let errors = '';
  cli.stdout.on('data', (data) => (output += data));
  cli.stderr.on('data', (data) => (errors += data));
  const [code] = await new Promise((resolve) => cli.once('close', (...ended) => resolve(ended)));
  process.stderr.write(errors);
  // Code 5 means a tool error, which is also a result.
  assert(code === 0 || code === 5, `${method} ended with exit code ${code}: ${errors}`);
  return JSON.parse(output).result;
}

/** Returns the parameters of a request as command line arguments. */
const FLAGS = {
  'tools/call': ({ name, arguments: args }) => ['--tool-name', name, '--tool-args-json', JSON.stringify(args)],
  'resources/read': ({ uri }) => ['--uri', uri],
  'prompts/get': ({ name, arguments: args }) => [
    ...['--prompt-name', name],
    ...Object.entries(args).flatMap(([key, value]) => ['--prompt-args', `${key}=${value}`]),
  ],
};

async function connect(to, headers) {
  const flags = Object.entries(headers).flatMap(([name, value]) => ['--header', `${name}: ${value}`]);
  // No user is available for an interactive login.
  flags.push('--stored-auth-only');
  const { protocolVersion } = await request(to, 'initialize', ...flags);
  assert.equal(protocolVersion, mode === 'modern' ? '2026-07-28' : '2025-11-25');
  return {
    send: (method, params) => request(to, method, ...flags, ...(FLAGS[method]?.(params) ?? [])),
    close: () => {},
  };
}

async function callThroughProxy(tool, ...args) {
  const { isError } = await request(otherUrl, 'tools/call', '--tool-name', tool, ...args);
  assert(!isError, `${tool} ended as an error`);
}

async function cancelledCount() {
  const { contents } = await request(url, 'resources/read', '--uri', 'test://cancelled-count');
  return Number(contents[0].text);
}

function path(relative) {
  return fileURLToPath(new URL(relative, import.meta.url));
}

async function conformance() {
  await check('list', async () => {
    const { tools } = await request(url, 'tools/list');
    const { resources } = await request(url, 'resources/list');
    const { prompts } = await request(url, 'prompts/list');
    assert(tools.some((tool) => tool.name === 'test_simple_text'), 'test_simple_text is not listed');
    assert(resources.some((resource) => resource.uri === 'test://static-text'), 'test://static-text is not listed');
    assert(prompts.some((prompt) => prompt.name === 'test_simple_prompt'), 'test_simple_prompt is not listed');
  });

  await check('call', async () => {
    const { content } = await request(url, 'tools/call', '--tool-name', 'test_simple_text');
    assert.equal(content[0].text, 'This is a simple text response for testing.');
  });

  skip('progress', 'the command line builds its client with progress: false and prints the result only');
  skip('elicitation', 'the command line builds its client with elicit: false and declares no such capability');

  await check('read', async () => {
    const { contents } = await request(url, 'resources/read', '--uri', 'test://static-text');
    assert.equal(contents[0].text, 'This is the content of the static text resource.');
  });

  await check('prompt', async () => {
    const { messages } = await request(url, 'prompts/get', '--prompt-name', 'test_simple_prompt');
    assert.equal(messages[0].content.text, 'This is a simple prompt for testing.');
  });

  if (mode === 'modern') {
    // Ctrl-C closes the stream of the call, which cancels it from 2026-07-28 on.
    await check('cancel', async () => {
      const before = await cancelledCount();
      const cli = start(url, '--method', 'tools/call', '--tool-name', 'test_slow', '--tool-arg', 'seconds=30');
      await sleep(2_000);
      cli.kill('SIGINT');
      await becomes(cancelledCount, before + 1);
    });
  } else {
    skip('cancel', 'only a timeout of 60 s would make it cancel; Ctrl-C ends it without a word to the server');
    await check('hang-up', () => callThroughProxy('test_reconnection'));
    // Without a progress token the tool would send no event to close the connection after.
    await check('cut', () => callThroughProxy('test_tool_with_progress', '--tool-metadata', 'progressToken=7'));
  }
}

// Every request starts a process, which takes some time.
const manners = { cannot: { complete: 'the command line has no completion/complete' }, lanes: 2 };

await main(() =>
  scenario === 'conformance'
    ? conformance()
    : checkScenario(scenario, { open: url, keys: otherUrl }, connect, manners),
);
