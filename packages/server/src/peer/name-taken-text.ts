/** What a server says before it stops because another one has its name. */
export const nameTakenText = 'a server of the same name is running: give each server a --name of its own';
