import { buildConsole } from './build.ts'

// Usage: main.ts [FOLDER], which is dist/ of this app by default.

const { folder, firstPageBytes } = await buildConsole(process.argv[2])
process.stdout.write(`${folder}: the first page has ${(firstPageBytes / 1_024).toFixed(1)} KiB of gzipped script\n`)
