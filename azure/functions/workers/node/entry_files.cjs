'use strict';

// Finds the entry files of an app: `main` of its package.json, which may be a glob with `*`, `**`, `?` and `{a,b}`.

const fs = require('node:fs');
const path = require('node:path');

const SCRIPT = /\.[cm]?[jt]s$/;
const DECLARATION = /\.d\.[cm]?ts$/;

/** Reads the app's package.json. Returns an empty object if the file does not exist. */
function readPackage(directory) {
  const file = path.join(directory, 'package.json');
  if (!fs.existsSync(file)) return {};
  try {
    return JSON.parse(fs.readFileSync(file, 'utf8').replace(/^\uFEFF/, ''));
  } catch (error) {
    throw new Error(`package.json cannot be read: ${error.message}`);
  }
}

/** Returns absolute paths in load order. Throws if no file matches `main` and there are no function.json folders. */
function entryFiles(directory, main) {
  const files = findFiles(directory, main ?? 'index.js');
  // npm init writes a `main`, but an app with function.json folders may not have that file.
  if (files.length > 0 || main === undefined || hasFunctionFolders(directory)) return files;
  const isTypeScript = fs.existsSync(path.join(directory, 'tsconfig.json'));
  throw new Error(
    `No file matches "main": "${main}" of package.json.` +
      (isTypeScript ? ' The app is written in TypeScript and may not be built: run "npm run build".' : ''),
  );
}

function hasFunctionFolders(directory) {
  return fs.readdirSync(directory).some((name) => fs.existsSync(path.join(directory, name, 'function.json')));
}

/** Keeps the order of alternatives, so that `{index.js,functions/*.js}` loads the index first. */
function findFiles(directory, glob) {
  const found = new Set();
  for (const pattern of expandBraces(glob.replaceAll('\\', '/'))) {
    for (const file of match(
      directory,
      pattern.split('/').filter((segment) => segment !== '' && segment !== '.'),
    ))
      found.add(file);
  }
  return [...found];
}

function expandBraces(glob) {
  const open = glob.indexOf('{');
  const cuts = [open];
  let depth = 0;
  for (let i = open; open >= 0 && i < glob.length; i++) {
    if (glob[i] === '{') depth++;
    else if (glob[i] === '}') depth--;
    if (glob[i] === ',' && depth === 1) cuts.push(i);
    if (depth > 0) continue;
    cuts.push(i);
    const rest = expandBraces(glob.slice(i + 1));
    return cuts
      .slice(1)
      .flatMap((end, n) =>
        expandBraces(glob.slice(cuts[n] + 1, end)).flatMap((choice) =>
          rest.map((tail) => glob.slice(0, open) + choice + tail),
        ),
      );
  }
  return [glob];
}

function match(directory, [segment, ...rest]) {
  if (segment === '**') {
    const below = list(directory).filter(
      (entry) => entry.isDirectory() && entry.name !== 'node_modules' && !entry.name.startsWith('.'),
    );
    return [
      ...match(directory, rest),
      ...below.flatMap((entry) => match(path.join(directory, entry.name), ['**', ...rest])),
    ];
  }
  const isLast = rest.length === 0;
  if (segment !== undefined && !/[*?]/.test(segment)) {
    const exact = path.join(directory, segment);
    if (!isLast) return match(exact, rest);
    // As for any package, the extension and the name of a folder's index file are optional.
    const candidate = ['', '.js', '.cjs', '.mjs', '/index.js'].map((ending) => exact + ending).find(isFile);
    return candidate === undefined ? [] : [candidate];
  }
  const name = new RegExp(
    `^${(segment ?? '*')
      .replace(/[.+^${}()|[\]\\]/g, '\\$&')
      .replaceAll('*', '.*')
      .replaceAll('?', '.')}$`,
  );
  const entries = list(directory).filter((entry) => name.test(entry.name) && !entry.name.startsWith('.'));
  const paths = entries.map((entry) => path.join(directory, entry.name));
  if (isLast) return paths.filter((file) => SCRIPT.test(file) && !DECLARATION.test(file) && isFile(file));
  return paths.filter((folder) => !isFile(folder)).flatMap((folder) => match(folder, rest));
}

function list(directory) {
  try {
    return fs.readdirSync(directory, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1));
  } catch {
    return [];
  }
}

function isFile(file) {
  return fs.statSync(file, { throwIfNoEntry: false })?.isFile() ?? false;
}

module.exports = { readPackage, entryFiles };
