/** Formats a duration for people: `0.3s`, `42s`, `9m58s`, `5h04m`, `3d02h`. */
export function secondsText(seconds: number): string {
  if (seconds < 9.95) return `${seconds <= 0 ? 0 : Math.max(0.1, Math.round(seconds * 10) / 10)}s`;
  const whole = Math.ceil(seconds - 0.001);
  const two = (number: number): string => String(number).padStart(2, '0');
  if (whole < 60) return `${whole}s`;
  if (whole < 3600) return `${Math.floor(whole / 60)}m${two(whole % 60)}s`;
  if (whole < 86_400) return `${Math.floor(whole / 3600)}h${two(Math.floor(whole / 60) % 60)}m`;
  return `${Math.floor(whole / 86_400)}d${two(Math.floor(whole / 3600) % 24)}h`;
}
