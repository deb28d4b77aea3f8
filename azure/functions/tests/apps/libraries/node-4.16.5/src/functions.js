// @azure/functions 4.16 supports tools, resources and prompts.

const { app, arg, promptArg, trigger } = require('@azure/functions');

app.mcpTool('greet', {
    toolName: 'greet',
    description: 'Greets.',
    toolProperties: { name: arg.string().describe('Whom.'), times: arg.integer().describe('How often.').optional() },
    handler: ({ arguments: { name, times = 1 } }) => Array(times).fill(`Hello ${name}!`).join(' '),
});

app.mcpTool('every_type', {
    toolName: 'every_type',
    description: 'Takes everything.',
    toolProperties: {
        text: arg.string(),
        whole: arg.integer(),
        part: arg.double(),
        flag: arg.boolean(),
        several: arg.integer().asArray(),
        maybe: arg.string().optional(),
    },
    handler: ({ name, arguments: { text, whole, part, flag, several, maybe = '' } }) =>
        `${name} ${text} ${whole} ${part} ${flag} ${several} ${maybe}`,
});

// The library returns an envelope for this tool too, although its binding does not declare it.
app.generic('generic', {
    trigger: trigger.generic({ type: 'mcpToolTrigger', toolName: 'generic', description: 'Generic.' }),
    handler: () => 'generic',
});

app.mcpResource('about', {
    uri: 'info://about',
    resourceName: 'about',
    mimeType: 'text/plain',
    handler: () => 'About this app.',
});

app.mcpResource('item', {
    uri: 'item://{id}',
    resourceName: 'item',
    handler: (call) => `The item ${call.uri}.`,
});

app.mcpPrompt('review', {
    promptName: 'review',
    promptArguments: { code: promptArg.describe('What.').isRequired() },
    handler: (call) => `Review ${call.arguments.code}`,
});
