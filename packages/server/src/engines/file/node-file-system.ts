import * as fs from 'node:fs';
import { FileSystem } from './file-system.ts';

/** The files of this machine. */
export const nodeFileSystem = new FileSystem(fs);
