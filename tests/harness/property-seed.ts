import * as fc from 'fast-check';
import { inject } from 'vitest';

// Properties that give no seed of their own begin with the seed of the run, so that two runs try the same values.
fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: inject('seed') });
