import { Ajv2020 } from 'ajv/dist/2020.js'
import { expect, test } from 'vitest'
import { errors, operationList } from '../src/index.ts'
import { leaseOperations } from '../src/lease-operations.ts'
import { leaseErrors } from '../src/lease-problem.ts'
import { allocationApiDocument, leaseWitnessDocument } from './documents.ts'
import { toReference } from './page.ts'

// biome-ignore lint/suspicious/noExplicitAny: any part of the document
type Document = any

test.each<[string, object, Parameters<typeof toReference>[1]]>([
  ['allocation API', allocationApiDocument(), { operations: operationList, errors, security: [] }],
  [
    'lease witness',
    leaseWitnessDocument(),
    { operations: Object.values(leaseOperations), errors: leaseErrors, security: [{ token: [] }] },
  ],
])(
  'the page of the %s: each body has an example that its schema accepts, and each operation a group',
  (_, document, options) => {
    const reference: Document = toReference(document as Document, options)
    const ajv = new Ajv2020({ strict: false, validateFormats: false })
    ajv.addSchema({ $id: 'document', components: reference.components })
    const faults: string[] = []
    const check = (place: string, content: Document = {}) => {
      for (const [mediaType, { schema, example, examples }] of Object.entries<Document>(content)) {
        const values = examples ? Object.values<Document>(examples).map(({ value }) => value) : [example]
        for (const value of values) {
          // An invented value would mislead: what no schema and no table has is null.
          if (
            value === undefined ||
            /:null|\[null/.test(JSON.stringify(value).replaceAll(/"(?:finishedAt|expiresAt)":null/g, ''))
          ) {
            faults.push(`${place}: ${JSON.stringify(value)}`)
          } else if (/json(?:;|$)/.test(mediaType)) {
            const validate = ajv.compile(
              JSON.parse(JSON.stringify(schema).replaceAll('"#/components/', '"document#/components/')),
            )
            if (!validate(value)) faults.push(`${place}: ${ajv.errorsText(validate.errors)} ${JSON.stringify(value)}`)
          }
        }
      }
    }
    const groups = reference.tags.map(({ name }: Document) => name)
    for (const [path, methods] of Object.entries<Document>(reference.paths)) {
      for (const [method, { tags, summary, requestBody, responses }] of Object.entries<Document>(methods)) {
        expect(groups).toContain(tags[0])
        expect(summary).not.toContain('`')
        check(`${method} ${path}`, requestBody?.content)
        for (const [status, { content }] of Object.entries<Document>(responses))
          check(`${method} ${path} ${status}`, content)
      }
    }
    expect(faults).toEqual([])
  },
)
