// One line per check on stdout: `ok`, `skip` or `FAIL`. `cargo xtask interop` reads these lines.

const TOTAL_MS = 60_000;
const CHECK_MS = 20_000;

/** Runs `body`, which runs the checks, and exits with the result. */
export async function main(body) {
  // Open handles of a client must not keep the process running, so it exits here.
  setTimeout(() => finish('total', `not done after ${TOTAL_MS} ms`), TOTAL_MS);
  try {
    await body();
  } catch (error) {
    finish('run', reason(error));
  }
  finish();
}

/** Returns the result of `body`. A check that throws or hangs fails and returns nothing. Later checks still run. */
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
