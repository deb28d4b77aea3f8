const { app, arg } = require('@azure/functions');

app.mcpTool('hello', {
  toolName: 'hello',
  description: 'Greets somebody.',
  toolProperties: { who: arg.string().describe('Whom to greet.') },
  handler: (call) => `Hello, ${call.arguments.who}!`,
});
