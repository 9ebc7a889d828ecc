import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { apps } from './apps.ts'
import { type BundledPackage, bundle } from './bundle.ts'

// Usage: main.ts APP. Writes the files that the app needs on a machine that has Node and nothing else.

/** Most licences require that their text goes along with the code. */
const readLicence = async ({ name, version, licence, folder }: BundledPackage): Promise<string> => {
  const files = (await readdir(folder)).filter(file => /^(?:licen[cs]e|copying|notice)/i.test(file)).sort()
  const texts = await Promise.all(files.map(file => readFile(join(folder, file), 'utf8')))
  return [`${name} ${version} (${licence})`, ...texts.map(text => text.trim())].join('\n\n')
}

const [name = ''] = process.argv.slice(2)
const options = apps[name]
if (!options) {
  process.stderr.write(`build: name one of ${Object.keys(apps).join(', ')}\n`)
  process.exit(2)
}
const { outDir, commands } = options
await rm(outDir, { recursive: true, force: true })
const packages = await bundle(options)
const licences = await Promise.all(packages.map(readLicence))
await writeFile(join(outDir, 'LICENSES.txt'), `${licences.join(`\n\n${'-'.repeat(80)}\n\n`)}\n`)
process.stdout.write(`${outDir}: ${Object.keys(commands).join(', ')}, with code of ${packages.length} packages\n`)
