/** The name of a leader in its claim: its member, and the run of its process. */
export function leaderName(memberId: bigint, run: number): string {
  return `${memberId.toString(16)}/${run.toString(16)}`;
}

/** The member of a claim's leader; undefined for a claim on an engine without members. */
export function memberOfLeader(leader: string): bigint | undefined {
  const hex = /^([0-9a-f]{1,16})\/[0-9a-f]+$/.exec(leader)?.[1];
  return hex === undefined ? undefined : BigInt(`0x${hex}`);
}

/** The message of a server that stops because another one has its name. */
export const nameTakenText = 'a server of the same name is running: give each server a --name of its own';
