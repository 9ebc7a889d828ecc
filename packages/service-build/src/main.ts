import { rm } from 'node:fs/promises'
import { programs } from './apps.ts'
import { bundle } from './bundle.ts'
import { writeLicences } from './licences.ts'

// Usage: main.ts APP. Writes the files that the app needs on a machine that has Node and nothing else.

const [name = ''] = process.argv.slice(2)
const options = programs[name]
if (!options) {
  process.stderr.write(`build: name one of ${Object.keys(programs).join(', ')}\n`)
  process.exit(2)
}
const { outDir, commands } = options
await rm(outDir, { recursive: true, force: true })
const packages = await bundle(options)
await writeLicences(outDir, packages)
process.stdout.write(`${outDir}: ${Object.keys(commands).join(', ')}, with code of ${packages.length} packages\n`)
