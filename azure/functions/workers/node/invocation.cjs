'use strict';

// One invocation of a function. The programming model (the library's, or ours for function.json) converts the request
// to arguments and the result to a response. This file runs the hooks.

const { SUCCESS, CANCELLED, failed } = require('./failure.cjs');
const { lowerKeys } = require('./function_json.cjs');

const MAX_QUOTED = 1024;
const MAY_BE_JSON = /^\s*(?:[{["]|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\s*$|(?:true|false|null)\s*$)/;

/** The core context of a programming model, which uses `log`, `request`, `metadata` and `state`. */
class Invocation {
  invocationId;
  request;
  metadata;
  state = undefined;
  /** Shared by the hooks of this invocation. */
  hookData = {};
  /** The context of the handler, after it is created. */
  userContext = undefined;
  isCancelled = false;
  #app;

  constructor(app, metadata, request) {
    this.#app = app;
    this.invocationId = request.invocationId;
    this.request = request;
    this.metadata = metadata;
  }

  log(level, category, message) {
    this.#app.log(level, category, message, this);
  }

  /** Runs the function and returns the `invocationResponse`. Never throws: an error becomes a failed response. */
  async run(model, callback) {
    const { invocationId } = this;
    let response;
    try {
      decodeRequest(this.request, this.#app.httpUri !== undefined);
      const { outputData, returnValue } = await this.#respond(model.getInvocationModel(this), callback);
      response = {
        invocationId,
        outputData: outputData?.map(encodeOutput),
        returnValue: encodeData(returnValue),
        result: SUCCESS,
      };
    } catch (error) {
      response = { invocationId, result: failed(error) };
    }
    // The library's weak maps may keep this object for a while, so the inputs are released here.
    this.request = undefined;
    return this.isCancelled ? { invocationId, result: CANCELLED } : response;
  }

  async #respond(model, callback) {
    const { context, inputs } = await model.getArguments();
    this.userContext = context;
    completeCall(inputs[0], this.metadata, this.request);
    completeMetadata(context.triggerMetadata, inputs[0], this.metadata);
    const { preInvocation, postInvocation } = this.#app.hooks;
    if (preInvocation.length === 0 && postInvocation.length === 0) {
      return this.#answer(model, context, await model.invokeFunction(context, inputs, callback));
    }
    return this.#answer(model, context, await this.#invokeWithHooks(model, context, inputs, callback));
  }

  async #answer(model, context, result) {
    const response = await model.getResponse(context, result);
    if (result?.isError === true) keepError(response);
    return response;
  }

  async #invokeWithHooks(model, invocationContext, inputs, functionCallback) {
    const before = { hookData: this.hookData, invocationContext, inputs, functionCallback };
    this.state = 'preInvocationHooks';
    await this.#app.runHooks('preInvocation', before);

    const after = { hookData: this.hookData, invocationContext, inputs: before.inputs, result: null, error: null };
    this.state = 'invocation';
    try {
      after.result = await model.invokeFunction(invocationContext, before.inputs, before.functionCallback);
    } catch (error) {
      after.error = error ?? new Error(`The function threw ${error}.`);
    }
    // A hook may replace the result, and set or clear the error.
    this.state = 'postInvocationHooks';
    await this.#app.runHooks('postInvocation', after);
    this.state = undefined;
    if (after.error != null) throw after.error;
    return after.result;
  }
}

const CONTEXT_NAMES = {
  mcpToolTrigger: 'mcptoolcontext',
  mcpResourceTrigger: 'mcpresourcecontext',
  mcpPromptTrigger: 'mcppromptcontext',
};
const CONTEXT_MEMBERS = [
  'name',
  'uri',
  'arguments',
  'sessionid',
  'clientinfo',
  'transport',
  'inputResponses',
  'state',
];
const mcpTriggers = new WeakMap();

/** Returns the MCP trigger of a function with the name of its context in the metadata, or null. */
function mcpTriggerOf(metadata) {
  let trigger = mcpTriggers.get(metadata);
  if (trigger === undefined) {
    const names = Object.keys(metadata.bindings ?? {});
    const name = names.find((name) => metadata.bindings[name].type in CONTEXT_NAMES);
    trigger = name === undefined ? null : { name, contextName: CONTEXT_NAMES[metadata.bindings[name].type] };
    mcpTriggers.set(metadata, trigger);
  }
  return trigger;
}

/**
 * Adds the other members of the context to the argument of a prompt. The library passes only name, arguments, session
 * and transport, but a prompt that requested input from the client needs the responses.
 */
function completeCall(call, metadata, request) {
  if (typeof call !== 'object' || call === null) return;
  const trigger = mcpTriggerOf(metadata);
  if (trigger?.contextName !== CONTEXT_NAMES.mcpPromptTrigger) return;
  const whole = request.inputData.find((input) => input.name === trigger.name)?.data?.string;
  if (whole === undefined) return;
  for (const [member, value] of Object.entries(JSON.parse(whole))) call[member] ??= value;
}

/**
 * Adds the context of an MCP trigger to the trigger metadata. The host sends it once, as the value of the trigger. In
 * Azure, the metadata also contains the context and its members, and a function may read them there.
 */
function completeMetadata(triggerMetadata, call, metadata) {
  if (typeof call !== 'object' || call === null || typeof triggerMetadata !== 'object' || triggerMetadata === null) return;
  const trigger = mcpTriggerOf(metadata);
  if (trigger === null) return;
  // The models make first letters lower case at every depth of the metadata. This is done only on first access.
  let lowered;
  const small = () => (lowered ??= lowerKeys(call));
  const offer = (name, read) => {
    if (triggerMetadata[name] != null) return;
    const set = (value) => Object.defineProperty(triggerMetadata, name, { value, writable: true, enumerable: true, configurable: true });
    Object.defineProperty(triggerMetadata, name, { get: read, set, enumerable: true, configurable: true });
  };
  for (const member of CONTEXT_MEMBERS) {
    if (call[member] !== undefined) offer(member, () => small()[member]);
  }
  offer(trigger.contextName, small);
  offer(trigger.name, small);
}

/** Restores `isError`, which the library's `McpToolResponse` accepts but drops. Only a complete result can carry it. */
function keepError(response) {
  const envelope = parsed(response.returnValue?.string);
  if (typeof envelope?.type !== 'string' || typeof envelope.content !== 'string') return;
  if (envelope.type === 'call_tool_result') return;
  const content = parsed(envelope.content);
  if (content === undefined) return;
  const whole = { content: Array.isArray(content) ? content : [content], isError: true };
  if (typeof envelope.structuredContent === 'string') whole.structuredContent = parsed(envelope.structuredContent);
  response.returnValue = { string: JSON.stringify({ type: 'call_tool_result', content: JSON.stringify(whole) }) };
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

// Bytes are base64 on the wire and Buffers in the programming models.

function decodeRequest(request, streamsHttp) {
  request.inputData ??= [];
  for (const input of request.inputData) decodeData(input.data);
  // The library reads the parameters of a streamed HTTP request from the metadata, as strings.
  if (streamsHttp && request.inputData.some((input) => input.data?.http !== undefined)) return;
  for (const key in request.triggerMetadata) decodeData(request.triggerMetadata[key]);
}

function decodeData(data) {
  if (data === undefined) return;
  if (data.http !== undefined) return decodeRequestBody(data.http);
  const { string } = data;
  if (string !== undefined) {
    // Models try to parse every string as JSON. Quoting a short string is cheaper than a failed parse.
    if (string.length < MAX_QUOTED && !MAY_BE_JSON.test(string)) {
      data.json = JSON.stringify(string);
      data.string = undefined;
    }
  } else if (data.bytes !== undefined) data.bytes = Buffer.from(data.bytes, 'base64');
  else if (data.stream !== undefined) data.stream = Buffer.from(data.stream, 'base64');
}

/** Decodes the body of an HTTP request. Models expect every map and a body. */
function decodeRequestBody(http) {
  http.headers ??= {};
  http.query ??= {};
  http.params ??= {};
  http.body ??= {};
  if (http.body.bytes !== undefined) http.body.bytes = Buffer.from(http.body.bytes, 'base64');
}

function encodeOutput({ name, data }) {
  return { name, data: encodeData(data) };
}

function encodeData(data) {
  if (data == null) return undefined;
  if (data.http !== undefined) return { http: encodeResponse(data.http) };
  if (data.bytes !== undefined) {
    const { buffer, byteOffset, byteLength } = data.bytes;
    return { bytes: Buffer.from(buffer, byteOffset, byteLength).toString('base64') };
  }
  // Models treat 1e300 as an integer, and JSON has no NaN.
  if (data.int !== undefined && !Number.isSafeInteger(data.int)) return { double: data.int };
  if (data.double !== undefined && !Number.isFinite(data.double)) return { string: String(data.double) };
  return data;
}

const SAME_SITE = { none: 0, lax: 1, strict: 2, explicitNone: 3 };

function encodeResponse({ statusCode, headers, cookies, body }) {
  return {
    statusCode: String(statusCode ?? ''),
    headers,
    cookies: cookies?.map((cookie) => ({ ...cookie, sameSite: SAME_SITE[cookie.sameSite] ?? 0 })),
    body: encodeData(body),
  };
}

module.exports = { Invocation };
