/* `npm run docs:chart` writes the golden files of the chart. Review the diff before you commit it. */
import { writeFileSync } from 'node:fs';
import { GOLDEN, goldenFile, render } from './chart.js';

async function main(): Promise<void> {
  for (const name of GOLDEN) writeFileSync(goldenFile(name), await render(name));
}

main().catch((error: Error) => {
  console.error(error.message);
  process.exitCode = 1;
});
