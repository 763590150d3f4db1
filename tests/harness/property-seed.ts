import * as fc from 'fast-check';
import { inject } from 'vitest';

// Properties without a seed of their own start with the seed of the run, so that two runs try the same values.
fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: inject('seed') });
