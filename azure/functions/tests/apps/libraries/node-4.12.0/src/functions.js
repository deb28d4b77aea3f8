// @azure/functions 4.12 supports tools, with builders for their arguments, and resources.

const { app, arg, trigger } = require('@azure/functions');

app.mcpTool('greet', {
    toolName: 'greet',
    description: 'Greets.',
    toolProperties: { name: arg.string().describe('Whom.'), times: arg.integer().describe('How often.').optional() },
    handler: ({ arguments: { name, times = 1 } }) => Array(times).fill(`Hello ${name}!`).join(' '),
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

app.generic('review', {
    trigger: trigger.generic({
        type: 'mcpPromptTrigger',
        promptName: 'review',
        promptArguments: JSON.stringify([{ name: 'code', description: 'What.', required: true }]),
    }),
    handler: (call) => `Review ${call.arguments.code}`,
});
