import type { DescriptorStatus, HeaderValue, RateLimitResponse } from './messages.js';

/** Names of the codes and units, by number. The default, 0, is omitted. */
const CODES = [undefined, 'OK', 'OVER_LIMIT'];
const UNITS = [undefined, 'SECOND', 'MINUTE', 'HOUR', 'DAY', 'MONTH', 'YEAR', 'WEEK'];

/** Encodes a response in protobuf JSON, without fields that have their default value. */
export function responseToJson(response: RateLimitResponse): string {
  const { rawBody } = response;
  // JSON.stringify omits undefined.
  return JSON.stringify({
    overallCode: CODES[response.overallCode],
    statuses: unlessEmpty(response.statuses.map(statusToJson)),
    responseHeadersToAdd: unlessEmpty(response.responseHeadersToAdd.map(headerToJson)),
    requestHeadersToAdd: unlessEmpty(response.requestHeadersToAdd.map(headerToJson)),
    rawBody: rawBody?.length ? Buffer.from(rawBody).toString('base64') : undefined,
    dynamicMetadata: response.dynamicMetadata,
  });
}

function statusToJson(status: DescriptorStatus): object {
  const { currentLimit, durationUntilResetSeconds } = status;
  return {
    code: CODES[status.code],
    currentLimit: currentLimit && {
      requestsPerUnit: currentLimit.requestsPerUnit || undefined,
      unit: UNITS[currentLimit.unit],
      name: currentLimit.name || undefined,
    },
    limitRemaining: status.limitRemaining || undefined,
    durationUntilReset: durationUntilResetSeconds === undefined ? undefined : `${durationUntilResetSeconds}s`,
  };
}

function headerToJson({ key, value }: HeaderValue): object {
  return { key: key || undefined, value: value || undefined };
}

function unlessEmpty<Item>(list: readonly Item[]): readonly Item[] | undefined {
  return list.length === 0 ? undefined : list;
}
