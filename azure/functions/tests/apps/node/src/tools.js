// The tools that tests call, written with the Node library. `../../python` has the same tools.

const fs = require('node:fs');
const { setTimeout: sleep } = require('node:timers/promises');
const {
    app,
    arg,
    input,
    output,
    McpContent,
    McpImageContent,
    McpResourceLinkContent,
    McpTextContent,
    McpToolResponse,
    trigger,
} = require('@azure/functions');

const PIXEL = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1');
const connection = 'AzureWebJobsStorage';

function tool(name, toolProperties, handler, more = {}) {
    for (const [property, builder] of Object.entries(toolProperties)) builder.describe(`The ${property}.`);
    app.mcpTool(name, { toolName: name, description: `${name} of the tests.`, toolProperties, handler, ...more });
}

// Arguments of every kind.

tool('EchoTool', { message: arg.string() }, (call) => call.arguments.message);

tool(
    'EchoWithDefault',
    { message: arg.string().optional() },
    (call) => call.arguments?.message ?? '(nothing)',
);

tool(
    'TypedParametersTool',
    { name: arg.string(), job: arg.string(), age: arg.integer(), isActive: arg.boolean() },
    ({ arguments: { name, job, age, isActive } }) => `${name} ${job} ${age + 1} ${isActive ? 'active' : 'not active'}`,
);

tool(
    'CollectionParametersTool',
    { tags: arg.string().asArray(), scores: arg.integer().asArray() },
    ({ arguments: { tags, scores } }) => `${tags.join('+')} ${scores.reduce((sum, score) => sum + score)}`,
);

// The library does not support custom schemas, so this uses the generic trigger.
const place = {
    type: 'object',
    description: 'The place.',
    properties: { city: { type: 'string' } },
    required: ['city'],
};
app.generic('SchemaTool', {
    trigger: trigger.generic({
        type: 'mcpToolTrigger',
        toolName: 'SchemaTool',
        description: 'SchemaTool of the tests.',
        useWorkerInputSchema: true,
        inputSchema: JSON.stringify({ type: 'object', properties: { place }, required: ['place'] }),
        outputSchema: JSON.stringify({ type: 'object', properties: { found: { type: 'boolean' } } }),
    }),
    handler: (call) => {
        const content = [new McpTextContent(call.arguments.place.city)];
        return new McpToolResponse({ content, structuredContent: { found: true } });
    },
});

// Results of every kind.

class Weather {
    constructor(city) {
        this.city = city;
        this.condition = 'Sunny';
    }
}
McpContent(Weather);

tool('PocoOutputTool', { city: arg.string() }, (call) => new Weather(call.arguments.city));
tool('TextContentTool', { words: arg.string() }, (call) => new McpTextContent(call.arguments.words));
tool('ImageContentTool', { data: arg.string(), mimeType: arg.string() }, (call) => new McpImageContent(call.arguments));
tool('ResourceLinkTool', {}, () => new McpResourceLinkContent({ uri: 'file://readme.md', name: 'readme' }));
tool('MultiContentTool', {}, () => [
    new McpTextContent('three blocks'),
    new McpResourceLinkContent({ uri: 'file://logo.png', name: 'logo' }),
    new McpImageContent({ data: PIXEL, mimeType: 'image/png' }),
]);
tool(
    'StructuredContentTool',
    { fails: arg.boolean().optional() },
    (call) =>
        new McpToolResponse({
            content: [new McpTextContent('as structured')],
            structuredContent: { answer: 42 },
            isError: call.arguments?.fails ?? false,
        }),
);
tool('VoidTool', {}, () => {});
tool('BytesTool', {}, () => Buffer.from([0xff, 0xfe, 0x00]));
tool('DictTool', {}, () => ({ a: [1, null] }));
tool('NumberTool', {}, () => 42);
tool('MetadataTool', {}, () => 'described', { metadata: JSON.stringify({ category: 'testing', level: 3 }) });
const ui = { resourceUri: 'ui://HelloApp/view', visibility: ['model', 'app'] };
tool('HelloApp', {}, () => 'Hello!', { metadata: JSON.stringify({ ui }) });
tool('ContextTool', {}, (call) => call);

// Logs, progress and cancellation.

tool('FailingTool', {}, () => {
    throw new TypeError('the secret is 42');
});

tool('LogTool', {}, (_call, context) => {
    console.log('a print');
    context.debug('a detail');
    context.info('a fact');
    context.warn('a warning');
    context.error('an error');
    return 'logged';
});

tool('ProgressTool', { steps: arg.integer() }, ({ arguments: { steps } }, context) => {
    for (let step = 1; step <= steps; step++) context.info(`mcp-progress ${step}/${steps} step ${step}`);
    return 'done';
});

const late = output.storageBlob({ connection, path: 'slow/{mcptoolargs.name}.txt' });
// Reports its process id, and waits until a file is created.
tool(
    'SlowTool',
    { name: arg.string() },
    async ({ arguments: { name } }, context) => {
        context.extraOutputs.set(late, 'written');
        context.info(`mcp-progress 1 ${process.pid}`);
        while (!fs.existsSync(`go-${name}`)) await sleep(5);
        fs.writeFileSync(`ended-${name}`, '');
        return 'waited';
    },
    { extraOutputs: [late] },
);

tool('ProcessTool', {}, () => process.pid);

// Blobs.

const saved = output.storageBlob({ connection, path: 'kept/{mcptoolargs.name}.txt' });
tool(
    'SaveTool',
    { name: arg.string(), content: arg.string().optional() },
    ({ arguments: { content = null } }, context) => {
        context.extraOutputs.set(saved, content);
        return content === null ? 'nothing' : 'saved';
    },
    { extraOutputs: [saved] },
);

const kept = input.storageBlob({ connection, path: 'kept/{mcptoolargs.name}.txt' });
tool('GetTool', { name: arg.string() }, (_call, context) => context.extraInputs.get(kept) ?? '(none)', {
    extraInputs: [kept],
});

// Requests for input.

function question(key, method, params, state) {
    return JSON.stringify({ type: 'input_required', content: { inputRequests: { [key]: { method, params } }, state } });
}

const form = (name) => ({ type: 'object', properties: { [name]: { type: 'string' } }, required: [name] });

tool('AskUserTool', {}, ({ inputResponses: answers, state }) => {
    if (!answers) {
        return question('name', 'elicitation/create', { message: 'Who are you?', requestedSchema: form('name') });
    }
    if (!state) {
        if (answers.name.action !== 'accept') return 'declined';
        const params = { message: 'Which color?', requestedSchema: form('color') };
        return question('color', 'elicitation/create', params, { name: answers.name.content.name });
    }
    return `${state.name} likes ${answers.color.content.color}`;
});

tool('AskForeverTool', {}, () =>
    question('name', 'elicitation/create', { message: 'And now?', requestedSchema: form('name') }),
);
tool('AskNonsenseTool', {}, () => question('name', 'rm -rf', {}));

tool('AskModelTool', {}, ({ inputResponses: answers }) => {
    if (!answers) {
        const messages = [{ role: 'user', content: { type: 'text', text: 'Any opinion?' } }];
        return question('opinion', 'sampling/createMessage', { messages, maxTokens: 10 });
    }
    return `${answers.opinion.model} says ${answers.opinion.content.text}`;
});

tool('AskRootsTool', {}, ({ inputResponses: answers }) => {
    if (!answers) return question('folders', 'roots/list', {});
    return answers.folders.roots.map((root) => root.uri).join(' ');
});
