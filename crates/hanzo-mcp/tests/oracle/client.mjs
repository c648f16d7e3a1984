// The official TypeScript client against our server: `client.mjs PACKAGES stdio PROGRAM DIRECTORY` or `client.mjs PACKAGES http URL`.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [packages, kind, ...rest] = process.argv.slice(2);
const require = createRequire(`${packages}/package.json`);
const load = async (path) => import(pathToFileURL(require.resolve(`@modelcontextprotocol/sdk/client/${path}`)));
const { Client } = await load('index.js');
const { StdioClientTransport } = await load('stdio.js');
const { StreamableHTTPClientTransport } = await load('streamableHttp.js');

const client = new Client({ name: 'oracle', version: '0' });
await client.connect(
  kind === 'stdio'
    ? new StdioClientTransport({ command: rest[0], args: ['mcp', '-C', rest[1]], env: { ...process.env } })
    : new StreamableHTTPClientTransport(new URL(rest[0])),
);
assert.equal(client.getServerVersion().name, 'hanzo-dev');
const { tools } = await client.listTools();
assert.ok(tools.some((tool) => tool.name === 'fs') && tools.some((tool) => tool.name === 'hanzo_agent_coder'));
const read = await client.callTool({ name: 'fs', arguments: { action: 'read', path: 'a.txt' } });
assert.equal(read.structuredContent.data.text, 'hello\n');
const refused = await client.callTool({ name: 'fs', arguments: { action: 'read', path: '/etc/passwd' } });
assert.equal(refused.isError, true);
const { resources } = await client.listResources();
assert.ok(resources.some((resource) => resource.uri.endsWith('/a.txt')));
const { prompts } = await client.listPrompts();
assert.ok(prompts.some((prompt) => prompt.name === 'init'));
console.log(`typescript sdk over ${kind}: ${tools.length} tools`);
await client.close();
