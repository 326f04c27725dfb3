/** Names by which weir and Envoy pass the token of a request's holds. */
export interface HoldNames {
  /** Key of the token in the dynamic metadata of an answer (HOLD_METADATA_KEY). */
  readonly metadataKey: string;
  /** Key of the entry that contains the token at the end of the request (HOLD_ENTRY). */
  readonly entry: string;
}

export const DEFAULT_HOLD_NAMES: HoldNames = { metadataKey: 'hold', entry: 'hold' };
