// Compares `sse-frames.json` with two parsers that other people wrote, so that the expectations are not merely what
// our own parser happens to do.
//
//   node test-vectors/check/sse.mjs DIRECTORY
//
// DIRECTORY holds a `node_modules` with the packages of the `package.json` beside this script. `HANZO_TEST_VECTORS`
// names another directory of vectors. Cases with a `limit` are left out: that is our promise, not the standard's.

import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const here = dirname(fileURLToPath(import.meta.url))
const packages = process.argv[2]
if (!packages) {
  console.error('usage: node sse.mjs DIRECTORY-WITH-NODE_MODULES')
  process.exit(2)
}
const require = createRequire(join(resolve(packages), 'package.json'))
const { createParser } = require('eventsource-parser')
const { EventSourceStream } = require('undici/lib/web/eventsource/eventsource-stream.js')

// Where a library departs from the standard (or from a choice the standard leaves open), and why. A departure that is
// not listed fails the check, and so does one that is listed but has gone.
const WAITS_AFTER_CR = 'holds back a CR at the end of its input in case an LF follows, so the last line stays open'
const NO_BOUND = 'reads digits into a float of any size; the standard sets no bound, ours is 64 bits'
const deviations = {
  'eventsource-parser': {
    'CR line ends': WAITS_AFTER_CR,
    'an event that ends in CR CR is complete': WAITS_AFTER_CR,
    'an event that ends in LF CR is complete': WAITS_AFTER_CR,
    'CRLF CR is complete': WAITS_AFTER_CR,
    'a comment with CR line end': WAITS_AFTER_CR,
    'a sequence cut by CR': WAITS_AFTER_CR,
    'a retry past 64 bits is ignored': NO_BOUND
  },
  undici: {
    'an empty type takes back the one before': 'ignores an `event` field without value; the standard sets the type to it',
    'a retry line takes effect at its end': 'applies `retry` when the event ends; the standard does when the line does',
    'a retry past 64 bits is ignored': NO_BOUND
  }
}

// Each library returns what can be read off it; only those keys are compared.
const libraries = {
  // Documented use: text decoded by a TextDecoder, which also removes the byte order mark.
  'eventsource-parser': (chunks) => {
    const decoder = new TextDecoder()
    const seen = { frames: [], reconnectionTime: undefined }
    const parser = createParser({
      onEvent: ({ event, data, id }) => seen.frames.push({ event, data, id }),
      // Reported apart from the event it came with, so that frames carry no `retry` here.
      onRetry: (milliseconds) => { seen.reconnectionTime = milliseconds }
    })
    for (const chunk of chunks) parser.feed(decoder.decode(chunk, { stream: true }))
    return seen
  },
  undici: (chunks) => {
    const settings = { lastEventId: '', reconnectionTime: undefined }
    const frames = []
    class Recorder extends EventSourceStream {
      processEvent (fields) {
        super.processEvent(fields)
        if (fields.data === undefined) return
        const { event, data, id, retry } = fields
        frames.push({ event, data, id, retry: retry === undefined ? undefined : Number(retry) })
      }
    }
    const stream = new Recorder({ eventSourceSettings: settings, push: () => true })
    for (const chunk of chunks) {
      stream._transform(chunk, 'buffer', (error) => { if (error) throw error })
    }
    return { frames, retries: true, ...settings }
  }
}

function expectation (testCase, seen) {
  const frames = testCase.frames.map(({ event, data, id, retry }) =>
    seen.retries ? { event, data, id, retry } : { event, data, id })
  const expected = { frames, reconnectionTime: testCase.reconnectionTime }
  if ('lastEventId' in seen) expected.lastEventId = testCase.lastEventId ?? ''
  return expected
}

// A canonical spelling in which an absent value and `undefined` are the same.
function spell ({ frames, reconnectionTime, lastEventId }) {
  return JSON.stringify({ frames, reconnectionTime, lastEventId })
}

function * cuts (bytes) {
  yield ['whole', [bytes]]
  yield ['byte by byte', Array.from(bytes, (_, at) => bytes.subarray(at, at + 1))]
  for (let at = 1; at < bytes.length; at++) yield [`cut at byte ${at}`, [bytes.subarray(0, at), bytes.subarray(at)]]
}

function firstDifference (parse, testCase) {
  const bytes = testCase.inputBase64 === undefined
    ? Buffer.from(testCase.input, 'utf8')
    : Buffer.from(testCase.inputBase64, 'base64')
  for (const [how, chunks] of cuts(bytes)) {
    const seen = parse(chunks)
    const [got, expected] = [spell(seen), spell(expectation(testCase, seen))]
    if (got !== expected) return `${how}\n    expected ${expected}\n    got      ${got}`
  }
  return undefined
}

const directory = process.env.HANZO_TEST_VECTORS ?? join(here, '..')
const file = join(directory, 'sse-frames.json')
if (process.env.HANZO_TEST_VECTORS && !existsSync(file)) {
  console.log(`skipped: ${file} does not exist\n0 passed, 0 failed`)
  process.exit(0)
}
const cases = JSON.parse(readFileSync(file, 'utf8')).cases.filter((testCase) => testCase.limit === undefined)

let passed = 0
let failed = 0
for (const [library, parse] of Object.entries(libraries)) {
  const { version } = require(`${library}/package.json`)
  const listed = deviations[library]
  const fail = (message) => {
    failed += 1
    console.log(`FAILED ${library} ${version}: ${message}`)
  }
  let agree = 0
  for (const testCase of cases) {
    const difference = firstDifference(parse, testCase)
    const reason = listed[testCase.name]
    if (difference !== undefined && reason === undefined) {
      fail(`\`${testCase.name}\` ${difference}`)
    } else if (difference === undefined && reason !== undefined) {
      fail(`\`${testCase.name}\` agrees now; take it off the list of deviations`)
    } else {
      passed += 1
      agree += difference === undefined ? 1 : 0
    }
  }
  if (!process.env.HANZO_TEST_VECTORS) {
    const names = new Set(cases.map((testCase) => testCase.name))
    for (const name of Object.keys(listed)) {
      if (!names.has(name)) fail(`the list of deviations names \`${name}\`, which is no case`)
    }
  }
  console.log(`${library} ${version}: ${agree} of ${cases.length} cases agree, ${Object.keys(listed).length} deviations listed`)
}
console.log(`${passed} passed, ${failed} failed`)
process.exit(failed === 0 ? 0 : 1)
