'use strict';

// Converts a thrown value for the host: a message for users, the stack for logs, and the place in the app.

const path = require('node:path');
const { fileURLToPath } = require('node:url');
const { inspect } = require('node:util');

const SUCCESS = { status: 1 };
const CANCELLED = { status: 2 };

/** Returns a failed `result` member. The message has no type name. A value that is not an Error is inspected. */
function failed(thrown) {
  return { status: 0, exception: { message: messageOf(thrown), stackTrace: stackOf(thrown) } };
}

function messageOf(thrown) {
  if (typeof thrown === 'string') return thrown;
  if (typeof thrown?.message === 'string') return thrown.message || thrown.name || 'Error';
  return `The function threw ${inspect(thrown)}.`;
}

/** Returns the stack with its causes, because a message such as `fetch failed` needs its cause. */
function stackOf(thrown) {
  let text = typeof thrown?.stack === 'string' ? thrown.stack : '';
  let cause = thrown?.cause;
  for (let depth = 0; depth < 5 && cause != null; depth++) {
    text += `\nCaused by: ${cause.stack ?? inspect(cause)}`;
    cause = cause.cause;
  }
  return text;
}

/** Returns the innermost place in the app's own files, such as `src/tools.js:12`, or null. */
function placeInApp(stack, directory) {
  const lines = typeof stack === 'string' ? stack.split('\n') : [];
  // A syntax error names its place in the first line and has no frame there.
  const places = [
    /^(.+):(\d+)$/.exec(lines[0]),
    ...lines.map((line) => /\((.+):(\d+):\d+\)$/.exec(line) ?? /^ +at (?:async )?(.+):(\d+):\d+$/.exec(line)),
  ];
  for (const [, source, line] of places.filter(Boolean)) {
    const absolute = source.startsWith('file:///') ? fileURLToPath(source) : source;
    // A message may look like a place (`connect ECONNREFUSED 127.0.0.1:80`), and Node's own files are `node:…`.
    if (!path.isAbsolute(absolute)) continue;
    const file = path.relative(directory, absolute);
    const isInApp = !file.startsWith('..') && !path.isAbsolute(file);
    if (isInApp && !file.split(path.sep).includes('node_modules')) return `${file}:${line}`;
  }
  return null;
}

module.exports = { SUCCESS, CANCELLED, failed, messageOf, stackOf, placeInApp };
