/** A transaction in a transaction in ... this many in all, the outermost included. */
export const maxTxnDepth = 1000;
