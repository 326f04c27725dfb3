import { type ProtoStruct, type ProtoValue, toStruct } from '../../codec/client-codec.js';
import { CODE, LIMIT_UNIT, type RateLimitResponse } from '../../codec/messages.js';

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
      ['value', value === '' ? undefined : quoted(value)],
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

/** Returns undefined for 0, protobuf's default. */
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
