/** What the server sent is no DNS message that can be read. Its text quotes nothing of it. */
export class FormatError extends Error {}

/** Why the server cannot be used now, for an operator. Caught in the provider, where it becomes `unavailable`. */
export class ServerError extends Error {
  /** It concerns this zone alone, as far as the answer tells. */
  readonly isOfZone: boolean

  constructor(message: string, isOfZone = false) {
    super(message)
    this.isOfZone = isOfZone
  }
}

/** The server does not take our key: not at all, or not for what it was asked to do. Knot DNS answers both with BADKEY. */
export class KeyRejectedError extends ServerError {}

/** RFC 2136 section 2.2: there is no such zone here, or nothing is allowed in it. The others may fail everywhere. */
const ofZone = new Set(['NOTAUTH', 'REFUSED', 'NXDOMAIN', 'NOTZONE'])

/** The trouble that the signed answer `rcode` is. */
export const toServerError = (what: string, rcode: string): ServerError =>
  new ServerError(`${what} (${rcode})`, ofZone.has(rcode))
