/** Learns what becomes of an answered call. At most one of the methods is called, once. They must not throw. */
export interface ResetListener {
  /** The caller has canceled the call. */
  onReset(): void;
  /** The call was answered, and its connection no longer remembers it. */
  onForgotten(): void;
}
