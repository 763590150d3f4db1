/** Why there is no connection, from what grpc-js says of it: without its own frame, in one line. */
export function connectionTrouble(details: string): string {
  const reason = details
    .replace(/^No connection established\. Last error: |\.? Resolution note:.*$/gs, '')
    .replace(/^Error: /, '')
    .replace(/\s*\n.*/s, '')
    .replace(/ \(\d{4}-\d\d-\d\dT[\d:.]+Z\)$/, '');
  // OpenSSL's words for a server that answers a TLS greeting with something else.
  if (reason.includes('wrong version number')) return 'it does not speak TLS: leave out https:// and the flags for TLS';
  return reason;
}
