'use strict';

// Functions that a function.json describes: the programming model of @azure/functions 1 to 3, without HTTP.
// A function is called with a context and its inputs. It returns a value or a promise, or calls `context.done`.

const path = require('node:path');
const { format } = require('node:util');

const OUT = 1;
const INOUT = 2;
const LOG_METHODS = { error: 'error', warn: 'warning', info: 'information', verbose: 'trace' };

/** Loads the script that the metadata of a load request names. Returns `{ metadata, callback, model }`. */
async function loadFunctionJson(app, metadata) {
  const directory = path.resolve(app.directory, metadata.directory ?? '');
  const file = path.resolve(directory, metadata.scriptFile || 'index.js');
  const script = await app.loadModule(file);
  const callback = findFunction(script, metadata.entryPoint);
  if (callback === null) {
    const wanted = metadata.entryPoint ? `a function named "${metadata.entryPoint}"` : 'a function';
    throw new Error(`${path.relative(app.directory, file)} does not export ${wanted}.`);
  }
  return { metadata: { bindings: {}, ...metadata }, callback, model: new FunctionJsonModel(metadata, directory) };
}

function findFunction(script, entryPoint) {
  const exported = script?.default ?? script;
  if (entryPoint) return bound(script, entryPoint) ?? bound(exported, entryPoint);
  if (typeof exported === 'function') return exported;
  const single = Object.keys(exported ?? {}).filter((name) => typeof exported[name] === 'function');
  return (
    bound(exported, 'run') ?? bound(exported, 'index') ?? (single.length === 1 ? bound(exported, single[0]) : null)
  );
}

function bound(owner, name) {
  return typeof owner?.[name] === 'function' ? owner[name].bind(owner) : null;
}

class FunctionJsonModel {
  #inputs;
  #outputs;
  #directory;

  constructor(metadata, directory) {
    const bindings = orderedBindings(metadata);
    this.#inputs = bindings.filter(({ direction }) => direction !== OUT).map(({ name }) => name);
    this.#outputs = bindings
      .filter(({ direction }) => direction === OUT || direction === INOUT)
      .map(({ name }) => name);
    this.#directory = directory;
  }

  getInvocationModel(invocation) {
    return new FunctionJsonInvocation(invocation, this.#inputs, this.#outputs, this.#directory);
  }
}

/** Returns the bindings in the order of function.json, the order of arguments. Only raw bindings guarantee it. */
function orderedBindings({ rawBindings, bindings }) {
  if (!rawBindings?.length) return Object.entries(bindings ?? {}).map(([name, { direction }]) => ({ name, direction }));
  const directions = { in: 0, out: OUT, inout: INOUT };
  return rawBindings.map((raw) => {
    const { name, direction } = JSON.parse(raw);
    return { name, direction: directions[String(direction).toLowerCase()] };
  });
}

class FunctionJsonInvocation {
  #invocation;
  #inputs;
  #outputs;
  #directory;

  constructor(invocation, inputs, outputs, directory) {
    this.#invocation = invocation;
    this.#inputs = inputs;
    this.#outputs = outputs;
    this.#directory = directory;
  }

  getArguments() {
    const { invocationId, metadata, request } = this.#invocation;
    const { traceContext, retryContext } = request;
    const bindings = {};
    for (const { name, data } of request.inputData) bindings[name] = fromTypedData(data);
    const bindingData = { invocationId };
    for (const [key, data] of Object.entries(request.triggerMetadata ?? {}))
      bindingData[lowerFirst(key)] = lowerKeys(fromTypedData(data));
    const context = {
      invocationId,
      executionContext: { invocationId, functionName: metadata.name, functionDirectory: this.#directory, retryContext },
      bindings,
      bindingData,
      traceContext: {
        traceparent: traceContext?.traceParent,
        tracestate: traceContext?.traceState,
        attributes: traceContext?.attributes ?? {},
      },
      log: this.#logger(),
      done: () => {},
    };
    return { context, inputs: this.#inputs.map((name) => bindings[name]) };
  }

  invokeFunction(context, inputs, callback) {
    return new Promise((resolve, reject) => {
      context.done = (error, result) => (error == null ? resolve(result) : reject(error));
      const returned = callback(context, ...inputs);
      if (typeof returned?.then === 'function') returned.then(resolve, reject);
      // A function that returns undefined calls `context.done` later.
      else if (returned !== undefined) resolve(returned);
    });
  }

  getResponse(context, result) {
    const outputs = this.#outputs.filter((name) => name !== '$return');
    const values = { ...context.bindings };
    let returned = result;
    // An object with a member for an output contains the outputs, and the return value in `$return`.
    if (isPlainObject(result) && outputs.some((name) => name in result)) {
      Object.assign(values, result);
      returned = result.$return;
    }
    return {
      outputData: outputs
        .map((name) => ({ name, data: toTypedData(values[name]) }))
        .filter(({ data }) => data !== undefined),
      returnValue: toTypedData(returned),
    };
  }

  #logger() {
    const logAt =
      (level) =>
      (...args) =>
        this.#invocation.log(level, 'user', format(...args));
    const log = logAt('information');
    for (const method in LOG_METHODS) log[method] = logAt(LOG_METHODS[method]);
    return log;
  }
}

function fromTypedData(data) {
  if (data?.string !== undefined) {
    try {
      return JSON.parse(data.string);
    } catch {
      return data.string;
    }
  }
  if (data?.json !== undefined) return JSON.parse(data.json);
  return data?.bytes ?? data?.stream ?? data?.int ?? data?.double;
}

function toTypedData(value) {
  if (value == null) return undefined;
  if (typeof value === 'string') return { string: value };
  if (ArrayBuffer.isView(value)) return { bytes: value };
  if (value instanceof ArrayBuffer) return { bytes: new Uint8Array(value) };
  if (typeof value === 'number') return Number.isInteger(value) ? { int: value } : { double: value };
  return { json: JSON.stringify(value) };
}

function lowerFirst(key) {
  return key.charAt(0).toLowerCase() + key.slice(1);
}

/** Makes the first letter of metadata keys lower case at every depth, as the newer model does. */
function lowerKeys(value) {
  if (Array.isArray(value)) return value.map(lowerKeys);
  if (!isPlainObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [lowerFirst(key), lowerKeys(inner)]));
}

function isPlainObject(value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !ArrayBuffer.isView(value);
}

module.exports = { loadFunctionJson, lowerKeys };
