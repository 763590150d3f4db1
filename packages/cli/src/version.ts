import { readFileSync } from 'node:fs';

// The same distance from src/ and from dist/.
const manifest: unknown = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));

/** Of this package; all of Tenure's packages are released together. */
export const version: string =
  typeof manifest === 'object' && manifest !== null && 'version' in manifest ? String(manifest.version) : 'unknown';
