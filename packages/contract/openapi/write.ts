import { readFileSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { documentFiles, toFileText } from './documents.ts'
import { referenceFile, updateReference } from './reference.ts'

// `pnpm run openapi` writes the documents and the tables of api.md to docs/reference. `pnpm run openapi --released`, at a release: they also become
// the documents that later ones must not break.

const { values } = parseArgs({ options: { released: { type: 'boolean', default: false } } })
for (const { create, current, released } of documentFiles) {
  const document = create()
  writeFileSync(current, toFileText(document))
  if (values.released) writeFileSync(released, `${JSON.stringify(document)}\n`)
}
writeFileSync(referenceFile, updateReference(readFileSync(referenceFile, 'utf8')))
