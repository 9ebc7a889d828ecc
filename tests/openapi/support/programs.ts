import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'

const isInstalled = (program: string): boolean =>
  existsSync(program) || (process.env.PATH ?? '').split(delimiter).some(folder => existsSync(join(folder, program)))

/**
 * Whether a program of a test is missing, by its name or its path; then it prints which one. REQUIRE_ALL_DEPS does not
 * apply: not every machine has Python and Java.
 */
export const isMissing = (test: string, programs: readonly string[], install: string): boolean => {
  const missing = programs.filter(program => !isInstalled(program))
  if (missing.length > 0) process.stderr.write(`Skipped: ${test} needs ${missing.join(', ')}. ${install}\n`)
  return missing.length > 0
}
