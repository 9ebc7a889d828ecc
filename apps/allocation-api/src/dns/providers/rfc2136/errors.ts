/** Why the server cannot be used now, for an operator. The provider catches it and returns `unavailable`. */
export class ServerError extends Error {
  /** As far as the response tells, only this zone is affected. */
  readonly isOfZone: boolean

  constructor(message: string, isOfZone = false) {
    super(message)
    this.isOfZone = isOfZone
  }
}

/** The server rejects the TSIG key, for everything or for this request. Knot DNS answers both with BADKEY. */
export class KeyRejectedError extends ServerError {}

/** RFC 2136 section 2.2: the server does not have this zone, or denies access to it. Others affect the whole server. */
const ZONE_RCODES = new Set(['NOTAUTH', 'REFUSED', 'NXDOMAIN', 'NOTZONE'])

/** The error for the signed response `rcode`. */
export const toServerError = (what: string, rcode: string): ServerError =>
  new ServerError(`${what} (${rcode})`, ZONE_RCODES.has(rcode))
