// Functions with timer triggers, and no others. `../../timers-python` and `../../timers-handler` have the same functions.

const fs = require('node:fs');
const { setTimeout: sleep } = require('node:timers/promises');
const { app, output } = require('@azure/functions');

const EVERY_SECOND = '* * * * * *';
const NEW_YEAR = '0 0 0 1 1 *';

/** Adds a line to the file of a function. Tests read these files. */
function note(name, timer, more = {}) {
    const status = timer?.scheduleStatus;
    const given = timer && {
        pastDue: timer.isPastDue,
        // The library makes the first letter of a name lower case.
        schedule: { AdjustForDST: timer.schedule.adjustForDST },
        status: status && { Last: status.last, Next: status.next, LastUpdated: status.lastUpdated },
    };
    fs.appendFileSync(`${name}.jsonl`, `${JSON.stringify({ process: process.pid, ...given, ...more })}\n`);
}

app.timer('Tick', { schedule: EVERY_SECOND, handler: (timer) => note('Tick', timer) });

const file = output.storageBlob({ path: 'timers/{sys.methodname}.txt', connection: 'AzureWebJobsStorage' });
app.timer('Startup', {
    schedule: NEW_YEAR,
    runOnStartup: true,
    extraOutputs: [file],
    handler: (timer, context) => {
        context.extraOutputs.set(file, 'started');
        note('Startup', timer);
    },
});

app.timer('Configured', { schedule: '%SCHEDULE%', handler: (timer) => note('Configured', timer) });

app.timer('Slow', {
    schedule: '00:00:01',
    handler: async () => {
        note('Slow', undefined, { step: 'begin' });
        await sleep(1500);
        note('Slow', undefined, { step: 'end' });
    },
});

app.timer('Failing', {
    schedule: EVERY_SECOND,
    handler: async (timer) => {
        note('Failing', timer);
        throw new Error('it fails each time');
    },
});
