/** Maximum number of ended spans that wait to be sent. Further ones are lost and counted. */
export const MAX_QUEUED_SPANS = 2048;
/** Number of spans in one message, which takes less than a millisecond to encode. */
export const SPANS_PER_BATCH = 64;
/** Maximum number of messages that the collector has not answered. */
export const MAX_PENDING_EXPORTS = 40;
/** Maximum number of characters of a string in a span. */
export const MAX_SPAN_TEXT = 256;
/** Maximum milliseconds that the exit of the process waits for the last spans. */
export const FLUSH_TIMEOUT_MS = 2000;
