// A tool with typed and array arguments, one with rich content, one that asks the user, and a prompt.

const { app, arg, promptArg, McpImageContent, McpTextContent, McpToolResponse } = require('@azure/functions');

app.mcpTool('countWords', {
    toolName: 'count_words',
    description: 'Counts how often each of some words is in a text.',
    toolProperties: {
        text: arg.string().describe('The text to look in.'),
        words: arg.string().describe('The words to look for.').asArray(),
        ignore_case: arg.boolean().describe('Whether case is ignored.').optional(),
    },
    handler: (call, context) => {
        const { text, words, ignore_case: ignoreCase = false } = call.arguments;
        const letters = (word) => (ignoreCase ? word.toLowerCase() : word);
        const found = letters(text).split(/\s+/);
        const counts = {};
        words.forEach((word, index) => {
            counts[word] = found.filter((one) => one === letters(word)).length;
            context.info(`mcp-progress ${index + 1}/${words.length} ${word}`);
        });
        return counts;
    },
});

app.mcpTool('badge', {
    toolName: 'badge',
    description: 'Draws a badge with a label and a value.',
    toolProperties: {
        label: arg.string().describe('The label.'),
        value: arg.string().describe('The value.'),
    },
    handler: (call) => {
        const { label, value } = call.arguments;
        const escape = (text) => text.replace(/[<&]/g, (sign) => (sign === '<' ? '&lt;' : '&amp;'));
        const svg =
            '<svg xmlns="http://www.w3.org/2000/svg" width="160" height="20">' +
            `<text x="8" y="14" font-size="11">${escape(label)}: ${escape(value)}</text></svg>`;
        const picture = new McpImageContent({ data: Buffer.from(svg).toString('base64'), mimeType: 'image/svg+xml' });
        return new McpToolResponse({ content: [new McpTextContent(`${label}: ${value}`), picture] });
    },
});

app.mcpTool('signSnippet', {
    toolName: 'sign_snippet',
    description: "Adds the user's name to a text; asks the user for it.",
    toolProperties: { snippet: arg.string().describe('The text to sign.') },
    handler: (call) => {
        if (!call.inputResponses) {
            const author = {
                method: 'elicitation/create',
                params: {
                    message: 'Who signs this snippet?',
                    requestedSchema: {
                        type: 'object',
                        properties: { name: { type: 'string', description: 'Your name' } },
                        required: ['name'],
                    },
                },
            };
            return JSON.stringify({ type: 'input_required', content: { inputRequests: { author } } });
        }
        const answer = call.inputResponses.author;
        return answer.action === 'accept' ? `${call.arguments.snippet}\n-- ${answer.content.name}` : 'It was not signed.';
    },
});

app.mcpPrompt('codeReview', {
    promptName: 'code_review',
    description: 'Asks for a review of some code.',
    promptArguments: {
        code: promptArg.describe('The code to review.').isRequired(),
        language: promptArg.describe('Its language.'),
    },
    handler: (call) => `Please review this ${call.arguments?.language ?? ''} code:\n\n${call.arguments.code}`,
});
