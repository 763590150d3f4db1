// Loaded into a server under test: SIGUSR2 collects all garbage, so that what is in use afterwards is held by somebody,
// and says so on stderr.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc');

process.on('SIGUSR2', () => {
  collect();
  process.stderr.write('garbage collected\n');
});
