// Starts `bindpost search` in a folder of its own. It says on one line of JSON where it listens.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

/** What the server says of itself, and `stop`. Its log is part of the tour's. */
export async function start(program, folder, options = []) {
  const child = spawn(program, ['search', '--port', '0', '--json', ...options], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'inherit'],
    env: environment(),
  });
  // The tour may give up at any point, and no server may stay behind.
  const stop = () => child.kill();
  process.once('exit', stop);
  const lines = createInterface({ input: child.stdout });
  const said = await new Promise((resolve, reject) => {
    lines.once('line', resolve);
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`the server ended with ${code} before it said where it listens`)));
  });
  return { ...JSON.parse(said), folder, stop };
}

export function environment() {
  return { ...process.env, RUST_LOG: 'info', NO_COLOR: '1' };
}
