import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { frame } from '../wire/grpc-frames.ts';

/** The load for which the targets are defined: 8 connections with 100 streams each. */
export const h2loadConnections = 8;
export const h2loadStreams = 100;

export interface H2loadResult {
  readonly perSecond: number;
  /** Bytes of messages, with gRPC's prefix, that the server sent: 5 for each error that h2load counted as a success. */
  readonly dataBytes: number;
}

/**
 * Sends the same request repeatedly. h2load counts a gRPC error as a success: the caller verifies that the work was
 * done.
 */
export async function runH2load(options: {
  readonly address: string;
  readonly path: string;
  readonly message: Buffer;
  readonly requests: number;
  readonly isTls?: boolean;
  /** Of a user, while authentication is enabled. */
  readonly token?: string | undefined;
}): Promise<H2loadResult> {
  const folder = mkdtempSync(join(tmpdir(), 'tenure-bench-'));
  const body = join(folder, 'body');
  writeFileSync(body, frame(options.message));
  try {
    return parse(await run(h2loadArguments({ ...options, body })), options.requests);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

interface LoadArguments {
  readonly address: string;
  readonly path: string;
  readonly requests: number;
  readonly body: string;
  readonly isTls?: boolean;
  readonly token?: string | undefined;
}

function h2loadArguments(options: LoadArguments): string[] {
  return [
    ...['-n', String(options.requests), `-c${h2loadConnections}`, `-m${h2loadStreams}`, '-t1'],
    ...['-H', 'content-type: application/grpc', '-H', 'te: trailers', '-d', options.body],
    ...(options.token === undefined ? [] : ['-H', `token: ${options.token}`]),
    `${options.isTls === true ? 'https' : 'http'}://${options.address}${options.path}`,
  ];
}

function run(args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile('h2load', args, { maxBuffer: 16 * 1024 * 1024, timeout: 300_000 }, (error, stdout) => {
      if (error === null) resolve(stdout);
      else reject(new Error(`h2load failed (is nghttp2-client installed?): ${error.message}`));
    });
  });
}

function parse(output: string, requests: number): H2loadResult {
  const perSecond = Number(/finished in [^,]+, ([\d.]+) req\/s/.exec(output)?.[1]);
  const succeeded = Number(/(\d+) succeeded/.exec(output)?.[1]);
  const dataBytes = Number(/headers .*, [\d.]+[KMG]?B \((\d+)\) data/.exec(output)?.[1]);
  if (!(perSecond > 0) || succeeded !== requests) throw new Error(`h2load did not finish its requests:\n${output}`);
  return { perSecond, dataBytes };
}
