const { app, input } = require('@azure/functions');

function resource(name, uri, handler, more = {}) {
    app.mcpResource(name, { uri, resourceName: name, handler, ...more });
}

resource('readme', 'file://readme.md', () => '# Read me', {
    title: 'Read me',
    description: 'Read this first.',
    mimeType: 'text/markdown',
    size: 9,
    metadata: JSON.stringify({ author: 'tests' }),
});
resource('logo', 'file://logo.png', () => Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), { mimeType: 'image/png' });
resource('minimal', 'file://minimal.txt', () => 'Minimal resource content');
resource(
    'notes',
    'file://notes.txt',
    () => {
        const item = { text: 'some notes', mimeType: 'text/x-notes', _meta: { pages: 2 } };
        return JSON.stringify({ content: JSON.stringify(item) });
    },
    { mimeType: 'text/plain' },
);
resource('broken', 'file://broken.txt', () => {
    throw new TypeError('the secret is 42');
});
resource('profile', 'user://profile/{name}', (call) => JSON.stringify({ uri: call.uri }), {
    mimeType: 'application/json',
});
// The trigger metadata has the variables of a template, each by its name and all in one object.
resource(
    'catalog',
    'store://catalog/{category}items{tag}',
    (_call, { triggerMetadata: { category, mcpresourceargs } }) =>
        JSON.stringify({ category, tag: mcpresourceargs.tag }),
    { mimeType: 'application/json' },
);

const kept = input.storageBlob({ connection: 'AzureWebJobsStorage', path: 'kept/{mcpresourceargs.Name}.{kind}' });
resource('kept', 'kept://{Name}/{kind}', (_call, context) => context.extraInputs.get(kept) ?? '(none)', {
    mimeType: 'text/plain',
    extraInputs: [kept],
});

resource(
    'HelloApp_view',
    'ui://HelloApp/view',
    () => {
        const item = { text: '<h1>Hello!</h1>', _meta: { ui: { prefersBorder: true } } };
        return JSON.stringify({ content: JSON.stringify(item) });
    },
    { mimeType: 'text/html;profile=mcp-app' },
);

resource('signed', 'file://signed.txt', ({ inputResponses: answers }) => {
    if (answers) return `signed by ${answers.name.content.name}`;
    const requestedSchema = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };
    const name = { method: 'elicitation/create', params: { message: 'Who are you?', requestedSchema } };
    return JSON.stringify({ type: 'input_required', content: { inputRequests: { name } } });
});
