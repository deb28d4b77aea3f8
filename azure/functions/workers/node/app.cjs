'use strict';

// The app. Its files are loaded once. While they load, they register functions and hooks through the module
// `@azure/functions-core`, which exists only inside a worker.

const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const Module = require('node:module');
const path = require('node:path');
const { pathToFileURL } = require('node:url');
const { readPackage, entryFiles } = require('./entry_files.cjs');
const { messageOf, stackOf, placeInApp } = require('./failure.cjs');

const WORKER_VERSION = '0.1.0';
const CORE_MODULE = '@azure/functions-core';
const LIBRARY = '@azure/functions';
const LOG_LEVELS = { trace: 0, debug: 1, information: 2, warning: 3, error: 4, critical: 5, none: 6 };
const LOG_CATEGORIES = { user: 0, system: 1, customMetric: 2 };
const DIRECTIONS = { in: 0, out: 1, inout: 2 };
const DATA_TYPES = { undefined: 0, string: 1, binary: 2, stream: 3 };

class App {
  directory;
  /** Registered functions by id: `{ metadata, callback, file }`. */
  functions = new Map();
  hooks = { appStart: [], appTerminate: [], preInvocation: [], postInvocation: [], log: [] };
  model = null;
  /** The address of the library's server for HTTP functions that stream, if the app enables it. */
  httpUri = undefined;
  #hookData = {};
  #package = {};
  #send;
  #loading = null;
  #isStarting = true;
  #strayRejection = null;
  #isInLogHook = false;

  constructor(directory, hostVersion, send) {
    this.directory = directory;
    this.#send = send;
    const core = this.#coreApi(hostVersion);
    const require = Module.prototype.require;
    Module.prototype.require = function (id) {
      return id === CORE_MODULE ? core : require.apply(this, arguments);
    };
  }

  /** Returns name and version of the library that the app has installed, or null. */
  findLibrary() {
    try {
      const file = Module.createRequire(path.join(this.directory, 'package.json')).resolve(`${LIBRARY}/package.json`);
      const { name, version } = JSON.parse(fs.readFileSync(file, 'utf8'));
      return { name, version };
    } catch {
      return null;
    }
  }

  /** Loads the entry files and runs the appStart hooks. The message of an error names file and line. */
  async start() {
    try {
      this.#package = readPackage(this.directory);
      for (const file of entryFiles(this.directory, this.#package.main)) {
        this.#loading = file;
        await this.loadModule(file);
        this.#loading = null;
      }
      // Node reports an unhandled rejection only after a turn of the event loop.
      await new Promise(setImmediate);
      if (this.functions.size === 0 && this.#strayRejection !== null) {
        throw this.#explain(this.#strayRejection.reason, null);
      }
      // This call makes the library close app.setup(), and start its server if HTTP functions stream.
      this.httpUri = (await this.model?.getCapabilities?.({}))?.HttpUri;
    } finally {
      this.#isStarting = false;
    }
    try {
      await this.runHooks('appStart', { hookData: this.#hookData });
    } catch (error) {
      throw new Error(`An appStart hook failed: ${messageOf(error)}`, { cause: error });
    }
  }

  terminate() {
    return this.runHooks('appTerminate', { hookData: this.#hookData });
  }

  /** Stores an unhandled rejection. In an entry file it is often the reason why no function was registered. */
  noteRejection(reason) {
    if (this.#isStarting) this.#strayRejection ??= { reason };
  }

  async runHooks(name, context) {
    for (const hook of this.hooks[name]) await hook(context);
  }

  /** Runs the log hooks, then sends a log line. A line that a log hook logs does not run the hooks again. */
  log(level, category, message, invocation) {
    let line = { level, message, category };
    if (this.hooks.log.length > 0 && !this.#isInLogHook) {
      line.invocationContext = invocation?.userContext;
      line.hookData = invocation ? invocation.hookData : this.#hookData;
      this.#isInLogHook = true;
      try {
        for (const hook of this.hooks.log) hook(line);
      } catch (error) {
        line = { level, message, category };
        this.log('error', 'system', `A log hook failed: ${messageOf(error)}`);
      } finally {
        this.#isInLogHook = false;
      }
    }
    if (line.level === 'none') return;
    this.#send({
      rpcLog: {
        invocationId: invocation?.invocationId,
        category: invocation ? `Function.${invocation.metadata.name}` : 'Worker.node',
        level: LOG_LEVELS[line.level] ?? LOG_LEVELS.information,
        message: String(line.message),
        logCategory: LOG_CATEGORIES[category] ?? LOG_CATEGORIES.user,
      },
    });
  }

  /** Returns the registered functions as metadata for the host. */
  describe() {
    return Array.from(this.functions, ([functionId, { metadata, file }]) => {
      const bindings = Object.entries(metadata.bindings);
      return {
        name: metadata.name,
        functionId,
        directory: path.dirname(file),
        scriptFile: path.basename(file),
        language: 'node',
        bindings: Object.fromEntries(bindings.map(([name, binding]) => [name, describeBinding(binding)])),
        rawBindings: bindings.map(([name, binding]) => JSON.stringify({ ...binding, name })),
        properties: { worker_indexed: 'True' },
      };
    });
  }

  /** Loads a script of the app and returns its exports. Supports CommonJS and ES modules. */
  async loadModule(file) {
    const require = Module.createRequire(path.join(this.directory, 'package.json'));
    try {
      if (!isEsModule(file)) return require(file);
      try {
        // Loaded with require, the library finds the core module even if a loader hook handles later imports.
        require(LIBRARY);
      } catch {
        // The app may not need the library, or may bundle it. Otherwise the import of the file fails.
      }
      return await import(pathToFileURL(file));
    } catch (error) {
      throw this.#explain(error, file);
    }
  }

  /** Returns an error whose message names the place in the app and, if known, the fix. */
  #explain(error, file) {
    const importer = / imported from (.+)$/.exec(error?.message)?.[1];
    const place =
      placeInApp(error?.stack, this.directory) ??
      (error instanceof SyntaxError && file ? placeInApp(syntaxReport(file), this.directory) : null) ??
      ((importer ?? file) ? path.relative(this.directory, importer ?? file) : null);
    const text = this.#missingPackage(error) ?? this.#missingMember(error) ?? messageOf(error);
    const explained = new Error(place ? `${place}: ${text}` : text);
    explained.stack = stackOf(error);
    return explained;
  }

  #missingPackage(error) {
    if (error?.code !== 'MODULE_NOT_FOUND' && error?.code !== 'ERR_MODULE_NOT_FOUND') return null;
    const [, id] = /^Cannot find (?:module|package) '([^']+)'/.exec(error.message) ?? [];
    if (id === undefined || id.startsWith('.') || path.isAbsolute(id)) return error.message.split('\n')[0];
    const name = id.split('/', id.startsWith('@') ? 2 : 1).join('/');
    const isListed = [this.#package.dependencies, this.#package.devDependencies].some((list) => list && name in list);
    return `The package ${name} is not installed: run "npm install${isListed ? '' : ` ${name}`}" in the app's folder.`;
  }

  #missingMember(error) {
    const [, member] = /\bapp\.(mcp\w+) is not a function/.exec(error?.message) ?? [];
    if (member === undefined) return null;
    const version = this.findLibrary()?.version ?? '';
    return `${LIBRARY} ${version} has no app.${member}: run "npm install ${LIBRARY}@latest" in the app's folder.`;
  }

