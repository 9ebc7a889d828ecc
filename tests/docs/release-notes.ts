import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { checkRelease, parseChangelog, readVersions } from './release.ts'

// Usage: release-notes.ts v1.2.3. Prints the notes of the release, or what has to change before it.

const root = fileURLToPath(new URL('../..', import.meta.url))
const changelog = parseChangelog(readFileSync(join(root, 'CHANGELOG.md'), 'utf8'))
const result = checkRelease(process.argv[2] ?? '', readVersions(root), changelog)
if ('issues' in result) {
  for (const issue of result.issues) process.stderr.write(`${issue}\n`)
  process.exitCode = 1
} else {
  process.stdout.write(`${result.notes}\n`)
}
