// Loaded into a server under test: SIGUSR2 runs a full garbage collection, so that only referenced memory remains in
// use, and reports it on stderr.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc');

process.on('SIGUSR2', () => {
  collect();
  process.stderr.write('garbage collected\n');
});
