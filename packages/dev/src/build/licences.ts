import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { BundledPackage } from './bundle.ts'

const readLicence = async ({ name, version, licence, folder }: BundledPackage): Promise<string> => {
  const files = (await readdir(folder)).filter(file => /^(?:licen[cs]e|copying|notice)/i.test(file)).sort()
  const texts = await Promise.all(files.map(file => readFile(join(folder, file), 'utf8')))
  return [`${name} ${version} (${licence})`, ...texts.map(text => text.trim())].join('\n\n')
}

/** Writes LICENSES.txt: most licences require that their text goes along with the code. */
export const writeLicences = async (folder: string, packages: readonly BundledPackage[]): Promise<void> => {
  const licences = await Promise.all(packages.map(readLicence))
  await writeFile(join(folder, 'LICENSES.txt'), `${licences.join(`\n\n${'-'.repeat(80)}\n\n`)}\n`)
}
