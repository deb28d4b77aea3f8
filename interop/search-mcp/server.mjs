// Starts `bindpost search` in its own folder. The server prints its address on one line of JSON.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

/** Returns the JSON line of the server, and `stop`. Its log is part of the tour's. */
export async function start(program, folder, options = []) {
  const child = spawn(program, ['search', '--port', '0', '--json', ...options], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'inherit'],
    env: environment(),
  });
  // The tour may stop at any point, and must not leave a server running.
  const stop = () => child.kill();
  process.once('exit', stop);
  const lines = createInterface({ input: child.stdout });
  const said = await new Promise((resolve, reject) => {
    lines.once('line', resolve);
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`the server exited with ${code} before it printed its address`)));
  });
  return { ...JSON.parse(said), folder, stop };
}

export function environment() {
  return { ...process.env, RUST_LOG: 'info', NO_COLOR: '1' };
}