  #coreApi(hostVersion) {
    return {
      version: WORKER_VERSION,
      hostVersion,
      Disposable,
      setProgrammingModel: (model) => {
        this.model = model;
      },
      getProgrammingModel: () => this.model,
      registerFunction: (metadata, callback) => this.#register(metadata, callback),
      registerHook: (name, callback) => this.#registerHook(name, callback),
      log: (level, category, message) => this.log(level, category, message),
    };
  }

  #register(metadata, callback) {
    const { name } = metadata;
    if (!this.#isStarting) throw systemError(Error, `The function "${name}" must be registered while the app loads.`);
    if (this.functions.has(name)) throw systemError(Error, `A function named "${name}" is registered already.`);
    if (typeof callback !== 'function') throw systemError(TypeError, `The function "${name}" has no handler.`);
    const file = this.#loading ?? path.join(this.directory, 'package.json');
    this.functions.set(name, { metadata: { ...metadata, functionId: name }, callback, file });
    return new Disposable(() => this.functions.delete(name));
  }

  #registerHook(name, callback) {
    const hooks = Object.hasOwn(this.hooks, name) ? this.hooks[name] : null;
    if (hooks === null) throw systemError(RangeError, `There is no hook named "${name}".`);
    hooks.push(callback);
    return new Disposable(() => {
      const at = hooks.indexOf(callback);
      if (at >= 0) hooks.splice(at, 1);
    });
  }
}

/** The result of a registration. Disposing of it removes the registration. */
class Disposable {
  #callback;

  constructor(callback) {
    this.#callback = callback;
  }

  static from(...disposables) {
    return new Disposable(() => disposables.forEach((each) => each?.dispose?.()));
  }

  dispose() {
    this.#callback?.();
    this.#callback = undefined;
  }
}

function describeBinding({ type, direction, dataType, properties }) {
  return {
    type,
    direction: DIRECTIONS[String(direction).toLowerCase()] || undefined,
    dataType: DATA_TYPES[String(dataType).toLowerCase()] || undefined,
    properties,
  };
}

/** Creates an error that the library recognizes as an error of the worker, not of the app. */
function systemError(Type, message) {
  return Object.assign(new Type(message), { isAzureFunctionsSystemError: true });
}

/** Returns Node's report about a script that it cannot parse. The error of an ES module has no line number. */
function syntaxReport(file) {
  return spawnSync(process.execPath, ['--check', file], { encoding: 'utf8', timeout: 5000 }).stderr;
}

function isEsModule(file) {
  if (/\.[cm][jt]s$/.test(file)) return /\.m[jt]s$/.test(file);
  for (let directory = path.dirname(file); ; directory = path.dirname(directory)) {
    if (fs.existsSync(path.join(directory, 'package.json'))) return readPackage(directory).type === 'module';
    if (directory === path.dirname(directory)) return false;
  }
}

module.exports = { App, WORKER_VERSION };
