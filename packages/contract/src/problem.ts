import * as z from 'zod'

/** The error codes that both services use. */
export const commonErrorCodes = [
  'invalid-json',
  'invalid-limit',
  'invalid-cursor',
  'unauthorized',
  'not-found',
  'method-not-allowed',
  'body-too-large',
  'internal-error',
] as const

/** The one shape of every error body. `detail` is one sentence that a person can act on. */
export const problemOf = <const Codes extends readonly [string, ...string[]]>(codes: Codes) =>
  z.object({
    error: z.enum(codes),
    detail: z.string().optional(),
    requestId: z.string().optional().meta({ description: 'Only with `internal-error`: find it in the log.' }),
  })

/** A fault found by a schema: what the error body will say. */
export interface Fault<Code extends string> {
  readonly code: Code
  readonly detail: string
}

/**
 * A schema's message carries its code, so that one schema says both what is right and how a wrong value is answered:
 * `z.string(fault('missing-token', '…'))`. `faultOf` reads back the first fault in the order of the schema's fields,
 * which is the order in which the contract decides.
 */
export const faultsOf = <Code extends string>(codes: readonly Code[], otherwise: Code) => ({
  fault: (code: Code, detail: string): string => `${code}: ${detail}`,
  faultOf: (error: z.core.$ZodError): Fault<Code> => {
    const message = error.issues[0]?.message ?? ''
    const separator = message.indexOf(': ')
    const code = codes.find(known => known === message.slice(0, separator))
    return code
      ? { code, detail: message.slice(separator + 2) }
      : { code: otherwise, detail: 'The request does not have the documented shape.' }
  },
})
