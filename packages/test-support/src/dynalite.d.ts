/** The emulator has no types of its own. */
declare module 'dynalite' {
  import type { Server } from 'node:http';

  export type DynaliteServer = Server;
  export default function dynalite(options?: { readonly createTableMs?: number }): DynaliteServer;
}
