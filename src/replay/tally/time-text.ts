/** Returns a time in microseconds since 1970 as in RFC 3339, in UTC. */
export function timeText(micros: number): string {
  return new Date(Math.floor(micros / 1000)).toISOString();
}
