// Converts the documents for the peers: node prepare.mjs FOLDER OUT NAME…
//
// NAME.json becomes OUT/NAME.2.json, the same Swagger without the parts that peers cannot read, and
// OUT/NAME.3.json, which swagger2openapi converts from that. Nothing that is visible to clients is
// added or removed.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import converter from 'swagger2openapi';

const [folder, out, ...names] = process.argv.slice(2);
const read = (name) => JSON.parse(readFileSync(join(folder, `${name}.json`), 'utf8'));

/** Replaces a missing file: the schemas of error responses. */
const ERRORS = {
  ErrorResponse: { type: 'object', properties: { error: { $ref: '#/definitions/ErrorDetail' } } },
  ErrorDetail: { type: 'object', properties: { code: { type: 'string' }, message: { type: 'string' } } },
};

/** Makes references to other files local, and copies their targets. */
function localise(node, definitions) {
  if (Array.isArray(node)) {
    for (const item of node) localise(item, definitions);
  } else if (node && typeof node === 'object') {
    // The examples are in other files, which are missing too.
    delete node['x-ms-examples'];
    const [file, pointer] = typeof node.$ref === 'string' ? node.$ref.split('#') : [''];
    if (file) {
      const name = pointer.split('/').at(-1);
      node.$ref = `#/definitions/${name}`;
      if (name === 'ErrorResponse') {
        Object.assign(definitions, structuredClone(ERRORS));
      } else {
        definitions[name] ??= read(file.replace(/\.json$/, '')).definitions[name];
      }
    }
    for (const value of Object.values(node)) localise(value, definitions);
  }
}

mkdirSync(out, { recursive: true });
for (const name of names) {
  const swagger = read(name);
  localise(swagger.paths, swagger.definitions);
  localise(swagger.definitions, swagger.definitions);
  writeFileSync(join(out, `${name}.2.json`), JSON.stringify(swagger));
  const { openapi } = await converter.convertObj(swagger, { patch: true, warnOnly: true });
  writeFileSync(join(out, `${name}.3.json`), JSON.stringify(openapi));
}
