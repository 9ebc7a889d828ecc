import { XMLParser, XMLValidator } from 'fast-xml-parser'
import * as z from 'zod'
import type { ListAnswer } from '../domain/classify-s3-response.ts'

// Entities are left as they stand, so that nothing grows; and a code or an id is text, whatever it looks like.
const parser = new XMLParser({ ignoreAttributes: true, processEntities: false, parseTagValue: false })
const utf8 = new TextDecoder('utf-8', { fatal: true })

/** One root, and in it what counts; a second root makes it something else. */
const declaration = z.unknown().optional()
const document = z.union([
  z
    .strictObject({ '?xml': declaration, ListAllMyBucketsResult: z.object({ Owner: z.object({ ID: z.string() }) }) })
    .transform(({ ListAllMyBucketsResult: { Owner } }): ListAnswer => ({ kind: 'listing', owner: Owner.ID })),
  z
    .strictObject({ '?xml': declaration, Error: z.object({ Code: z.string() }) })
    .transform(({ Error: { Code } }): ListAnswer => ({ kind: 'error', code: Code })),
])

const parsed = (body: Uint8Array): unknown => {
  try {
    const text = utf8.decode(body)
    // No answer of S3 has a document type; what else has one is not worth reading.
    if (/<!doctype/i.test(text)) return undefined
    const tree: unknown = parser.parse(text)
    // The parser takes a document that breaks off; the validator does not.
    return XMLValidator.validate(text) === true ? tree : undefined
  } catch {
    return undefined
  }
}

/** The body of an answer to ListBuckets. */
export const listAnswerOf = (body: Uint8Array): ListAnswer => {
  const read = document.safeParse(parsed(body))
  return read.success ? read.data : { kind: 'other' }
}
