const { app, promptArg } = require('@azure/functions');

function prompt(name, promptArguments, handler, more = {}) {
    app.mcpPrompt(name, { promptName: name, promptArguments, handler, ...more });
}

prompt(
    'code_review',
    { code: promptArg.describe('The code.').isRequired(), language: promptArg.describe('Its language.') },
    ({ arguments: { code, language = 'unknown' } }) => `Review this ${language} code: ${code}`,
    { title: 'Code review', description: 'Asks for a review.' },
);
prompt(
    'summarize',
    { text: promptArg.describe('').isRequired(), style: promptArg.describe('').isRequired() },
    (call) => `Summarize: ${call.arguments.text}`,
);
prompt('no_args_prompt', {}, () => 'Say something.');
prompt(
    'all_optional_args_prompt',
    { topic: promptArg.describe(''), audience: promptArg.describe('') },
    (call) => `Write about ${call.arguments.topic ?? 'anything'}.`,
);
prompt('multi_turn_prompt', {}, () => {
    const turns = [
        ['user', 'Hello'],
        ['assistant', 'Hi, how can I help?'],
        ['user', 'Tell me a story'],
    ];
    const messages = turns.map(([role, text]) => ({ role, content: { type: 'text', text } }));
    return JSON.stringify({ description: 'Three turns.', messages });
});
prompt('metadata_prompt', {}, () => 'described', { metadata: JSON.stringify({ version: '1.0' }) });
prompt('failing_prompt', {}, () => {
    throw new TypeError('the secret is 42');
});
prompt('asking_prompt', {}, ({ inputResponses: answers }) => {
    if (answers) return `signed by ${answers.name.content.name}`;
    const requestedSchema = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };
    const name = { method: 'elicitation/create', params: { message: 'Who are you?', requestedSchema } };
    return JSON.stringify({ type: 'input_required', content: { inputRequests: { name } } });
});
