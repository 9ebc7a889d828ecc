import { existsSync } from 'node:fs'

const reported = new Set<string>()

/** What a test needs to see the state of a process. */
export const missingProcFiles = existsSync('/proc/self/stat')
  ? undefined
  : 'missing /proc, which shows the state of processes: run the tests on Linux'

/**
 * Whether to skip the tests that need an optional program. `missing` says in one line which program is missing and how to
 * install it; undefined: it is installed. Each line is printed once. With REQUIRE_ALL_DEPS=1 nothing is skipped, so the
 * tests run and fail.
 */
export const shouldSkip = (missing: string | undefined): boolean => {
  if (missing === undefined || process.env.REQUIRE_ALL_DEPS === '1') return false
  if (!reported.has(missing)) process.stderr.write(`Skipped: ${missing}\n`)
  reported.add(missing)
  return true
}
