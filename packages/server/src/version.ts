import { readFileSync } from 'node:fs';

/** The etcd API that is spoken: clients such as Kubernetes look at this, and refuse what they do not know. */
export const etcdVersion = '3.6.0';

const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string };

/** Tenure's own version. */
export const tenureVersion: string = manifest.version;
