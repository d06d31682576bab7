// @ts-check
// What a schedule does when a time cannot be run as planned, in the words of the form.

export const OVERLAPS = [
  ["skip", "Leave that time out", "While its last turn has not ended, nothing is sent."],
  ["queue", "Send it all the same", "In a session of yours it waits in the queue; a new session works beside the other."],
];

export const MISSED = [
  ["run_once", "Run once, late", "When the server was away at the time: the latest of the times that were missed is run."],
  ["skip", "Leave them out", "When the server was away at the time: it goes on with the next one."],
];
