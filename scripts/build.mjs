// npm run build: compiles the packages, and puts the command into one file.
import { build } from './prepare.mjs';

process.exitCode = await build();
