import { readFileSync } from 'node:fs';

/** The version of etcd's API that is implemented. Clients such as Kubernetes check it and refuse an unknown one. */
export const etcdVersion = '3.6.0';

const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string };

/** Tenure's own version. */
export const tenureVersion: string = manifest.version;
