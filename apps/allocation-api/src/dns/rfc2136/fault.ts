/** What the server sent is no DNS message that can be read. Its text quotes nothing of it. */
export class MessageFault extends Error {}

/** Why the server cannot be used now, for an operator. Caught in the provider, where it becomes `unavailable`. */
export class ServerTrouble extends Error {}

/** The server does not take our key: not at all, or not for what it was asked to do. Knot DNS answers both with BADKEY. */
export class KeyDenied extends ServerTrouble {}
