import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { programs } from './apps.ts'
import { bundle, writeLicences } from './bundle.ts'
import { buildConsole } from './console.ts'

// Usage: main.ts APP [--without-console] [--out FOLDER]. Writes the files that the app needs on a machine that has Node and
// nothing else. An app that serves the console gets it, unless that is left out on request.

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { 'without-console': { type: 'boolean', default: false }, out: { type: 'string' } },
})
const [name = ''] = positionals
const program = programs[name]
if (!program) {
  process.stderr.write(`build: name one of ${Object.keys(programs).join(', ')}\n`)
  process.exit(2)
}
const { servesConsole = false, ...options } = program
const outDir = values.out ?? options.outDir
const hasConsole = servesConsole && !values['without-console']
await rm(outDir, { recursive: true, force: true })
const packages = await bundle({ ...options, outDir })
await writeLicences(outDir, packages)
if (hasConsole) {
  await buildConsole(join(outDir, 'console')).catch(({ message }: Error) => {
    process.stderr.write(`build: ${message}\n`)
    process.exit(1)
  })
}
const parts = [...Object.keys(options.commands), ...(hasConsole ? ['console'] : [])]
process.stdout.write(`${outDir}: ${parts.join(', ')}, with code of ${packages.length} packages\n`)
