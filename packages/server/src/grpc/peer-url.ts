/** Host and port, perhaps with a user before them and a query behind, and no path. */
const webUrl = /^https?:\/\/(?:[^\s/?#@]*@)?(?:\[[^\s\][/?#@]+\]|[^\s\][/?#@:%]*):\d*(?:[?#]\S*)?$/i;
const socketUrl = /^unixs?:\S*$/i;

/** Whether etcd takes this for an address where members reach each other: it asks for a scheme and host:port. */
export function isPeerUrl(text: string): boolean {
  const url = text.trim();
  return webUrl.test(url) || socketUrl.test(url);
}
