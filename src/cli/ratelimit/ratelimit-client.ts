import { type Client, type ServiceError, status } from '@grpc/grpc-js';
import { createClientCodec, type ProtoStruct, type ProtoValue, toStruct } from '../../codec/client-codec.js';
import { CODE, type Descriptor, LIMIT_UNIT, type RateLimitResponse } from '../../codec/messages.js';
import { shownAddress } from '../../runtime/shown-address.js';
import { readEntry } from '../arguments.js';
import { plainDetails } from '../call/advice.js';
import { askServer, openClient } from '../call/channel.js';
import { EXIT, type Io } from '../io.js';
import {
  RATELIMIT_CLIENT_FLAGS as FLAGS,
  type GoFlags,
  goUsageError,
  RATELIMIT_CLIENT_HELP,
  readGoFlags,
} from './ratelimit-flags.js';

const COMMAND = 'ratelimit-client';

/** Timeout of the call in milliseconds. The original waits without a timeout. */
const TIMEOUT_MS = 30_000;

interface Call {
  readonly address: string;
  readonly domain: string;
  readonly descriptors: readonly Descriptor[];
}

/** Runs `weir ratelimit-client`: sends one request and prints the answer in protobuf's text format. */
export async function runRatelimitClient(args: readonly string[], io: Io): Promise<number> {
  const flags = readGoFlags(COMMAND, args, FLAGS);
  if (flags === undefined) {
    io.out(RATELIMIT_CLIENT_HELP);
    return EXIT.OK;
  }
  const call = callOf(flags);
  if (flags.rest.length > 0)
    io.err(
      `weir ${COMMAND}: ${JSON.stringify(flags.rest[0])} is not a flag; this argument and all later arguments are ` +
        'ignored\n',
    );
  for (const { name } of FLAGS) io.out(`Flag: --${name}=${JSON.stringify(shown(flags, name, call))}\n`);
  let client: Client;
  try {
    const channel = {
      tls: last(flags, 'grpc-use-tls') === 'true',
      ca: last(flags, 'grpc-server-ca-file'),
      cert: last(flags, 'grpc-cert-file'),
      key: last(flags, 'grpc-key-file'),
    };
    client = openClient({ address: call.address, channel, own: false });
  } catch (error) {
    io.out(`error connecting: ${(error as Error).message}\n`);
    return EXIT.FAILED;
  }
  try {
    io.out(`response: ${responseText(await ask(call, client))}\n`);
    return EXIT.OK;
  } catch (error) {
    const failure = error as ServiceError;
    io.out(`request error: rpc error: code = ${goName(failure.code)} desc = ${plainDetails(failure)}\n`);
    return EXIT.FAILED;
  }
}

/** Returns the last value of a flag, as Go does; undefined if it is unset or empty. */
function last({ values }: GoFlags, name: string): string | undefined {
  return values.get(name)?.at(-1) || undefined;
}

function callOf(flags: GoFlags): Call {
  const wrong = (sentence: string): Error => goUsageError(COMMAND, sentence);
  if (last(flags, 'oltp-protocol') !== undefined)
    throw wrong('-oltp-protocol: this client does not record traces; remove the flag');
  if ((last(flags, 'grpc-cert-file') === undefined) !== (last(flags, 'grpc-key-file') === undefined))
    throw wrong('-grpc-cert-file and -grpc-key-file must be set together');
  const descriptors: Descriptor[] = [];
  for (const text of flags.values.get('descriptors') ?? []) {
    const entries = text
      .split(',')
      .map((pair) => (pair.split('=').length === 2 ? readEntry(pair) : undefined));
    if (!entries.every((entry) => entry !== undefined))
      throw wrong(
        '-descriptors: write the entries as key=value,key=value, with exactly one "=" in each entry',
      );
    descriptors.push({ entries, limit: undefined, hitsAddend: undefined, isNegativeHits: false });
  }
  return {
    address: last(flags, 'dial_string') ?? 'localhost:8081',
    domain: last(flags, 'domain') ?? '',
    descriptors,
  };
}

function shown(flags: GoFlags, name: string, call: Call): string {
  switch (name) {
    case 'descriptors':
      return call.descriptors
        .map(
          ({ entries }) => `[${entries.map(({ key, value }) => ` <key=${key}, value=${value}> `).join('')}] `,
        )
        .join('');
    case 'dial_string':
      return shownAddress(call.address);
    case 'grpc-use-tls':
      return last(flags, name) ?? 'false';
    default:
      return last(flags, name) ?? '';
  }
}

