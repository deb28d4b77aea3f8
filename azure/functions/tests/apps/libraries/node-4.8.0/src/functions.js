// @azure/functions 4.8 supports tools. Resources and prompts need the generic trigger.

const { app, trigger } = require('@azure/functions');

app.mcpTool('greet', {
    toolName: 'greet',
    description: 'Greets.',
    toolProperties: [
        { propertyName: 'name', propertyType: 'string', description: 'Whom.', isRequired: true },
        { propertyName: 'times', propertyType: 'integer', description: 'How often.', isRequired: false },
    ],
    handler: (_call, context) => {
        const { name, times = 1 } = context.triggerMetadata.mcptoolargs;
        return Array(Number(times)).fill(`Hello ${name}!`).join(' ');
    },
});

app.generic('about', {
    trigger: trigger.generic({
        type: 'mcpResourceTrigger',
        uri: 'info://about',
        resourceName: 'about',
        mimeType: 'text/plain',
    }),
    handler: () => 'About this app.',
});

app.generic('item', {
    trigger: trigger.generic({ type: 'mcpResourceTrigger', uri: 'item://{id}', resourceName: 'item' }),
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
