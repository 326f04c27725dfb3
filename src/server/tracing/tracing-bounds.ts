/** Ended spans that wait to be sent; more are lost, and counted. */
export const MAX_QUEUED_SPANS = 2048;
/** Spans that are sent in one message: writing it takes less than a millisecond. */
export const SPANS_PER_BATCH = 64;
/** Messages that the collector has yet to answer. */
export const MAX_PENDING_EXPORTS = 40;
/** Most characters of a text in a span. */
export const MAX_SPAN_TEXT = 256;
/** How long the end of the process may wait for the last spans to be taken. Milliseconds. */
export const FLUSH_TIMEOUT_MS = 2000;
