export type { CommandIo } from './command-context.ts';
export { main } from './main.ts';
