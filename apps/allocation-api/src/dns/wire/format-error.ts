/** A message is not well-formed DNS (FORMERR). The text quotes nothing of the message. */
export class FormatError extends Error {}
