/** Node's own conversion, without the dispatch on an encoding's name that `toString` makes. */
export type Latin1Buffer = Buffer & { latin1Slice(start: number, end: number): string };
