// Reads what a Swagger document requires of a server: operations with their inputs, and
// the subtypes of discriminators.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const METHODS = ['get', 'put', 'post', 'delete', 'patch', 'head', 'options'];

/** The operator or the server sets these, not the model. */
const NOT_ASKED = ['api-version', 'prefer', 'x-ms-client-request-id', 'client-request-id'];

/** Reads documents separately, so that names in one do not hide those of another. */
export function demands(folder, names) {
  const all = { operations: [], subtypes: [] };
  for (const name of names) {
    const swagger = JSON.parse(readFileSync(join(folder, `${name}.json`), 'utf8'));
    all.operations.push(...operations(swagger));
    all.subtypes.push(...subtypes(swagger.definitions));
  }
  return all;
}

/** Resolves a reference inside the document. References to other files are not resolved, and no body has one. */
function follow(node, swagger) {
  const [, kind, name] = node.$ref?.match(/^#\/(\w+)\/(.+)$/) ?? [];
  return kind ? swagger[kind][name] : node;
}

function operations(swagger) {
  const found = [];
  for (const [path, item] of Object.entries(swagger.paths ?? {})) {
    for (const method of METHODS.filter((method) => item[method])) {
      const listed = [...(item.parameters ?? []), ...(item[method].parameters ?? [])];
      const parameters = listed.map((parameter) => follow(parameter, swagger));
      const body = parameters.find((parameter) => parameter.in === 'body');
      found.push({
        id: item[method].operationId,
        path: `${method.toUpperCase()} ${path}`,
        required: parameters
          .filter((it) => it.in !== 'body' && it.required && !NOT_ASKED.includes(it.name.toLowerCase()))
          .map((it) => it.name),
        // Members that only the service writes are not arguments.
        members: Object.entries(body ? members(body.schema, swagger) : {})
          .filter(([, schema]) => !schema.readOnly)
          .map(([name]) => name),
        answers: Object.entries(item[method].responses).some(([status, it]) => status < '300' && it.schema),
      });
    }
  }
  return found;
}

/** Returns the members of an object, including inherited ones. */
function members(schema, swagger) {
  const followed = follow(schema, swagger);
  const inherited = (followed.allOf ?? []).map((part) => members(part, swagger));
  return Object.assign({}, ...inherited, followed.properties);
}

function subtypes(definitions) {
  const parents = (name) =>
    (definitions[name].allOf ?? [])
      .map((it) => it.$ref?.match(/^#\/definitions\/(.+)$/)?.[1])
      .filter(Boolean);
  const discriminator = (name) =>
    definitions[name].discriminator ?? parents(name).map(discriminator).find(Boolean);
  return Object.entries(definitions)
    .filter(([, definition]) => 'x-ms-discriminator-value' in definition)
    .map(([name, definition]) => ({
      name,
      property: discriminator(name),
      value: definition['x-ms-discriminator-value'],
      own: Object.keys(definition.properties ?? {}).filter((it) => !definition.properties[it].readOnly),
    }));
}
