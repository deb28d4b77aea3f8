// A scenario is a file of conversations for all clients. `interop/README.md` describes it.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { check, skip } from './report.mjs';

/**
 * `servers` has the addresses of the scenario's servers. Conversations with other servers are skipped.
 * `connect(to, headers)` returns `send(method, params)`, which throws the errors of the client, and `close()`.
 * `cannot` has the reasons for checks that this client does not support. `lanes` is the number of parallel checks.
 */
export async function checkScenario(file, servers, connect, { cannot = {}, lanes = 1 } = {}) {
  for (const { server, headers, checks } of JSON.parse(await readFile(file, 'utf8'))) {
    if (!servers[server]) continue;
    const { send, close } = await connect(servers[server], headers);
    const lane = async () => {
      while (checks.length > 0) {
        const { check: name, steps, refused } = checks.shift();
        if (cannot[name]) skip(name, cannot[name]);
        else await check(name, () => (refused ? checkRefused(send, steps, refused) : checkSteps(send, steps)));
      }
    };
    await Promise.all(Array.from({ length: lanes }, lane));
    await close();
  }
}

/** Adapts the `connect` of a package, which returns `client` and `call`, to a scenario. */
export function library(connect) {
  return async (to, headers) => {
    const { client, call } = await connect(to, headers);
    const methods = {
      'tools/list': () => client.listTools(),
      'tools/call': ({ name, arguments: args }) => call(name, args),
      'resources/list': () => client.listResources(),
      'resources/templates/list': () => client.listResourceTemplates(),
      'resources/read': (params) => client.readResource(params),
      'prompts/list': () => client.listPrompts(),
      'prompts/get': (params) => client.getPrompt(params),
      'completion/complete': (params) => client.complete(params),
    };
    const close = async () => {
      // Over HTTP this sends DELETE, which a server without sessions rejects without an error.
      await client.transport.terminateSession?.();
      await client.close();
    };
    return { send: (method, params) => methods[method](params), close };
  };
}

async function checkSteps(send, steps) {
  const kept = {};
  for (const step of steps) {
    const filled = JSON.stringify(step).replace(/<(\w+)>/g, (_, name) => kept[name]);
    const { send: method, params, has = {}, says = [], keep } = JSON.parse(filled);
    const result = await send(method, params);
    const text = JSON.stringify(result);
    assert(has.isError || !result.isError, `${method} ended as an error: ${text}`);
    assert(contains(result, has), `${method}: ${JSON.stringify(has)} is not in ${text}`);
    for (const words of says) assert(text.includes(words), `${method}: "${words}" is not in ${text}`);
    if (keep) kept[keep] = result.structuredContent[keep];
  }
}

async function checkRefused(send, steps, words) {
  await assert.rejects(checkSteps(send, steps), (error) => {
    const text = String(error).toLowerCase();
    assert(words.some((word) => text.includes(word)), `refused, but not with one of ${words}: ${error}`);
    return true;
  });
}

/** Objects may have more members and lists more items, in any order. */
function contains(actual, expected) {
  if (typeof expected !== 'object') return actual === expected;
  if (Array.isArray(expected)) {
    return Array.isArray(actual) && expected.every((item) => actual.some((it) => contains(it, item)));
  }
  return Object.entries(expected).every(([key, value]) => contains(actual?.[key], value));
}
