// The checks of every npm client that is a library. The fixtures are those of `examples/conformance`.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { check } from './report.mjs';

const ANSWER = 'Ada';

/** Responds to an elicitation. Every requested field is a string, and gets the same value. */
export function answer(request) {
  const fields = Object.keys(request.params.requestedSchema.properties);
  return { action: 'accept', content: Object.fromEntries(fields.map((field) => [field, ANSWER])) };
}

/** `peer` is a connected `client` and `call(name, arguments, options)`, whose shape differs between the packages. */
export async function checkConversation(peer, { modern }) {
  const { client, call } = peer;

  await check('list', async () => {
    const { tools } = await client.listTools();
    const { resources } = await client.listResources();
    const { prompts } = await client.listPrompts();
    assert(tools.some((tool) => tool.name === 'test_simple_text'), 'test_simple_text is not listed');
    assert(resources.some((resource) => resource.uri === 'test://static-text'), 'test://static-text is not listed');
    assert(prompts.some((prompt) => prompt.name === 'test_simple_prompt'), 'test_simple_prompt is not listed');
  });

  await check('call', async () => {
    const result = await call('test_simple_text', {});
    assert.equal(result.content[0].text, 'This is a simple text response for testing.');
  });

  await check('progress', () => checkProgress(peer));

  await check('elicitation', async () => {
    if (modern) {
      const result = await call('test_input_required_result_elicitation', {});
      assert.equal(result.content[0].text, `Hello, ${ANSWER}!`);
    } else {
      const result = await call('test_elicitation', { message: 'Who is there?' });
      assert.match(result.content[0].text, /^User response: /);
      assert(result.content[0].text.includes(ANSWER), `the answer is not in: ${result.content[0].text}`);
    }
  });

  await check('read', async () => {
    assert.equal(await read(client, 'test://static-text'), 'This is the content of the static text resource.');
  });

  await check('prompt', async () => {
    const { messages } = await client.getPrompt({ name: 'test_simple_prompt' });
    assert.equal(messages[0].content.text, 'This is a simple prompt for testing.');
  });
}

export async function checkCancel({ client, call }) {
  await check('cancel', async () => {
    const before = await cancelledCount(client);
    const abort = new AbortController();
    const running = call('test_slow', { seconds: 30 }, { signal: abort.signal });
    const refused = assert.rejects(running);
    // The call must have reached the server before it can be cancelled there.
    await sleep(500);
    abort.abort('no longer needed');
    await refused;
    await becomes(() => cancelledCount(client), before + 1);
  });
}

/**
 * `connect` goes through the proxy of `cargo xtask interop`. First the server itself ends the stream of a call early;
 * then the proxy closes the connection after a progress event. Both results arrive by GET with Last-Event-ID.
 */
export async function checkResume(connect) {
  const peer = await connect();
  await check('hang-up', async () => {
    const result = await peer.call('test_reconnection', {});
    assert(!result.isError, 'the call ended as an error');
  });
  await check('cut', () => checkProgress(peer));
  await peer.client.close();
}

/** After a disconnect, the same three events prove that no event was lost or duplicated. */
async function checkProgress({ client, call }) {
  const arrived = [];
  const handled = [];
  const { onmessage } = client.transport;
  client.transport.onmessage = (message, extra) => {
    if (message.method === 'notifications/progress') arrived.push(message.params.progress);
    onmessage(message, extra);
  };
  await call('test_tool_with_progress', {}, { onprogress: ({ progress }) => handled.push(progress) });
  client.transport.onmessage = onmessage;
  assert.deepEqual(arrived, [0, 50, 100]);
  // Only the first event is certain to reach the handler. Both packages remove the handler when they read the
  // result, but run it one turn later, so events in the same read as the result are lost.
  assert.equal(handled[0], 0);
}

async function read(client, uri) {
  const { contents } = await client.readResource({ uri });
  return contents[0].text;
}

async function cancelledCount(client) {
  return Number(await read(client, 'test://cancelled-count'));
}

/** Polls, because a cancellation has no response. */
export async function becomes(value, expected) {
  let last;
  for (let waited = 0; waited < 5_000; waited += 100) {
    last = await value();
    if (last === expected) return;
    await sleep(100);
  }
  assert.equal(last, expected);
}
