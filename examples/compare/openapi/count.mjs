// Counts the operations and subtypes in a tool list and in the definitions it refers to.

const plain = (name) => name.toLowerCase().replace(/[^a-z0-9]/g, '');

/** Resolves the references of a schema within its own document. */
function follow(schema, root) {
  let followed = schema;
  for (let steps = 0; typeof followed?.$ref === 'string' && steps < 32; steps += 1) {
    const keys = followed.$ref.replace(/^#\/?/, '').split('/').filter(Boolean);
    followed = keys.reduce((it, key) => it?.[key.replaceAll('~1', '/').replaceAll('~0', '~')], root);
  }
  return followed && typeof followed === 'object' ? followed : {};
}

/** Returns the properties of an object schema and of all its parts, optionally with its alternatives. */
function properties(schema, root, alternatives, depth = 0) {
  if (depth > 16) return {};
  const it = follow(schema, root);
  const parts = [it.allOf, ...(alternatives ? [it.anyOf, it.oneOf] : [])].flat().filter(Boolean);
  return Object.assign(
    {},
    ...parts.map((part) => properties(part, root, alternatives, depth + 1)),
    it.properties,
  );
}

/**
 * Returns whether a model can call an operation: every required parameter is an argument, and every member of the
 * body is described, in the argument for the body or beside the parameters. `lookUp` returns the definition that a
 * description refers to.
 */
export async function isUsable(operation, schema, lookUp) {
  const given = properties(schema, schema, true);
  // Some peers write the location of a parameter before or after its name.
  const names = Object.keys(given).flatMap((name) => {
    const [, bare] = name.match(/^(?:(?:path|query|header)_+)?(.*?)(?:__?(?:path|query|header))?$/);
    return [plain(name), plain(bare)];
  });
  if (!operation.required.every((name) => names.includes(plain(name)))) return false;
  const described = new Set(Object.keys(given));
  for (const [, body] of Object.entries(given).filter(([name]) => /body$/i.test(name))) {
    for (const name of Object.keys(properties(body, schema, true))) described.add(name);
    const [, pointed] = JSON.stringify(body).match(/see [\w+.-]+-schema:\/\/([\w.~-]+)/) ?? [];
    const definition = pointed && (await lookUp?.(pointed));
    for (const name of Object.keys(definition ? properties(definition, definition, true) : {}))
      described.add(name);
  }
  return operation.members.every((name) => described.has(name));
}

/** Yields every schema inside a schema, with the name of its definition, if it has one. */
function* schemas(node, name) {
  if (Array.isArray(node)) {
    for (const item of node) yield* schemas(item);
  } else if (node && typeof node === 'object') {
    yield [node, name];
    for (const [key, value] of Object.entries(node)) {
      const defines = (key === '$defs' || key === 'definitions') && value && typeof value === 'object';
      if (defines) for (const [defined, schema] of Object.entries(value)) yield* schemas(schema, defined);
      else yield* schemas(value);
    }
  }
}

/**
 * Returns the subtypes in schemas. Named: a definition or a title of that name, or the discriminator's value in the
 * discriminator's property. Described: named, and with the members that the subtype adds.
 */
export function subtypesIn(roots, subtypes) {
  const byName = new Map(subtypes.map((subtype) => [subtype.name, subtype]));
  const discriminators = [...new Set(subtypes.map(({ property }) => property))];
  const [named, described] = [new Set(), new Set()];
  for (const [root, rootName] of roots) {
    for (const [schema, name] of schemas(root, rootName)) {
      const has = properties(schema, root, false);
      const found = [byName.get(name), byName.get(schema.title)].filter(Boolean);
      for (const property of discriminators.filter((property) => has[property])) {
        const { const: value, enum: values = [] } = follow(has[property], root);
        const said = [value, ...values];
        found.push(...subtypes.filter((it) => it.property === property && said.includes(it.value)));
      }
      for (const subtype of found) {
        named.add(subtype.name);
        if (subtype.own.every((member) => has[member])) described.add(subtype.name);
      }
    }
  }
  return { named, described };
}

/** Returns the tool of an operation. Peers keep the operation's id, in their own spelling. */
export function toolOf(operation, tools) {
  return tools.find((tool) => plain(tool.name) === plain(operation.id));
}

export function hasHints(annotations) {
  return annotations?.readOnlyHint != null || annotations?.destructiveHint != null;
}
