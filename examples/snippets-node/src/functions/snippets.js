// Snippets of text, stored as blobs. Run it with `cargo run -- run examples/snippets-node`.

const { app, arg, input, output } = require('@azure/functions');

const path = 'snippets/{mcptoolargs.snippetname}.json';
const connection = 'AzureWebJobsStorage';
// The library parses texts that are JSON. Bytes are not changed.
const dataType = 'binary';
const saved = output.storageBlob({ connection, path });
const kept = input.storageBlob({ connection, path, dataType });
const named = input.storageBlob({ connection, path: 'snippets/{name}.json', dataType });

app.mcpTool('saveSnippet', {
    toolName: 'save_snippet',
    description: 'Saves a snippet of text under a name.',
    toolProperties: {
        snippetname: arg.string().describe('The name of the snippet.'),
        snippet: arg.string().describe('The text to store.'),
    },
    extraOutputs: [saved],
    handler: (_call, context) => {
        const { snippetname, snippet } = context.triggerMetadata.mcptoolargs;
        context.extraOutputs.set(saved, snippet);
        context.info(`saved snippet ${snippetname}`);
        return `Saved ${snippetname}.`;
    },
});

app.mcpTool('getSnippet', {
    toolName: 'get_snippet',
    description: 'Reads a snippet by its name.',
    toolProperties: { snippetname: arg.string().describe('The name of the snippet.') },
    extraInputs: [kept],
    handler: (_call, context) => {
        const snippet = context.extraInputs.get(kept)?.toString();
        return snippet ?? `There is no snippet ${context.triggerMetadata.mcptoolargs.snippetname}.`;
    },
});

app.mcpResource('about', {
    uri: 'info://snippets',
    resourceName: 'about',
    title: 'About this server',
    description: 'What this server is for.',
    mimeType: 'text/markdown',
    handler: () => '# Snippets\n\nText that is kept by name.\n',
});

app.mcpResource('snippet', {
    uri: 'snippet://{name}',
    resourceName: 'snippet',
    description: 'A snippet by its name.',
    mimeType: 'text/plain',
    extraInputs: [named],
    handler: (_call, context) => context.extraInputs.get(named)?.toString() ?? '',
});
