import { buildConsole } from './build.ts'

const { folder, firstPageBytes } = await buildConsole()
process.stdout.write(`${folder}: the first page has ${(firstPageBytes / 1_024).toFixed(1)} KiB of gzipped script\n`)
