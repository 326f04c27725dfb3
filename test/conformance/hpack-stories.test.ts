// Decodes header blocks that other encoders create during the test, and lets other decoders read weir's blocks. These
// are npm hpack.js, Python's hpack, and the nghttp2 in Node.js's client.
import { spawn } from 'node:child_process';
import { connect, type OutgoingHttpHeaders, sensitiveHeaders } from 'node:http2';
import { describe, expect, test } from '@jest/globals';
import { HpackEncoder } from '../../src/h2/hpack/encoder.js';
import { HeaderField } from '../../src/h2/hpack/header-field.js';
import {
  decodePairs,
  encode,
  HpackJsDecoder,
  HpackJsEncoder,
  newDecoder,
  type Pair,
} from '../support/h2/hpack.js';
import { LARGEST_TABLE, makeStory, type Story, type StoryField } from '../support/h2/hpack-stories.js';
import { RecordingHttp2Server } from '../support/h2/recording-http2-server.js';
import { optionalToolPath } from '../support/process/tools.js';
import { waitFor } from '../support/process/wait-for.js';

const pairsOf = (fields: readonly StoryField[]): Pair[] => fields.map(({ name, value }) => [name, value]);

/** Decodes the blocks of a story on one connection. */
function expectStory(story: Story, blocks: readonly Uint8Array[]): void {
  const decoder = newDecoder({ maxTableBytes: LARGEST_TABLE });
  expect(blocks.length).toBe(story.length);
  story.forEach(({ fields }, i) => {
    expect(decodePairs(decoder, blocks[i] as Uint8Array)).toEqual(pairsOf(fields));
  });
}

/** Encodes the story with weir's encoder. Equal fields are the same object, as in responses. */
function encodeStory(story: Story): Buffer[] {
  const encoder = new HpackEncoder();
  const known = new Map<string, HeaderField>();
  return story.map(({ tableBytes, fields }) => {
    for (const bytes of tableBytes) encoder.setPeerTableBytes(bytes);
    const ours = fields.map(({ name, value, sensitive }) => {
      const key = `${name}\n${value}\n${sensitive}`;
      const field = known.get(key) ?? new HeaderField(name, value, !sensitive);
      known.set(key, field);
      return field;
    });
    return encode(encoder, ours);
  });
}

describe('stories of hpack.js', () => {
  test.each([
    [1, true],
    [2, false],
  ])('story %i, Huffman code: %s', (seed, huffman) => {
    const story = makeStory(seed, { blocks: 200, resize: false });
    const encoder = new HpackJsEncoder();
    const blocks = story.map(({ fields }) =>
      encoder.encode(
        fields.map(({ name, value, sensitive }) => ({ name, value, huffman, neverIndex: sensitive })),
      ),
    );
    expectStory(story, blocks);
  });

  test("hpack.js decodes weir's story", () => {
    const story = makeStory(3, { blocks: 200, resize: false });
    const decoder = new HpackJsDecoder();
    encodeStory(story).forEach((block, i) => {
      expect(decoder.decode(block)).toEqual(pairsOf(story[i]?.fields ?? []));
    });
  });
});

const python = optionalToolPath('python-hpack');
// Reads one task per line and prints its result as one line, both in JSON. Strings contain one character per byte.
const PYTHON = `
import json, sys
from hpack import Decoder, Encoder, HeaderTuple, NeverIndexedHeaderTuple
for line in sys.stdin:
    task = json.loads(line)
    result = []
    encoder, decoder = Encoder(), Decoder(max_header_list_size=1 << 30)
    for index, step in enumerate(task['story']):
        for size in step['tableBytes']:
            encoder.header_table_size = size
            decoder.max_allowed_table_size = size
        if task['do'] == 'encode':
            fields = [(NeverIndexedHeaderTuple if f['sensitive'] else HeaderTuple)(
                f['name'].encode('latin1'), f['value'].encode('latin1')) for f in step['fields']]
            result.append(encoder.encode(fields, huffman=task['huffman']).hex())
        else:
            fields = decoder.decode(bytes.fromhex(task['blocks'][index]), raw=True)
            result.append([[n.decode('latin1'), v.decode('latin1')] for n, v in fields])
    print(json.dumps(result), flush=True)
`;

async function askPython(task: object): Promise<unknown> {
  const child = spawn(python as string, ['-c', PYTHON], { stdio: ['pipe', 'pipe', 'inherit'] });
  const printed: Buffer[] = [];
  child.stdout.on('data', (chunk) => printed.push(chunk));
  child.stdin.end(`${JSON.stringify(task)}\n`);
  const code = await new Promise((resolve) => child.once('close', resolve));
  expect(code).toBe(0);
  return JSON.parse(Buffer.concat(printed).toString());
}

(python === undefined ? describe.skip : describe)('stories of the Python package hpack', () => {
  test.each([
    [11, true, false],
    [12, false, false],
    [13, true, true],
    [14, false, true],
  ])('story %i, Huffman code: %s, table sizes change: %s', async (seed, huffman, resize) => {
    const story = makeStory(seed, { blocks: 200, resize });
    const blocks = (await askPython({ do: 'encode', huffman, story })) as string[];
    expectStory(
      story,
      blocks.map((hex) => Buffer.from(hex, 'hex')),
    );
  });

  test.each([
    [15, false],
    [16, true],
  ])("Python decodes weir's story %i, table sizes change: %s", async (seed, resize) => {
    const story = makeStory(seed, { blocks: 200, resize });
    const blocks = encodeStory(story).map((block) => block.toString('hex'));
    expect(await askPython({ do: 'decode', story, blocks })).toEqual(
      story.map(({ fields }) => pairsOf(fields)),
    );
  });
});

describe('stories of nghttp2, in the client of Node.js', () => {
  test.each([
    [21, false],
    [22, true],
  ])('story %i, table sizes change: %s', async (seed, resize) => {
    const story = makeStory(seed, { blocks: 80, resize });
    const server = await RecordingHttp2Server.start();
    const session = connect(`http://127.0.0.1:${server.port}`);
    session.on('error', () => {});
    try {
      await waitFor('the connection', () => !session.connecting);
      for (const [i, { tableBytes, fields }] of story.entries()) {
        for (const bytes of tableBytes) await server.setHeaderTableBytes(bytes);
        const headers: OutgoingHttpHeaders = Object.fromEntries(pairsOf(fields));
        // Pseudo-header fields cannot be marked as sensitive.
        Object.assign(headers, {
          [sensitiveHeaders]: fields.filter(({ sensitive }) => sensitive).map(({ name }) => name),
        });
        session.request(headers, { endStream: true }).on('error', () => {});
        await waitFor('the request', () => server.blocks.length > i);
      }
      expectStory(story, server.blocks);
      // The bits 001 start a table size update.
      expect(server.blocks.some((block) => block.readUInt8(0) >> 5 === 1)).toBe(resize);
    } finally {
      session.destroy();
      await server.close();
    }
  });
});
