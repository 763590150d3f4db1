// npm run bench: install what is missing, build the server and the benchmarks, and measure.
//   npm run bench -- --quick                 seconds instead of minutes, nothing is written
//   npm run bench -- --only put-durable      one scenario (a part of its name is enough; several, comma-separated)
//   npm run bench -- --rounds 5              rounds of each pair (3 by default)
//   npm run bench -- library                 the library beside others instead (--quick and --only as well)
//   npm run bench -- secured                 Put and Range with TLS and authentication (--quick as well)
import { join } from 'node:path';
import { build, installWhatIsMissing, programs, requireNode, root, run } from '../scripts/prepare.mjs';

requireNode();
await installWhatIsMissing();
if ((await build()) !== 0) process.exit(1);
if ((await run(process.execPath, [programs.tsc, '-p', 'benchmarks/tsconfig.json'])) !== 0) process.exit(1);
const [first, ...rest] = process.argv.slice(2);
const isOther = first === 'library' || first === 'secured';
const [program, args] = isOther ? [`${first}/main.js`, rest] : ['main.js', process.argv.slice(2)];
process.exitCode = await run(process.execPath, [join(root, 'benchmarks/dist', program), ...args]);
