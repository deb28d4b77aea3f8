#!/usr/bin/env node
// Starts the program of the package for this platform, and ends as it ends.
"use strict";

const { spawn } = require("node:child_process");
const os = require("node:os");

const platform = `${process.platform}-${process.arch}`;
let program;
try {
  program = require.resolve(`@bindpost/${platform}/bin/bindpost`);
} catch {
  console.error(
    `bindpost: the package @bindpost/${platform} is not installed. There is no program for this platform, ` +
      "or npm was told to omit optional dependencies.",
  );
  process.exit(1);
}

const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });

// A terminal sends Ctrl-C to both processes, and a second signal would end the program before its calls are answered.
const interactive = [process.stdin, process.stdout, process.stderr].some((stream) => stream.isTTY);
process.on("SIGINT", () => interactive || child.kill("SIGINT"));
for (const signal of ["SIGTERM", "SIGHUP"]) {
  process.on(signal, () => child.kill(signal));
}

child.on("error", (error) => {
  console.error(`bindpost: cannot start ${program}: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  process.exit(signal ? 128 + os.constants.signals[signal] : code);
});
