// xterm.js without a window. Commands come in as lines of JSON: {"write": [bytes]}, {"resize": [columns, rows]}, {"show": n}.
// Out go {"answer": "…"} for what a terminal says by itself, and {"shown": n, "lines": […], "screen": […]}.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const [, , packages, columns, rows] = process.argv;
const require = createRequire(packages + "/");
const { Terminal } = require("@xterm/headless");

const terminal = new Terminal({
  cols: Number(columns),
  rows: Number(rows),
  scrollback: 50000,
  allowProposedApi: true,
});
const say = (message) => process.stdout.write(JSON.stringify(message) + "\n");
terminal.onData((answer) => say({ answer }));

function contents(from, to) {
  const lines = [];
  const buffer = terminal.buffer.active;
  for (let at = from; at < to; at += 1) {
    const line = buffer.getLine(at);
    const goesOn = buffer.getLine(at + 1)?.isWrapped ?? false;
    const text = line.translateToString(!goesOn);
    if (line.isWrapped && lines.length > 0) {
      lines[lines.length - 1] += text;
    } else {
      lines.push(text);
    }
  }
  return lines;
}

createInterface({ input: process.stdin }).on("line", (line) => {
  const command = JSON.parse(line);
  if (command.write) {
    terminal.write(Uint8Array.from(command.write));
  } else if (command.resize) {
    // As programs with an xterm.js in them do it: at once, whatever still waits to be written.
    terminal.resize(...command.resize);
  } else if (command.show !== undefined) {
    terminal.write("", () => {
      const buffer = terminal.buffer.active;
      say({
        shown: command.show,
        lines: contents(0, buffer.length),
        screen: contents(buffer.baseY, buffer.length),
      });
    });
  }
});
