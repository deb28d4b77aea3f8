'use strict';

// The Node language worker. It connects to the host, loads the app and runs its functions. Start reading at MESSAGES.
//
//   node worker.cjs --socket unix:/path|tcp:host:port --worker-id ID --request-id ID
//
// stdout is for the app. The worker writes its own errors to stderr.

const fs = require('node:fs');
const { App, WORKER_VERSION } = require('./app.cjs');
const { connect } = require('./channel.cjs');
const { SUCCESS, failed, messageOf, stackOf, placeInApp } = require('./failure.cjs');
const { loadFunctionJson } = require('./function_json.cjs');
const { Invocation } = require('./invocation.cjs');

const TERMINATE_HOOKS_MS = 3000;
const LAST_WORDS_MS = 1000;
const CAPABILITIES = {
  TypedDataCollection: 'true',
  WorkerStatus: 'true',
  HandlesWorkerTerminateMessage: 'true',
  HandlesInvocationCancelMessage: 'true',
  RawHttpBodyBytes: 'true',
  RpcHttpBodyOnly: 'true',
  RpcHttpTriggerMetadataRemoved: 'true',
};

const MESSAGES = {
  __proto__: null,
  invocationRequest: invoke,
  invocationCancel: cancel,
  workerInitRequest: initialize,
  functionsMetadataRequest: index,
  functionLoadRequest: load,
  workerStatusRequest: (_, requestId) => channel.send({ requestId, workerStatusResponse: {} }),
  workerTerminate: terminate,
};

const exit = process.exit.bind(process);
const options = parseOptions(process.argv.slice(2));
/** Loaded functions, by id: `{ metadata, callback, model }`. */
const loaded = new Map();
/** Running invocations, by id. */
const running = new Map();
let app = null;
/** Resolves when the app is loaded. Rejects with the reason if that fails. */
let started = null;
let isTerminating = false;

guardProcess();
const channel = openChannel();

function openChannel() {
  try {
    return connect(options.socket, {
      open: () => channel.send({ requestId: options['request-id'], startStream: { workerId: options['worker-id'] } }),
      message: dispatch,
      close(reason) {
        if (reason !== null && !isTerminating) complain(reason);
        exit(isTerminating ? 0 : 1);
      },
    });
  } catch (error) {
    complain(error.message);
    return exit(1);
  }
}

function dispatch(message) {
  for (const kind in message) {
    const handle = MESSAGES[kind];
    if (handle !== undefined) return handle(message[kind], message.requestId);
  }
}

/** Responds before it loads the app, so that the host can distinguish a slow app from a worker that does not start. */
function initialize(request, requestId) {
  let directory;
  try {
    // Node reports files by their real path, which error messages use too.
    directory = fs.realpathSync(
      request.functionAppDirectory || process.env.FUNCTIONS_APPLICATION_DIRECTORY || process.cwd(),
    );
  } catch (error) {
    return channel.send({ requestId, workerInitResponse: { result: failed(error) } });
  }
  app = new App(directory, request.hostVersion ?? '', (message) => channel.send(message));
  const library = app.findLibrary();
  channel.send({
    requestId,
    workerInitResponse: {
      capabilities: CAPABILITIES,
      workerMetadata: {
        runtimeName: 'node',
        runtimeVersion: process.versions.node,
        workerVersion: WORKER_VERSION,
        workerBitness: process.arch,
        customProperties: library ? { modelName: library.name, modelVersion: library.version } : {},
      },
      result: SUCCESS,
    },
  });
  channel.flush();
  started = app.start();
  // Requests that await this promise report a failure. Until then it must not count as unhandled.
  started.catch(() => {});
}

async function index(_, requestId) {
  let functionMetadataResponse;
  try {
    await started;
    functionMetadataResponse = {
      functionMetadataResults: app.describe(),
      useDefaultMetadataIndexing: app.functions.size === 0,
      result: SUCCESS,
    };
  } catch (error) {
    functionMetadataResponse = { result: failed(error) };
  }
  channel.send({ requestId, functionMetadataResponse });
}

async function load({ functionId, metadata = {} }, requestId) {
  let result = SUCCESS;
  try {
    await started;
    const registered = app.functions.get(functionId);
    if (registered !== undefined) {
      loaded.set(functionId, { metadata: registered.metadata, callback: registered.callback, model: app.model });
    } else if (metadata.properties?.worker_indexed) {
      throw new Error(`The app does not register a function named "${metadata.name ?? functionId}".`);
    } else {
      loaded.set(functionId, await loadFunctionJson(app, metadata));
    }
  } catch (error) {
    result = failed(error);
  }
  // Requests of HTTP functions that stream are forwarded to this address. The host needs it before the first call.
  channel.send({ requestId, functionLoadResponse: { functionId, result, httpUri: app.httpUri } });
}

async function invoke(request, requestId) {
  const { invocationId, functionId } = request;
  const target = loaded.get(functionId);
  if (target === undefined) {
    const result = failed(new Error(`The worker has not loaded a function with the id "${functionId}".`));
    return channel.send({ requestId, invocationResponse: { invocationId, result } });
  }
  const invocation = new Invocation(app, target.metadata, request);
  running.set(invocationId, invocation);
  const invocationResponse = await invocation.run(target.model, target.callback);
  running.delete(invocationId);
  try {
    channel.send({ requestId, invocationResponse });
  } catch (error) {
    // The response is too large for a message or even for a string.
    channel.send({ requestId, invocationResponse: { invocationId, result: failed(error) } });
  }
}

/** Marks an invocation as cancelled. The library cannot notify a handler, so the handler continues to run. */
function cancel({ invocationId }) {
  const invocation = running.get(invocationId);
  if (invocation !== undefined) invocation.isCancelled = true;
}

async function terminate() {
  isTerminating = true;
  setTimeout(exit, TERMINATE_HOOKS_MS, 0);
  try {
    await app?.terminate();
  } catch (error) {
    complain(`An appTerminate hook failed: ${messageOf(error)}`);
  }
  exitAfterFlush(0);
}

function guardProcess() {
  // Ctrl-C reaches every process of the terminal, but the host decides when a worker exits.
  process.on('SIGINT', () => {});
  process.on('SIGTERM', () => exit(143));
  process.on('unhandledRejection', (reason) => {
    app?.noteRejection(reason);
    logError('Unhandled promise rejection', reason);
  });
  process.on('uncaughtException', (error) => {
    logError('Uncaught exception, the worker exits', error);
    exitAfterFlush(1);
  });
  process.exit = (code = process.exitCode ?? 0) => {
    const place = placeInApp(new Error().stack, app?.directory ?? process.cwd());
    complain(`The app called process.exit(${code})${place ? ` at ${place}` : ''}, so its worker exits.`);
    channel.flush();
    exit(code);
  };
}

function logError(what, error) {
  const text = `${what}: ${stackOf(error) || messageOf(error)}`;
  if (app === null) return complain(text);
  app.log('error', 'system', text);
}

function exitAfterFlush(code) {
  setTimeout(exit, LAST_WORDS_MS, code);
  channel.flush(() => exit(code));
}

function complain(sentence) {
  try {
    fs.writeSync(2, `${sentence}\n`);
  } catch {
    // stderr is closed.
  }
}

function parseOptions(words) {
  const options = {};
  for (let i = 0; i + 1 < words.length; i += 2) options[words[i].replace(/^--/, '')] = words[i + 1];
  if (options.socket === undefined) {
    complain('usage: node worker.cjs --socket unix:/path|tcp:host:port --worker-id ID --request-id ID');
    exit(2);
  }
  return options;
}
