const fs = require('node:fs');
const { pathToFileURL } = require('node:url');
const [file, name, wanted] = process.argv.slice(1);
// What a script prints is for people; the result alone goes where it is read.
const say = process.stdout.write.bind(process.stdout);
process.stdout.write = process.stderr.write.bind(process.stderr);
(async () => {
  const given = JSON.parse(fs.readFileSync(0, 'utf8'));
  const loaded = await import(pathToFileURL(file));
  const all = typeof loaded.default === 'object' ? { ...loaded.default, ...loaded } : loaded;
  const names = wanted ? [wanted] : ['default', name, 'handler', 'run', 'main'];
  const handler = names.map((name) => all[name]).find((value) => typeof value === 'function');
  if (!handler) throw new Error(`the script exports no function called ${names.join(', ')}`);
  const result = await handler(given);
  say(JSON.stringify(result === undefined ? null : result), () => process.exit(0));
})().catch((error) => {
  fs.writeSync(2, `${error instanceof Error ? error.message : error}\n`);
  process.exit(1);
});
