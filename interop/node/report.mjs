// One line per check on stdout: `ok`, `skip` or `FAIL`. `cargo xtask interop` reads these lines.

const TOTAL_MS = 60_000;
const CHECK_MS = 20_000;

/** Runs `body`, which makes the checks, and ends the process with the outcome. */
export async function main(body) {
  // Nothing a client leaves open may keep the run alive, so the process ends here and not by itself.
  setTimeout(() => finish('total', `not done after ${TOTAL_MS} ms`), TOTAL_MS);
  try {
    await body();
  } catch (error) {
    finish('run', reason(error));
  }
  finish();
}

/** Gives what `body` gives. A check that throws or hangs fails and gives nothing; the checks after it still run. */
export async function check(name, body) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer after ${CHECK_MS} ms`)), CHECK_MS);
  });
  try {
    const value = await Promise.race([body(), late]);
    console.log(`ok ${name}`);
    return value;
  } catch (error) {
    fail(name, reason(error));
  } finally {
    clearTimeout(timer);
  }
}

export function skip(name, why) {
  console.log(`skip ${name}: ${why}`);
}

function fail(name, why) {
  process.exitCode = 1;
  console.log(`FAIL ${name}: ${why}`);
}

function finish(name, why) {
  if (name) fail(name, why);
  process.exit();
}

function reason(error) {
  return String(error?.message ?? error).replace(/\s+/g, ' ');
}