function ask(call: Call, client: Client): Promise<RateLimitResponse> {
  const codec = createClientCodec();
  const request = Buffer.from(
    codec.encodeRequest({ domain: call.domain, descriptors: call.descriptors, hitsAddend: 1 }),
  );
  return askServer(client, codec, request, TIMEOUT_MS).finally(() => client.close());
}

/** Converts the name of a status code to Go's spelling: `DeadlineExceeded` for DEADLINE_EXCEEDED. */
function goName(code: number): string {
  const words = (status[code] ?? `CODE_${code}`).toLowerCase().split('_');
  return code === status.OK
    ? 'OK'
    : words.map((word) => word.slice(0, 1).toUpperCase() + word.slice(1)).join('');
}

type Field = readonly [name: string, value: string | undefined];

/**
 * Formats an answer in protobuf's text format on one line, like Go: fields in the order of their numbers, without
 * fields that have the default value (protobuf.dev/reference/protobuf/textformat-spec).
 */
export function responseText(answer: RateLimitResponse): string {
  return fields([
    ['overall_code', enumName(CODE, answer.overallCode)],
    ...answer.statuses.map((status): Field => {
      const limit = status.currentLimit;
      const seconds = status.durationUntilResetSeconds;
      return [
        'statuses',
        message([
          ['code', enumName(CODE, status.code)],
          [
            'current_limit',
            limit &&
              message([
                ['requests_per_unit', number(limit.requestsPerUnit)],
                ['unit', enumName(LIMIT_UNIT, limit.unit)],
                ['name', limit.name === '' ? undefined : quoted(limit.name)],
              ]),
          ],
          ['limit_remaining', number(status.limitRemaining)],
          [
            'duration_until_reset',
            seconds === undefined ? undefined : message([['seconds', number(seconds)]]),
          ],
        ]),
      ];
    }),
    ...headers('response_headers_to_add', answer.responseHeadersToAdd),
    ...headers('request_headers_to_add', answer.requestHeadersToAdd),
    ['raw_body', answer.rawBody?.length ? quoted(Buffer.from(answer.rawBody).toString('latin1')) : undefined],
    ['dynamic_metadata', answer.dynamicMetadata && structText(toStruct(answer.dynamicMetadata))],
  ]);
}

function headers(name: string, list: RateLimitResponse['responseHeadersToAdd']): Field[] {
  return list.map(({ key, value }) => [
    name,
    message([
      ['key', quoted(key)],
      ['value', value === '' ? undefined : quoted(String(value))],
    ]),
  ]);
}

function structText({ fields: members = {} }: ProtoStruct): string {
  return message(
    Object.entries(members).map(
      ([key, value]): Field => [
        'fields',
        message([
          ['key', quoted(key)],
          ['value', valueText(value)],
        ]),
      ],
    ),
  );
}

function valueText(value: ProtoValue): string {
  if (value.stringValue !== undefined) return message([['string_value', quoted(value.stringValue)]]);
  if (value.numberValue !== undefined) return message([['number_value', String(value.numberValue)]]);
  if (value.boolValue !== undefined) return message([['bool_value', String(value.boolValue)]]);
  if (value.structValue !== undefined) return message([['struct_value', structText(value.structValue)]]);
  if (value.listValue === undefined) return message([['null_value', 'NULL_VALUE']]);
  const values = (value.listValue.values ?? []).map((one): Field => ['values', valueText(one)]);
  return message([['list_value', message(values)]]);
}

function fields(list: readonly Field[]): string {
  return list.flatMap(([name, value]) => (value === undefined ? [] : [`${name}:${value}`])).join(' ');
}

function message(list: readonly Field[]): string {
  return `{${fields(list)}}`;
}

/** Undefined for 0, protobuf's default. */
function number(value: number): string | undefined {
  return value === 0 ? undefined : String(value);
}

function enumName(values: Readonly<Record<string, number>>, value: number): string | undefined {
  if (value === 0) return undefined;
  return (
    Object.entries(values)
      .find(([, one]) => one === value)?.[0]
      .toUpperCase() ?? String(value)
  );
}

/** Quotes a string and escapes its control characters, so that a server cannot control the terminal. */
function quoted(text: string): string {
  return JSON.stringify(text).replaceAll(
    /[\u007f-\u009f]/g,
    (character) => `\\x${character.charCodeAt(0).toString(16)}`,
  );
}
