export { memoryBackend } from './memory-backend.ts';
export type { MemoryBackendOptions } from './memory-backend.ts';
