const { app, arg } = require('@azure/functions');

app.mcpTool('hello', {
  toolName: 'hello',
  description: 'Greets a person.',
  toolProperties: { who: arg.string().describe('Whom to greet.') },
  handler: (call) => `Hello, ${call.arguments.who}!`,
});
