/*
 * Reading the lines of access logs, without opening files. To run it:
 * `node build/test/bench/micro/replay-lines.bench.js [part of a name …]`.
 */
import { jsonMembers } from '../../../src/replay/log/json-format.js';
import { LineFields } from '../../../src/replay/log/lines/line-fields.js';
import { lineReader } from '../../../src/replay/log/lines/line-reader.js';
import { TimeReader } from '../../../src/replay/log/lines/time-reader.js';
import { jsonFormat, type LogFormat, START_TIME, textFormat } from '../../../src/replay/log/log-format.js';
import { type MicroCase, runCases } from './measure.js';

const OPERATORS = [
  START_TIME,
  'DURATION',
  'RESPONSE_CODE',
  'REQ(x-tenant)',
  'REQ(:path)',
  'REQ(x-request-id)',
];
const MEMBERS = {
  start_time: '%START_TIME%',
  method: '%REQ(:METHOD)%',
  path: '%REQ(:PATH)%',
  protocol: '%PROTOCOL%',
  response_code: '%RESPONSE_CODE%',
  response_flags: '%RESPONSE_FLAGS%',
  bytes_sent: '%BYTES_SENT%',
  duration: '%DURATION%',
  tenant: '%REQ(X-TENANT)%',
  user_agent: '%REQ(USER-AGENT)%',
  request_id: '%REQ(X-REQUEST-ID)%',
  authority: '%REQ(:AUTHORITY)%',
};
const TEXT = Object.values(MEMBERS).join(' ');

/** Values in the order of MEMBERS, for a line of about 300 bytes. */
function valuesOf(i: number): readonly (string | number)[] {
  const time = new Date(1_795_680_000_000 + i).toISOString();
  return [
    ...[
      time,
      i % 2 === 0 ? 'GET' : 'POST',
      `/open/v5/user-chats/${i % 10_000}?limit=50`,
      'HTTP/1.1',
      200,
      '-',
    ],
    ...[i % 5000, i % 200, `tenant-${i % 100_000}`, 'curl/8.9.1'],
    ...[`${(i * 7919).toString(16).padStart(8, '0')}-0000-4000-8000-000000000000`, 'api.example'],
  ];
}

function jsonLine(i: number, more: object = {}): string {
  const values = valuesOf(i);
  return JSON.stringify({
    ...Object.fromEntries(Object.keys(MEMBERS).map((name, at) => [name, values[at]])),
    ...more,
  });
}

function reading(format: LogFormat, line: (i: number) => string): MicroCase {
  return () => {
    const lines = Array.from({ length: 4096 }, (_, i) => Buffer.from(line(i)).toString('latin1'));
    const fields = new LineFields(OPERATORS.length);
    const times = new TimeReader();
    const read = lineReader(format, OPERATORS);
    return (call) => {
      const text = lines[call & 4095] as string;
      read(text, fields);
      times.read(text, fields.from[0] as number, fields.to[0] as number);
    };
  };
}

const JSON_FORMAT = jsonFormat('JSON', jsonMembers(MEMBERS));

runCases(__filename, {
  'a line of JSON': reading(JSON_FORMAT, (i) => jsonLine(i)),
  'a line of JSON with an escape, which is parsed': reading(JSON_FORMAT, (i) =>
    jsonLine(i, { referer: '"' }),
  ),
  'a line of text': reading(textFormat('text', TEXT), (i) => valuesOf(i).join(' ')),
});
