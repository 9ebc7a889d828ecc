/** Why a body was not read. `body-aborted`: the client left, or sent invalid framing. */
export type BodyFailure = 'body-too-large' | 'request-timeout' | 'overloaded' | 'unsupported-encoding' | 'body-aborted'

/** A body that was not read. Every operation of a service responds to it in the same way. */
export class BodyError extends Error {
  override readonly name = 'BodyError'
  readonly kind: BodyFailure

  constructor(kind: BodyFailure) {
    super(kind)
    this.kind = kind
  }
}

/** Whether a field `Content-Encoding` announces a coding, which no service decodes. */
export const isEncoded = (contentEncoding: string | null | undefined): boolean =>
  (contentEncoding ?? 'identity').trim().toLowerCase() !== 'identity'
